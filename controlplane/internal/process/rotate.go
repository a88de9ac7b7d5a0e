package process

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// MaxLog is the size in bytes above which a log is rotated, and RotateEvery is the interval at which the sizes are
// checked. Both are a kubelet's defaults for the logs of containers.
const (
	MaxLog      = 10 << 20
	RotateEvery = 10 * time.Second
)

// RotatedLog returns the path of the newest copy of a log.
func RotatedLog(log string) string { return log + ".1" }

// RotateLogs rotates the files *.log in a directory that are larger than `most` bytes. It keeps two copies: LOG.1, the
// newer one, and LOG.2.
func (s *Spawner) RotateLogs(dir string, most int64) error {
	entries, err := os.ReadDir(dir)
	errs := []error{err}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasSuffix(e.Name(), ".log") && info.Size() > most {
			log := filepath.Join(dir, e.Name())
			err = rotate(log, s.rotationsOf(log))
		}
		if !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// rotate copies a log and then truncates it, because the processes that append to the log keep it open. A line that is
// written between the copy and the truncation is lost.
func rotate(log string, rotations *atomic.Int64) error {
	from, err := os.OpenFile(log, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	newest := RotatedLog(log)
	if err := os.Rename(newest, log+".2"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	to, err := os.OpenFile(newest, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Close()); err != nil { // the disk may be full: keep the log
		return errors.Join(err, os.Remove(newest))
	}
	rotations.Add(1)
	return from.Truncate(0)
}

func (s *Spawner) rotationsOf(log string) *atomic.Int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rotations[log] == nil {
		s.rotations[log] = &atomic.Int64{}
	}
	return s.rotations[log]
}
