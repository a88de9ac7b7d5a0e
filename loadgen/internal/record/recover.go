package record

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// recover replays the write-ahead log in a copy: a log that was cut off in
// mid-record is repaired by writing to it.
func (a *Archive) recover(dir string) error {
	copied, err := os.MkdirTemp("", "stormglass-archive-")
	if err != nil {
		return err
	}
	a.closers = append(a.closers, func() error { return os.RemoveAll(copied) })
	if err := copyArchive(copied, dir); err != nil {
		return fmt.Errorf("copy it to recover it: %w", err)
	}
	db, err := OpenStore(copied, 0)
	if err != nil {
		return fmt.Errorf("recover it: %w", err)
	}
	a.closers = append([]func() error{db.Close}, a.closers...)
	a.queryable = db
	return nil
}

// copyArchive copies blocks and the write-ahead log, which holds every sample
// that is in no block. The head's chunk files would only speed up the replay,
// and may be cut off.
func copyArchive(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, from)
		target := filepath.Join(to, name)
		switch {
		case d.IsDir() && (d.Name() == headChunksDir || strings.Contains(d.Name(), ".tmp")):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case d.Name() == "lock":
			return nil
		}
		return copyFile(target, path)
	})
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
