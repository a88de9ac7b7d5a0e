package history

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stormglass/stormglass/loadgen/internal/load/history/check"
)

// writeEvidence writes the history as JSON (times in nanoseconds) and the pictures into the load's directory. It
// returns the files' names.
func writeEvidence(c Config, h *check.History, pictures []check.Picture) ([]string, error) {
	var names []string
	write := func(name string, content []byte) error {
		if err := os.WriteFile(filepath.Join(c.Dir, name), content, 0o600); err != nil {
			return fmt.Errorf("load %s: write the evidence: %w", c.Name, err)
		}
		names = append(names, name)
		return nil
	}
	b, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", c.Name, err)
	}
	if err := write("history-"+c.Name+".json", b); err != nil {
		return names, err
	}
	for _, p := range pictures {
		if err := write("history-"+p.Register+".html", p.HTML); err != nil {
			return names, err
		}
	}
	return names, nil
}
