// Package scratch creates directories for temporary files, and removes the directories of killed processes.
package scratch

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Prefixes of the names of scratch directories.
const (
	Token = "stormglass-token-"
	Nodes = "stormglass-nodes-" // prefix for the control plane of a run that only simulates nodes
	Rules = "stormglass-rules-" // prefix for the results of rules
	Test  = "stormglass-test-"  // prefix for the control plane of a package's tests
)

// Dir is a directory for temporary files. The process that created it removes it. If that process was killed, the next
// Sweep removes it. A lock on the directory shows that the process is alive.
type Dir struct {
	Path string
	lock *os.File
}

// New creates a Dir. prefix is Nodes, Rules or Test.
func New(prefix string) (*Dir, error) {
	for {
		path, err := os.MkdirTemp("", prefix) // 0700
		if err != nil {
			return nil, err
		}
		lock, err := LockDir(path)
		if err != nil {
			return nil, errors.Join(err, os.Remove(path))
		}
		if lock == nil {
			continue // a concurrent Sweep has removed the directory
		}
		if _, err := os.Stat(path); err == nil {
			return &Dir{path, lock}, nil
		}
		lock.Close()
	}
}

// Remove removes the directory with all its files. Further calls do nothing.
func (d *Dir) Remove() error {
	err := os.RemoveAll(d.Path)
	d.lock.Close() // last, so that no sweep removes the directory at the same time
	return err
}

// LockDir locks a directory until the returned file is closed or the process ends. It returns nil if another process
// holds the lock.
func LockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if locked, err := Lock(f); err != nil || !locked {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Locked reports whether another process holds the lock of a directory. It returns false if the directory cannot be
// opened.
func Locked(dir string) bool {
	lock, err := LockDir(dir)
	if err != nil {
		return false
	}
	if lock != nil {
		_ = lock.Close() // nothing was written
	}
	return lock == nil
}

// Lock locks the open directory f, as LockDir does. It returns false if another process holds the lock.
func Lock(f *os.File) (locked bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// Sweep removes the scratch directories of this user whose processes were killed, and returns their paths. It skips
// directories of other users and directories that it cannot remove.
func Sweep() (removed []string) {
	for _, prefix := range []string{Token, Nodes, Rules, Test} {
		found, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*")) // cannot fail: the pattern is valid
		for _, path := range found {
			if sweep(path) {
				removed = append(removed, path)
			}
		}
	}
	return removed
}

func sweep(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	lock, err := LockDir(path)
	if err != nil || lock == nil {
		return false
	}
	defer lock.Close()
	return os.RemoveAll(path) == nil
}
