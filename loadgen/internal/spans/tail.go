package spans

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"

	"github.com/stormglass/stormglass/internal/userfile"
)

// Tail reads the spans that another process appends to a file, as OTLP/JSON with one TracesData per line. The file
// exporter of the OpenTelemetry Collector writes such files.
type Tail struct {
	path   string
	file   *os.File // the file that path named when the Tail was opened, or when it was last read
	from   int64    // offset in file after the last whole line that was read
	counts TailCounts
}

// TailCounts holds the numbers of lines and spans that a Tail could not read.
type TailCounts struct {
	// Invalid is the number of spans without a valid ID. Broken is the number of lines that are not OTLP/JSON, or longer
	// than 16 MiB. Partial is 1 if the last line has no newline, because the other process has written only a part of the
	// line.
	Invalid, Broken, Partial int
}

// OpenTail opens a file. Read skips the spans that the file already contains. The caller must call Close.
func OpenTail(path string) (*Tail, error) {
	f, err := userfile.Open(path, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, errors.Join(userfile.Cause(err), f.Close())
	}
	return &Tail{path: path, file: f, from: size}, nil
}

// Close closes the file.
func (t *Tail) Close() error { return t.file.Close() }

// Counts returns what the Tail could not read so far.
func (t *Tail) Counts() TailCounts { return t.counts }

// Read calls take for each span that was appended since the last call. If the file is shorter now, it was truncated, and
// Read begins at its start. If the path names another file, the file was rotated, and Read reads the rest of the old file
// and then the new one. It needs memory for one line.
func (t *Tail) Read(ctx context.Context, take func(Span)) error {
	if err := t.read(ctx, take); err != nil {
		return err
	}
	current, err := userfile.Open(t.path, math.MaxInt64)
	switch {
	case errors.Is(err, fs.ErrNotExist): // removed, or between two steps of a rotation
		return nil
	case err != nil:
		return err
	case sameFile(t.file, current):
		return current.Close()
	}
	t.counts.Broken += t.counts.Partial // the old file does not grow any more
	err = t.file.Close()
	t.file, t.from = current, 0
	return errors.Join(err, t.read(ctx, take))
}

func sameFile(a, b *os.File) bool {
	x, errA := a.Stat()
	y, errB := b.Stat()
	return errA == nil && errB == nil && os.SameFile(x, y)
}

func (t *Tail) read(ctx context.Context, take func(Span)) error {
	size, err := t.file.Seek(0, io.SeekEnd)
	if err != nil {
		return userfile.Cause(err)
	}
	if size < t.from {
		t.from = 0
	}
	t.counts.Partial = 0
	lines := bufio.NewReaderSize(io.NewSectionReader(t.file, t.from, size-t.from), 64<<10)
	for ctx.Err() == nil {
		line, length, err := wholeLine(lines)
		switch {
		case err == io.EOF:
			t.counts.Partial = min(length, 1)
			return nil
		case err != nil:
			return userfile.Cause(err)
		}
		t.from += int64(length)
		invalid, bad := readLine(line, take)
		t.counts.Invalid += invalid
		if bad != nil || line == nil {
			t.counts.Broken++
		}
	}
	return ctx.Err()
}

// wholeLine returns the next line and its length. If the line is longer than longestLine, line is nil. The error is io.EOF
// if the line does not end with a newline.
func wholeLine(r *bufio.Reader) (line []byte, length int, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if length += len(part); length > longestLine {
			line = nil
		} else {
			line = append(line, part...)
		}
		if err != bufio.ErrBufferFull {
			return line, length, err
		}
	}
}
