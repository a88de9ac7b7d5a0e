package pulse

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stormglass/stormglass/loadgen/result"
)

// longestLine is far more than a slot of any scenario's loads needs.
const longestLine = 4 << 20

// Read reads the slots of the run in dir, in the order of their time. A last
// line that was cut off, as by a kill, is left out. A run without a pulse has
// no slots.
func Read(dir string) ([]Slot, error) {
	path := filepath.Join(dir, result.PulseFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the pulse: %w", err)
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	var slots []Slot
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, longestLine)
	for n := 1; lines.Scan(); n++ {
		var s Slot
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		slots = append(slots, s)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the pulse: %w", err)
	}
	return slots, nil
}
