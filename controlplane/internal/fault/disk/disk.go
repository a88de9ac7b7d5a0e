// Package disk simulates a noisy neighbour of etcd: a process that writes and fsyncs on etcd's disk, like the API
// server's audit log, an image pull or a database on the same volume. The fsyncs of a stacked etcd then wait behind the
// neighbour's fsyncs, in the queue of the disk and in the journal of the file system.
//
// The neighbour is a separate process (Main), so that the supervisor can end it separately and measure its cost. It
// unlinks its files right after it has created them, so that no files remain even if it is killed by SIGKILL.
//
// Limits:
//   - The effect depends on the disk. The neighbour reports how much it wrote; the metric
//     etcd_disk_wal_fsync_duration_seconds shows the effect on etcd.
//   - On a file system in memory an fsync is free, so the neighbour only uses CPU. A writer makes at most maxRounds
//     rounds per second, so that this CPU load stays small.
//   - The files take Writers times Size bytes. The neighbour starts only if twice as much space is free.
package disk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stormglass/stormglass/controlplane/internal/process"
)

// The default values of the fields of Options.
const (
	DefaultWriters = 4
	DefaultSize    = 1 << 20
)

// maxRounds is the maximum number of rounds (truncate, write, fsync) per second of each writer.
const maxRounds = 100

// Options configure the neighbour.
type Options struct {
	// Dir is the directory to write in. It determines the disk.
	Dir string
	// Writers is the number of writers that write and fsync at the same time, each in a separate file. Zero means
	// DefaultWriters.
	Writers int
	// Size is the number of bytes that a writer writes before each fsync. After the fsync the writer truncates the file
	// and starts again. Zero means DefaultSize.
	Size int64
	// Ready is called once by Run, when each writer has written for the first time and is about to fsync. By then, the
	// load on the disk has begun. Run does not wait for the first fsync, because its duration depends on the disk.
	Ready func()
}

// Stats holds the number and the duration of the neighbour's writes.
type Stats struct {
	// Syncs is the number of completed fsyncs. Bytes is the number of bytes that the writers wrote before these fsyncs.
	Syncs int64 `json:"syncs"`
	Bytes int64 `json:"bytes"`
	// SlowestSync is the duration of the slowest fsync, and Syncing the total duration of all fsyncs.
	SlowestSync time.Duration `json:"slowestSyncNanoseconds"`
	Syncing     time.Duration `json:"syncingNanoseconds"`
}

// complete fills in the defaults and checks that there is enough free space. control.Fault has already checked the
// bounds.
func (o *Options) complete() error {
	o.Writers, o.Size = cmp.Or(o.Writers, DefaultWriters), cmp.Or(o.Size, DefaultSize)
	free, err := process.FreeBytes(o.Dir)
	if err != nil {
		return fmt.Errorf("disk neighbour: %w", err)
	}
	// Divide instead of multiplying, because the product may not fit in 64 bits.
	if uint64(o.Size) > free/2/uint64(o.Writers) {
		return fmt.Errorf("disk neighbour: %d writers of %d bytes each in %s need free space for twice their total size, but only %d bytes are free", o.Writers, o.Size, o.Dir, free)
	}
	return nil
}

// Run writes and fsyncs until ctx ends. The end of ctx is not an error.
func Run(ctx context.Context, o Options) (Stats, error) {
	if err := o.complete(); err != nil {
		return Stats{}, err
	}
	var files []*os.File
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	for range o.Writers {
		f, err := createUnlinked(o.Dir)
		if err != nil {
			return Stats{}, fmt.Errorf("disk neighbour: %w", err)
		}
		files = append(files, f)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running, first sync.WaitGroup
	var mu sync.Mutex
	var total Stats
	first.Add(o.Writers)
	for i, f := range files {
		running.Go(func() {
			begun := sync.OnceFunc(first.Done)
			defer begun() // also on failure, so that Run does not wait for ever
			w := writer{file: f, size: o.Size, data: incompressible(min(o.Size, chunk), uint64(i))}
			err := w.run(ctx, begun)
			mu.Lock()
			defer mu.Unlock()
			total.add(w.stats)
			if err != nil {
				cancel(fmt.Errorf("disk neighbour: %w", err))
			}
		})
	}
	first.Wait()
	if o.Ready != nil && ctx.Err() == nil {
		o.Ready()
	}
	running.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return total, err
	}
	return total, nil
}

func (s *Stats) add(other Stats) {
	s.Syncs += other.Syncs
	s.Bytes += other.Bytes
	s.Syncing += other.Syncing
	s.SlowestSync = max(s.SlowestSync, other.SlowestSync)
}

// chunk is the maximum number of bytes per write.
const chunk = 1 << 20

