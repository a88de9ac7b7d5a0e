// Package atomicfile replaces files atomically: a reader sees either the old content or the new content. If the disk is
// full, the old content remains.
package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Write replaces a file atomically. The file has mode 0600.
func Write(path string, data []byte) error {
	return WriteFunc(path, func(f io.Writer) error {
		_, err := f.Write(data)
		return err
	})
}

// WriteFunc is like Write, but calls `write` to write the content. If `write` fails, the old content remains.
func WriteFunc(path string, write func(io.Writer) error) error {
	return replace(path, func(f *os.File) error { return write(f) })
}

// Publish replaces a file atomically and syncs it to disk. The file has mode 0644: other users can read it.
func Publish(path string, data []byte) error {
	return PublishFunc(path, func(f io.Writer) error {
		_, err := f.Write(data)
		return err
	})
}

// PublishFunc is like Publish, but calls `write` to write the content. If `write` fails, the old content remains.
func PublishFunc(path string, write func(io.Writer) error) error {
	return replace(path, func(f *os.File) error {
		if err := write(f); err != nil {
			return err
		}
		return errors.Join(f.Chmod(0o644), f.Sync())
	})
}

func replace(path string, fill func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // 0600
	if err != nil {
		return err
	}
	if err = errors.Join(fill(f), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
