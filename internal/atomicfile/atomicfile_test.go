package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFilesAreReplacedWithTheirMode(t *testing.T) {
	for mode, write := range map[os.FileMode]func(string, []byte) error{0o600: Write, 0o644: Publish} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte("old, and longer"), 0o640); err != nil {
			t.Fatal(err)
		}
		if err := write(path, []byte("new")); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || string(data) != "new" || info.Mode() != mode {
			t.Errorf("%q of mode %v, %v, %v; want mode %v", data, info.Mode(), err, statErr, mode)
		}
	}
}

func TestFailedWriteLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := os.MkdirAll(filepath.Join(target, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(target, []byte("x")); err == nil {
		t.Error("Write replaced a directory")
	}
	if err := Write(filepath.Join(dir, "missing", "file"), []byte("x")); err == nil {
		t.Error("Write succeeds in a missing directory")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}
