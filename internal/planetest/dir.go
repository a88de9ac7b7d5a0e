package planetest

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// memory is a file system in memory; memoryNeeded is the space there from which planes
// are put on it. Each etcd member takes 200 MB.
const (
	memory       = "/dev/shm"
	memoryNeeded = 8 << 30
)

// Dir returns a directory for the plane or the run of one test, which the test's end
// removes. It is in memory where there is room: how long a disk that other work writes to
// takes for an fsync is not what tests are about.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := temporary()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func temporary() (string, error) {
	parent := ""
	var stat unix.Statfs_t
	if unix.Statfs(memory, &stat) == nil && stat.Bavail*uint64(stat.Bsize) >= memoryNeeded {
		parent = memory
	}
	return os.MkdirTemp(parent, "planetest-")
}
