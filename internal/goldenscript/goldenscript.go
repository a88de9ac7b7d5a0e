// Package goldenscript runs txtar scripts in tests. A script contains an input and the expected output.
package goldenscript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// Each calls `run` with each script that matches the pattern, and compares the result with the second file in the
// script. If update is set, it instead writes the result to that file.
func Each(t *testing.T, pattern string, update bool, run func(*testing.T, *txtar.Archive) string) {
	t.Helper()
	scripts, err := filepath.Glob(pattern)
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(script)
			if err != nil {
				t.Fatal(err)
			}
			got := run(t, ar)
			if len(ar.Files) == 1 { // a new script
				ar.Files = append(ar.Files, txtar.File{Name: "errors"})
			}
			want := string(ar.Files[1].Data)
			if ar.Files[1].Data = []byte(got); update {
				err = os.WriteFile(script, txtar.Format(ar), 0o644)
			} else if got != want {
				t.Errorf("got:\n%swant:\n%s", got, want)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
