package generator

import (
	"os"
	"path/filepath"
	"testing"
)

// Tree seconds include the CPU time of a process and its descendants, regardless of their names, and of no other
// process.
func TestTreeSecondsCountsDescendants(t *testing.T) {
	proc := t.TempDir()
	for pid, stat := range map[string]string{
		"10":   "10 (loadgen) S 1 10 10 0 -1 4194304 1 2 3 4 100 200 30 40 20 0 9 0 5 6 7",
		"11":   "11 (a) b (c) R 10 10 10 0 -1 4194304 1 2 3 4 1000 0 0 0 20 0 9 0 5 6 7",
		"12":   "12 (deep) S 11 10 10 0 -1 4194304 1 2 3 4 0 2000 0 0 20 0 9 0 5 6 7",
		"13":   "13 (other) S 1 10 10 0 -1 4194304 1 2 3 4 9000 9000 9000 9000 20 0 9 0 5 6 7",
		"14":   "14 (cut) S 10",
		"self": "10 (loadgen) S 1 10 10 0 -1 4194304 1 2 3 4 100 200 30 40 20 0 9 0 5 6 7",
	} {
		if err := os.MkdirAll(filepath.Join(proc, pid), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, pid, "stat"), []byte(stat+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := treeSeconds(proc, 10); err != nil || got != 33.7 {
		t.Errorf("treeSeconds = %v (%v), want 33.7", got, err)
	}
}
