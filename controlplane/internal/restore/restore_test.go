package restore_test

import (
	"os"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/restore"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// TestFinishInterrupted checks that the next start of a plane restores the old data after a supervisor was killed
// during a restore.
func TestFinishInterrupted(t *testing.T) {
	l := topology.Layout{Dir: t.TempDir()}
	write(t, l.Data("etcd-0"), "new") // already replaced
	write(t, l.Data("etcd-0.before-restore"), "old")
	write(t, l.Data("etcd-1.before-restore"), "old") // being replaced
	write(t, l.Data("etcd-1.restored"), "new")
	write(t, l.Data("etcd-2"), "old") // not replaced yet
	write(t, l.Data("etcd-2.restored"), "new")
	must(t, restore.FinishInterrupted(l, control.Config{Etcd: control.Etcd{Members: 3}}))
	holds(t, restore.Members{l.Data("etcd-0"), l.Data("etcd-1"), l.Data("etcd-2")}, "old")
	if left, err := os.ReadDir(l.Data("")); len(left) != 3 {
		t.Errorf("entries of the data directory = %v %v, want three", left, err)
	}
}
