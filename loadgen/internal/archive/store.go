package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/compression"

	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	// blockLength is longer than any run: the head stays one piece until Close.
	blockLength = 7 * 24 * time.Hour
	// blocksKept is how many blocks a retention is divided into: whole blocks are
	// forgotten, and the youngest is in memory.
	blocksKept = 8
	// shortestBlock keeps samples in reach that come a little late.
	shortestBlock = 10 * time.Minute
	// stripes of the head's locks. Prometheus' 16,384 are for many cores and
	// cost memory; ours has a handful of writers.
	stripes = 256
	// chunkBuffer is the smallest write buffer the head's chunk files allow.
	chunkBuffer = 64 << 10
	// chunkFile is the size of a block's files of chunks. Each is allocated whole before it is written, so Prometheus'
	// 512 MiB would need as much of a free disk.
	chunkFile = 16 << 20
)

// OpenStore opens a TSDB in dir. It neither compacts nor forgets, unless it is given a
// retention: then it keeps samples for at least that time.
func OpenStore(dir string, retention time.Duration) (*tsdb.DB, error) {
	length := blockLength
	if retention > 0 {
		length = min(length, max(retention/blocksKept, shortestBlock))
	}
	o := tsdb.DefaultOptions()
	o.RetentionDuration = retention.Milliseconds()
	o.MinBlockDuration = length.Milliseconds()
	o.MaxBlockDuration = length.Milliseconds()
	o.WALCompression = compression.Snappy
	o.StripeSize = stripes
	o.HeadChunksWriteBufferSize = chunkBuffer
	db, err := tsdb.Open(dir, slog.New(slog.DiscardHandler), nil, o, nil)
	if err != nil {
		return nil, err
	}
	if retention == 0 {
		db.DisableCompactions()
	}
	return db, nil
}

// Seal writes what is in memory as one block, closes db and removes its
// write-ahead log.
func Seal(dir string, db *tsdb.DB) error {
	err := writeBlock(dir, db)
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(filepath.Join(dir, WalDir)), os.RemoveAll(filepath.Join(dir, headChunksDir)))
}

// The TSDB's own names.
const (
	WalDir        = "wal"
	headChunksDir = "chunks_head"
)

func writeBlock(dir string, db *tsdb.DB) error {
	head := db.Head()
	if head.NumSeries() == 0 {
		return nil
	}
	o := tsdb.LeveledCompactorOptions{MaxBlockChunkSegmentSize: chunkFile, EnableOverlappingCompaction: true}
	compactor, err := tsdb.NewLeveledCompactorWithOptions(context.Background(), nil, slog.New(slog.DiscardHandler), []int64{blockLength.Milliseconds()}, nil, o)
	if err != nil {
		return err
	}
	from, to := head.MinTime(), head.MaxTime()
	_, err = compactor.Write(dir, tsdb.NewRangeHead(head, from, to), from, to+1, nil)
	return err
}

// Both reads from two storages as if they were one.
func Both(a, b storage.Queryable) storage.Queryable { return Merge(a, b) }

// startJitter, in seconds, is how far two readings of one process' start time
// may lie apart: it is reckoned from the kernel's boot time, which moves with
// the clock.
const startJitter = 2

// SameProcess reports whether two values of process_start_time_seconds are of
// one process. Zero is unknown, and like no other.
func SameProcess(a, b float64) bool {
	return a != 0 && b != 0 && math.Abs(a-b) < startJitter
}

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
