package restore_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stormglass/stormglass/controlplane/internal/restore"
)

// fixture creates three members with the data "old", and the new data "new" next to them.
func fixture(t *testing.T) restore.Members {
	t.Helper()
	data := t.TempDir()
	var m restore.Members
	for _, name := range []string{"etcd-0", "etcd-1", "etcd-2"} {
		dir := filepath.Join(data, name)
		m = append(m, dir)
		write(t, dir, "old")
		write(t, restore.Fresh(dir), "new")
	}
	return m
}

func write(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "db"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// holds checks that all members have the wanted data, and that there are no other directories.
func holds(t *testing.T, m restore.Members, want string) {
	t.Helper()
	for _, dir := range m {
		if got, err := os.ReadFile(filepath.Join(dir, "db")); string(got) != want {
			t.Errorf("%s contains %q, want %q: %v", filepath.Base(dir), got, want, err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(m[0])); len(left) != len(m) {
		t.Errorf("entries of the data directory = %v %v, want only the members", left, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSwapKeepsNewData(t *testing.T) {
	m := fixture(t)
	must(t, m.Swap())
	must(t, m.Commit())
	must(t, m.Clean())
	holds(t, m, "new")
	must(t, m.Recover()) // there is nothing left to do
	holds(t, m, "new")
}

func TestSwapUndoRestoresOldData(t *testing.T) {
	m := fixture(t)
	must(t, m.Swap())
	must(t, m.PutBack())
	must(t, m.DropFresh())
	holds(t, m, "old")
}

// A supervisor may be killed at any step, between two members or during a removal. In each case, all members have the
// same data after the next start.
func TestInterruptedSwapIsRecovered(t *testing.T) {
	base := func(m restore.Members) string { return filepath.Dir(m[0]) }
	before := func(dir string) string { return dir + ".before-restore" }
	steps := map[string]struct {
		do   func(*testing.T, restore.Members)
		want string
	}{
		"before the swap": {func(*testing.T, restore.Members) {}, "old"},
		"in the swap": {func(t *testing.T, m restore.Members) {
			must(t, os.Rename(m[0], before(m[0])))
			must(t, os.Rename(restore.Fresh(m[0]), m[0]))
			must(t, os.Rename(m[1], before(m[1])))
		}, "old"},
		"after the swap": {func(t *testing.T, m restore.Members) { must(t, m.Swap()) }, "old"},
		"when it was final": {func(t *testing.T, m restore.Members) {
			must(t, m.Swap())
			must(t, m.Commit())
		}, "new"},
		"when what was before is half removed": {func(t *testing.T, m restore.Members) {
			must(t, m.Swap())
			must(t, m.Commit())
			must(t, os.RemoveAll(before(m[0])))
			must(t, os.Remove(filepath.Join(before(m[1]), "db")))
		}, "new"},
		"at the very end": {func(t *testing.T, m restore.Members) {
			must(t, m.Swap())
			must(t, m.Commit())
			for _, dir := range m {
				must(t, os.RemoveAll(before(dir)))
			}
		}, "new"},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			m := fixture(t)
			step.do(t, m)
			must(t, m.Recover())
			holds(t, m, step.want)
			if left, _ := filepath.Glob(filepath.Join(base(m), "restore*")); len(left) > 0 {
				t.Errorf("leftover markers: %v", left)
			}
		})
	}
}

// The marker of an earlier restore does not make a later restore permanent.
func TestSwapAfterFailedCleanup(t *testing.T) {
	m := fixture(t)
	must(t, m.Swap())
	must(t, m.Commit())
	for i, dir := range m {
		write(t, restore.Fresh(dir), "newer")
		if i == 0 {
			must(t, os.RemoveAll(dir+".before-restore"))
		}
	}
	must(t, m.Swap())
	must(t, m.Recover())
	holds(t, m, "new")
}

// Swap and Recover also work for one member. A plane that never ran has nothing to recover.
func TestSwapAndRecoverWithoutData(t *testing.T) {
	m := restore.Members{filepath.Join(t.TempDir(), "etcd-0")}
	must(t, m.Recover())
	if err := m.Swap(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Swap without data = %v, want fs.ErrNotExist", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(m[0])); len(left) > 0 {
		t.Errorf("Swap without data left %v", left)
	}
}
