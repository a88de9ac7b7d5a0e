package planetest

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// memory is the directory of a file system in memory. Dir uses it if memoryNeeded bytes are free there. Each etcd
// member takes 200 MB.
const (
	memory       = "/dev/shm"
	memoryNeeded = 8 << 30
)

// Dir returns a directory for the plane or the run of one test, and removes it when the test ends. The directory is in
// memory if enough memory is free, because an fsync can take long on a disk to which other programs write.
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
