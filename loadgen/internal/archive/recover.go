package archive

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/stormglass/stormglass/loadgen/result"
)

// recover replays the write-ahead log in a copy: a log that was cut off in
// mid-record is repaired by writing to it.
func (a *Archive) recover(dir string, files []string) error {
	copied, err := os.MkdirTemp("", "stormglass-archive-")
	if err != nil {
		return err
	}
	a.closers = append(a.closers, func() error { return os.RemoveAll(copied) })
	if err := copyArchive(copied, dir, files); err != nil {
		return fmt.Errorf("copy it to recover it: %w", err)
	}
	db, err := OpenStore(filepath.Join(copied, result.TSDBDir), 0)
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
func copyArchive(to, from string, files []string) error {
	for _, name := range files {
		if strings.Contains(name, "/"+headChunksDir+"/") || strings.Contains(name, ".tmp") || path.Base(name) == "lock" {
			continue
		}
		target := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		if err := copyFile(target, filepath.Join(from, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	return nil
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