type writer struct {
	file  written
	size  int64
	data  []byte
	stats Stats
}

// written is the subset of the methods of *os.File that a writer uses.
type written interface {
	io.WriteSeeker
	Truncate(int64) error
	Sync() error
}

// run writes until ctx ends. It calls `begun` before each fsync.
func (w *writer) run(ctx context.Context, begun func()) error {
	pace := time.NewTicker(time.Second / maxRounds)
	defer pace.Stop()
	for {
		// Truncate the file, so that each round allocates new blocks and writes to the file system's journal. All
		// programs on the disk share the journal.
		if err := w.file.Truncate(0); err != nil {
			return err
		}
		if _, err := w.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		for left := w.size; left > 0; {
			if ctx.Err() != nil {
				return nil
			}
			n, err := w.file.Write(w.data[:min(left, int64(len(w.data)))])
			if err != nil {
				return err
			}
			left -= int64(n)
		}
		begun()
		start := time.Now()
		if err := w.file.Sync(); err != nil {
			return err
		}
		took := time.Since(start)
		w.stats.add(Stats{Syncs: 1, Bytes: w.size, Syncing: took, SlowestSync: took})
		select {
		case <-ctx.Done():
			return nil
		case <-pace.C:
		}
	}
}

// incompressible returns data that neither a file system nor a disk can compress.
func incompressible(n int64, seed uint64) []byte {
	data := make([]byte, n)
	var key [32]byte
	key[0] = byte(seed)
	_, _ = rand.NewChaCha8(key).Read(data) // never fails
	return data
}

func createUnlinked(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "stormglass-neighbour-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// OtherFileSystem returns a writable directory on another device than dir. With an external etcd, whose disk is
// separate, the neighbour writes there instead of on etcd's disk.
func OtherFileSystem(dir string) (string, error) {
	return otherFileSystem(dir, []candidate{
		{"/dev/shm", "/dev/shm"},
		{"$XDG_RUNTIME_DIR", os.Getenv("XDG_RUNTIME_DIR")},
		{"the directory for temporary files ($TMPDIR)", os.TempDir()},
	})
}

type candidate struct{ name, dir string }

func otherFileSystem(dir string, candidates []candidate) (string, error) {
	own, err := device(dir)
	if err != nil {
		return "", err
	}
	var lacks []string
	for _, c := range candidates {
		why := c.check(own)
		if why == nil {
			return c.dir, nil
		}
		lacks = append(lacks, fmt.Sprintf("%s: %v", c.name, why))
	}
	return "", fmt.Errorf("found no writable file system on a different device than %s (%s)", dir, strings.Join(lacks, "; "))
}

func (c candidate) check(own uint64) error {
	if c.dir == "" {
		return errors.New("not set")
	}
	other, err := device(c.dir)
	if err != nil {
		return err
	}
	if other == own {
		return errors.New("the same device")
	}
	f, err := createUnlinked(c.dir)
	if err != nil {
		return err
	}
	return f.Close()
}

func device(dir string) (uint64, error) {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return 0, &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	return uint64(stat.Dev), nil
}

// Program is the neighbour's name in the multi-call binary.
const Program = "disk-neighbour"

// ReadyLine is the line that Main prints when all writers have begun to write (Options.Ready).
const ReadyLine = "disk-neighbour: writing"

// Args returns the command-line arguments of Main that set the options Dir, Writers and Size.
func Args(o Options) []string {
	return []string{"--dir", o.Dir, "--writers", strconv.Itoa(o.Writers), "--size", strconv.FormatInt(o.Size, 10)}
}

// Main runs the neighbour as a program. It writes until SIGTERM or SIGINT. It prints ReadyLine when all writers have
// begun to write, and at the end its Stats as a line of JSON. Exit codes: 0 if a signal ended it, 2 for a usage error,
// 4 if it could not write.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return run(ctx, args, stdout, stderr)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o := Options{Ready: func() { fmt.Fprintln(stdout, ReadyLine) }}
	flags := flag.NewFlagSet(Program, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.Dir, "dir", "", "directory to write in")
	flags.IntVar(&o.Writers, "writers", DefaultWriters, "number of concurrent writers, each with a separate file")
	flags.Int64Var(&o.Size, "size", DefaultSize, "bytes that a writer writes before it fsyncs")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil: // flag has printed the error
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "%s: takes no arguments, got %q\n", Program, flags.Arg(0))
		return 2
	case o.Dir == "":
		fmt.Fprintf(stderr, "%s: --dir is required\n", Program)
		return 2
	}
	stats, err := Run(ctx, o)
	if err == nil {
		err = json.NewEncoder(stdout).Encode(stats)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 4
	}
	return 0
}
