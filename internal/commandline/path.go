package commandline

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/stormglass/stormglass/internal/userfile"
)

// PathAtFault reports whether err means that the user specified an unusable path. Such an error is bad usage; a full or
// broken disk is not.
func PathAtFault(err error) bool {
	var number syscall.Errno
	return errors.As(err, &number) && slices.Contains([]syscall.Errno{
		syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOENT, syscall.ENOTDIR, syscall.EISDIR,
		syscall.EEXIST, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.EINVAL,
	}, number)
}

// Program returns the absolute path of a program whose path the user specified. It does not search PATH. It fails if
// the path is not an executable file.
func Program(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", path, userfile.Cause(err))
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return "", fmt.Errorf("%s: it is not an executable file", path)
	}
	return filepath.Abs(path)
}

// Find returns the path of a program of Stormglass. It looks in the directory of the file `executable`, then on PATH.
func Find(executable, name string) (string, error) {
	if real, err := filepath.EvalSymlinks(executable); err == nil {
		executable = real
	}
	beside := filepath.Join(filepath.Dir(executable), name)
	if info, err := os.Stat(beside); err == nil && info.Mode()&0o111 != 0 {
		return beside, nil
	}
	return exec.LookPath(name)
}

// NewFile returns an error if a file exists at path or cannot be created there.
func NewFile(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s already exists (choose another file, or remove it)", path)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("%s: %w (name a writable file)", path, userfile.Cause(err))
	}
	return errors.Join(f.Close(), os.Remove(path))
}

// CheckDir returns an error if the directory at path cannot be created or written to. It removes the directories that
// it has created.
func CheckDir(path string) error {
	whole, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	var made []string // directories to create, the innermost first
	for at := whole; at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Lstat(at); err == nil {
			break
		}
		made = append(made, at)
	}
	defer func() {
		for _, dir := range made {
			_ = os.Remove(dir) // fails for a directory that is no longer empty
		}
	}()
	err = os.MkdirAll(whole, 0o700)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(whole, ".writable-*"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w (name a writable directory)", path, userfile.Cause(err))
	}
	return nil
}
