package userfile

import "golang.org/x/sys/unix"

// ofKernel reports whether a path is in a file system whose contents the kernel generates, such as /proc. stat(2)
// reports files there as regular and empty, but reading such a file may never end.
func ofKernel(path string) bool {
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil {
		return false // opening the file returns the error
	}
	switch uint32(fs.Type) {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC:
		return true
	}
	return false
}
