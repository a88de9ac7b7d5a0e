package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func TestNeighbourWritesAndRemovesItsFiles(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// size is not a multiple of the largest write.
	const writers, size = 3, chunk + 4096
	stats, err := Run(ctx, Options{Dir: dir, Writers: writers, Size: size, Ready: func() {
		if names := entries(t, dir); len(names) > 0 {
			t.Errorf("the directory contains %q during the writes: a SIGKILL would leave these files", names)
		}
		cancel()
	}})
	if err != nil {
		t.Fatal(err)
	}
	if stats.Syncs < writers || stats.Bytes != stats.Syncs*size || stats.SlowestSync <= 0 || stats.Syncing < stats.SlowestSync {
		t.Errorf("stats = %+v, want complete rounds with durations", stats)
	}
	if names := entries(t, dir); len(names) > 0 {
		t.Errorf("the directory contains %q after the end", names)
	}
}

// On a disk that the neighbour keeps busy, an fsync may take a second. run calls `begun` before the first fsync returns.
func TestReadyDuringFirstFsync(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := slow{begun: make(chan struct{})}
	w := writer{file: f, size: 1, data: []byte("x")}
	if err := w.run(ctx, func() { close(f.begun); cancel() }); err != nil || w.stats.Syncs != 1 {
		t.Errorf("stats = %+v, error %v; want one fsync", w.stats, err)
	}
}

// slow is a file whose fsync blocks until begun is closed.
type slow struct{ begun chan struct{} }

func (slow) Write(p []byte) (int, error)    { return len(p), nil }
func (slow) Seek(int64, int) (int64, error) { return 0, nil }
func (slow) Truncate(int64) error           { return nil }
func (s slow) Sync() error                  { <-s.begun; return nil }

func TestBadOptions(t *testing.T) {
	dir := t.TempDir()
	for want, o := range map[string]Options{
		"are free":       {Dir: dir, Size: 1 << 62, Writers: 200},
		"no such file":   {Dir: filepath.Join(dir, "missing")},
		"not a director": {Dir: file(t, dir)},
	} {
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run(%+v) = %v, want %q in it", o, err, want)
		}
	}
}

func file(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestProgram(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stderr bytes.Buffer
	stdout := &untilReady{cancel: cancel}
	if code := run(ctx, Args(Options{Dir: t.TempDir(), Writers: 2, Size: 4096}), stdout, &stderr); code != 0 {
		t.Fatalf("exit code = %d, want 0: %s", code, &stderr)
	}
	ready, rest, _ := strings.Cut(stdout.String(), "\n")
	var stats Stats
	if err := json.Unmarshal([]byte(rest), &stats); err != nil || ready != ReadyLine || stats.Syncs < 2 || stats.Bytes != 4096*stats.Syncs {
		t.Errorf("output = %q, want ReadyLine and stats: %v", stdout, err)
	}
}

// untilReady is the program's stdout. It ends the program at the first output, ReadyLine.
type untilReady struct {
	bytes.Buffer
	cancel func()
}

func (u *untilReady) Write(p []byte) (int, error) {
	defer u.cancel()
	return u.Buffer.Write(p)
}

func TestUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"--dir is required":    nil,
		`no arguments, got "x`: {"--dir", "/", "x"},
		"invalid value":        {"--dir", "/", "--writers", "many"},
	} {
		var stderr bytes.Buffer
		if code := run(t.Context(), args, &bytes.Buffer{}, &stderr); code != 2 || !strings.Contains(stderr.String(), want) {
			t.Errorf("run(%q) = %d, %s; want 2 and %q", args, code, &stderr, want)
		}
	}
	var stderr bytes.Buffer
	if code := run(t.Context(), Args(Options{Dir: "/no/such/directory"}), &bytes.Buffer{}, &stderr); code != 4 || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("exit code = %d, output %q; want 4 and one line", code, &stderr)
	}
}

func TestOtherFileSystem(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing")
	candidates := []candidate{{"$UNSET", ""}, {"gone", missing}, {"own", dir}}
	_, err := otherFileSystem(dir, candidates)
	for _, want := range []string{dir, "$UNSET: not set", "gone: stat " + missing, "own: the same device"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %q in it", err, want)
		}
	}
	// /proc is a separate device on every machine, and is not writable.
	if _, err := otherFileSystem(dir, []candidate{{"proc", "/proc"}}); err == nil {
		t.Error("otherFileSystem returned /proc")
	}
	if _, err := otherFileSystem(missing, candidates); err == nil {
		t.Error("otherFileSystem of a missing directory returned no error")
	}
	found, err := otherFileSystem("/proc", append(candidates, candidate{"after", "/"}))
	if err != nil || found != dir {
		t.Errorf("otherFileSystem = %q, %v; want %s", found, err, dir)
	}
	if names := entries(t, dir); !slices.Equal(names, nil) {
		t.Errorf("otherFileSystem left %q", names)
	}
}
