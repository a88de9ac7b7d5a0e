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

	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/compression"

	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	// blockLength is longer than any run: all samples stay in the head block until Close.
	blockLength = 7 * 24 * time.Hour
	// blocksKept is the number of blocks into which a retention period is divided. Prometheus' TSDB deletes only whole
	// blocks. The newest block is in memory.
	blocksKept = 8
	// shortestBlock is the minimum block length. With shorter blocks, the head would reject samples that arrive
	// slightly late.
	shortestBlock = 10 * time.Minute
	// stripes is the number of lock stripes of the head. Prometheus' default of 16,384 is meant for many concurrent
	// writers and needs more memory; this store has few writers.
	stripes = 256
	// chunkBuffer is the smallest write buffer that Prometheus' TSDB permits for the head's chunk files.
	chunkBuffer = 64 << 10
	// chunkFile is the size of a block's chunk files. The TSDB allocates a file's full size before it writes the file, so
	// Prometheus' default would require 512 MiB of free disk space.
	chunkFile = 16 << 20
)

// OpenStore opens or creates a TSDB in dir. It keeps samples for at least retention. If retention is 0, it neither
// deletes nor compacts samples.
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

// Seal writes the samples in memory as one block, closes db and removes its write-ahead log.
func Seal(dir string, db *tsdb.DB) error {
	err := writeBlock(dir, db)
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(filepath.Join(dir, WalDir)), os.RemoveAll(filepath.Join(dir, headChunksDir)))
}

// Directory names of the TSDB.
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

// startJitter is the maximum difference, in seconds, between two values of process_start_time_seconds of one process. A
// process computes the value from the kernel's boot time. This time changes when the clock is adjusted.
const startJitter = 2

// SameProcess reports whether two values of process_start_time_seconds are from the same process. 0 means unknown and
// is never the same process.
func SameProcess(a, b float64) bool {
	return a != 0 && b != 0 && math.Abs(a-b) < startJitter
}

// recover replays the write-ahead log in a copy of the archive. In the original, the TSDB would change a log that ends
// within a record.
func (a *Archive) recover(dir string, files []string) error {
	copied, err := os.MkdirTemp("", "stormglass-archive-")
	if err != nil {
		return err
	}
	a.closers = append(a.closers, func() error { return os.RemoveAll(copied) })
	if err := copyArchive(copied, dir, files); err != nil {
		return fmt.Errorf("the archive could not be copied, which is necessary to recover it: %w", err)
	}
	db, err := OpenStore(filepath.Join(copied, result.TSDBDir), 0)
	if err != nil {
		return fmt.Errorf("recover the archive: %w", err)
	}
	a.closers = append([]func() error{db.Close}, a.closers...)
	a.queryable = db
	return nil
}

// copyArchive copies the blocks and the write-ahead log, which has all samples that are not in a block. It does not
// copy the head's chunk files, which only speed up the replay and may be incomplete.
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
