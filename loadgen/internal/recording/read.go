package recording

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
)

// Maximum lengths of lines, in bytes. The header may be longer than other lines because it lists all actors.
const (
	longestHeader = 64 << 20
	longestLine   = 1 << 20
)

// Reader reads the requests of a recording, one after another.
type Reader struct {
	path   string
	file   io.Closer
	zip    *gzip.Reader
	lines  *bufio.Scanner
	number int64 // number of the current line, from 1
	line   bytes.Reader
	json   *json.Decoder // decodes the value in line
	header Header
	last   Micros
	read   int64
	err    error
}

// Open opens a recording file and reads its header. If the file is invalid, it returns a usage error, in one line, with
// the file, line and field.
func Open(path string) (*Reader, error) {
	f, err := userfile.Open(path, math.MaxInt64)
	if err != nil {
		return nil, exitcode.Usagef("recording %s: %w (create one with `loadgen record`)", path, err)
	}
	return open(path, f)
}

// open reads the header of a recording. If it fails, it closes f.
func open(path string, f io.ReadCloser) (_ *Reader, err error) {
	r := &Reader{path: path, file: f}
	from := bufio.NewReaderSize(f, 256<<10)
	if start, _ := from.Peek(2); string(start) == "\x1f\x8b" {
		if r.zip, err = gzip.NewReader(from); err != nil {
			f.Close()
			return nil, exitcode.Usagef("recording %s: the gzip header is truncated or damaged", path)
		}
		from = bufio.NewReaderSize(r.zip, 256<<10)
	}
	r.lines = bufio.NewScanner(from)
	r.lines.Buffer(make([]byte, 0, 64<<10), longestHeader)
	r.json = json.NewDecoder(&r.line)
	r.json.DisallowUnknownFields()
	err = r.decode(&r.header, longestHeader)
	switch {
	case errors.Is(err, io.EOF):
		err = exitcode.Usagef("recording %s: it is empty (create one with `loadgen record`)", path)
	case err == nil:
		r.header.Format, r.header.Trace = cmp.Or(r.header.Format, r.header.Trace), 0
		err = r.wrong(r.header.Check())
	case exitcode.IsUsage(err):
		err = exitcode.Usagef("%w (is this a recording? create one with `loadgen record`)", err)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

// Header returns the recording's header.
func (r *Reader) Header() Header { return r.header }

// Next reads the next request. It returns io.EOF after the last request, or another error if the number of requests
// differs from the header.
func (r *Reader) Next(into *Request) error {
	if r.err != nil {
		return r.err
	}
	*into = Request{}
	err := r.decode(into, longestLine)
	switch {
	case errors.Is(err, io.EOF) && r.read < r.header.Requests:
		err = exitcode.Usagef("%s:%d: the recording ends after %d of %d requests (the file is truncated)", r.path, r.number, r.read, r.header.Requests)
	case err == nil && r.read == r.header.Requests:
		err = r.wrong(fmt.Errorf("the file has more requests than line 1 says (%d)", r.header.Requests))
	case err == nil:
		err = r.wrong(into.Check(&r.header, r.last))
	}
	if err != nil {
		r.err = err
		return err
	}
	r.last = into.At
	r.read++
	return nil
}

// Requests returns the remaining requests. An error ends the sequence.
func (r *Reader) Requests() iter.Seq2[Request, error] {
	return func(yield func(Request, error) bool) {
		for {
			var next Request
			err := r.Next(&next)
			if errors.Is(err, io.EOF) || !yield(next, err) || err != nil {
				return
			}
		}
	}
}

// Close closes the file.
func (r *Reader) Close() error { return r.file.Close() }

// decode reads the JSON value in the next line that is not blank. It returns io.EOF at the end of the file.
func (r *Reader) decode(into any, longest int) error {
	var line []byte
	for len(line) == 0 {
		more := r.lines.Scan()
		err := r.lines.Err()
		if more && err == nil || errors.Is(err, bufio.ErrTooLong) {
			r.number++
		}
		switch {
		case errors.Is(err, bufio.ErrTooLong), len(r.lines.Bytes()) > longest:
			return r.wrong(fmt.Errorf("the line is longer than %d MiB", longest>>20))
		case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader):
			return exitcode.Usagef("recording %s: the compressed data is truncated or damaged after line %d", r.path, r.number)
		case err != nil:
			return fmt.Errorf("read recording %s: %w", r.path, userfile.Cause(err))
		case !more:
			return io.EOF
		}
		line = bytes.TrimSpace(r.lines.Bytes())
	}
	r.line.Reset(line)
	end := r.json.InputOffset() + int64(len(line))
	if err := r.json.Decode(into); err != nil {
		return r.wrong(jsonError(err))
	}
	if rest := end - r.json.InputOffset(); rest > 0 {
		return r.wrong(errors.New("unexpected data after the JSON object (each line must contain exactly one object)"))
	}
	return nil
}

// wrong adds the file and the line to an error. It returns nil if err is nil.
func (r *Reader) wrong(err error) error {
	if err == nil {
		return nil
	}
	return exitcode.Usagef("%s:%d: %w", r.path, r.number, err)
}

func jsonError(err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("the line ends within its JSON object (the file is truncated)")
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%s: cannot be a %s", kind.Field, kind.Value)
	case errors.As(err, &kind):
		return fmt.Errorf("expected a JSON object, found %s", kind.Value)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}
