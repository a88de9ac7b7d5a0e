// Package atomicfile replaces files atomically: a reader sees either the old content or the new content. If the disk is full,
// the old content remains.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces a file atomically. The file has mode 0600.
func Write(path string, data []byte) error {
	return write(path, data, func(*os.File) error { return nil })
}

// Publish replaces a file atomically and syncs it to disk. The file has mode 0644, so that other users can read it.
func Publish(path string, data []byte) error {
	return write(path, data, func(f *os.File) error { return errors.Join(f.Chmod(0o644), f.Sync()) })
}

func write(path string, data []byte, finish func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, finish(f), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
