package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each file with a source is written, files without a source are removed, and
// an invalid source leaves all files unchanged.
func TestRun(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("alerts/etcd.yaml", "groups:\n")
	gone := write("deploy/kubernetes/rules/gone.yaml", "")
	other := write("deploy/kubernetes/scrape/kept.yaml", "")
	var stderr strings.Builder
	if code := run(root, &stderr); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	for file, want := range map[string]bool{
		gone:  false,
		other: true,
		filepath.Join(root, "deploy/kubernetes/rules/etcd.yaml"):          true,
		filepath.Join(root, "deploy/kubernetes/rules/kustomization.yaml"): true,
	} {
		if _, err := os.Stat(file); (err == nil) != want {
			t.Errorf("%s is there: %t", file, err == nil)
		}
	}

	write("alerts/etcd.yaml", "{")
	stale := write("deploy/kubernetes/rules/stale.yaml", "")
	if code := run(root, &stderr); code != 1 || !strings.Contains(stderr.String(), "generate: alerts/etcd.yaml: ") {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
	if _, err := os.Stat(stale); err != nil {
		t.Error(err)
	}
}
