package userfile

import "golang.org/x/sys/unix"

// ofKernel reports whether a path is in a file system whose files the kernel makes as
// they are read: those say that they are regular and empty, and may have no end.
func ofKernel(path string) bool {
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil {
		return false // opening it says why
	}
	switch uint32(fs.Type) {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC:
		return true
	}
	return false
}
