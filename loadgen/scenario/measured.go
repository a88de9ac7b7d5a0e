package scenario

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/stormglass/stormglass/internal/digits"
)

//go:embed measured.txt
var measured string

// Memory is the peak memory of recorded runs of a built-in scenario. Plane is the sum of the largest resident sets of
// the control plane's processes. Loadgen is the largest resident set of loadgen.
type Memory struct {
	Plane, Loadgen Bytes
}

// RecordedMemory returns the memory of recorded runs of a built-in scenario. It returns false if none exist.
func RecordedMemory(name string) (Memory, bool) {
	for line := range strings.Lines(measured) {
		rest, found := strings.CutPrefix(line, name+" ")
		if !found {
			continue
		}
		var plane, loadgen int64
		if _, err := fmt.Sscan(rest, &plane, &loadgen); err != nil {
			return Memory{}, false
		}
		const megabyte = 1e6
		return Memory{Bytes(plane * megabyte), Bytes(loadgen * megabyte)}, true
	}
	return Memory{}, false
}

// String returns the sum of Plane and Loadgen, such as "1.12 GB".
func (m Memory) String() string { return decimal(m.Plane + m.Loadgen) }

// decimal formats a size in MB or GB: "989 MB", "1.12 GB".
func decimal(b Bytes) string {
	if b < 1e9 {
		return fmt.Sprintf("%.0f MB", float64(b)/1e6)
	}
	return digits.Format(float64(b)/1e9, 3) + " GB"
}
