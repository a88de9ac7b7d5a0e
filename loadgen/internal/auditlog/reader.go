package auditlog

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"

	"github.com/klauspost/compress/gzip"

	"github.com/stormglass/stormglass/internal/jsonscan"
)

// Reader reads an audit log, which may be compressed with gzip.
type Reader struct {
	from  *bufio.Reader
	scan  jsonscan.Scanner
	line  line
	event *Event
	// begun reports whether the Reader has checked for compression. zipped reports whether the log is compressed; from
	// then returns decompressed text.
	begun, zipped bool
	// Skipped counts the lines that are not valid events.
	Skipped Skipped
	// Lines is the number of lines read so far.
	Lines int64
	// Beta is the number of events with version audit.k8s.io/v1beta1, which has the same fields as v1.
	Beta int64
}

// Skipped counts invalid lines by cause.
type Skipped struct {
	// Cut counts lines that end within an event. That happens if a server was killed or the log was split.
	Cut Lines
	// NoJSON counts lines that are not JSON objects. NoEvent counts lines that are not audit events of a supported
	// version, or that lack a required field.
	NoJSON, NoEvent Lines
}

// Lines is a number of lines. First is the line number of the first one, counted from 1.
type Lines struct{ Count, First int64 }

func (l *Lines) add(number int64) {
	if l.Count++; l.Count == 1 {
		l.First = number
	}
}

// ErrCut reports that the compressed data of a log is truncated or damaged.
var ErrCut = errors.New("the compressed data is truncated or damaged")

// Maximum sizes in bytes. The longest expected keys are names of fields, the longest expected values are URIs with
// selectors.
const (
	longestKey   = 64
	longestValue = 128 << 10
)

// NewReader returns a Reader for a log.
func NewReader(from io.Reader) *Reader {
	return &Reader{from: bufio.NewReaderSize(from, bufferSize), scan: jsonscan.Scanner{LongestKey: longestKey, LongestValue: longestValue}}
}

const bufferSize = 256 << 10

// unzip makes the Reader decompress the log if it is compressed.
func (r *Reader) unzip() error {
	r.begun = true
	if start, _ := r.from.Peek(2); string(start) != "\x1f\x8b" {
		return nil
	}
	zip, err := gzip.NewReader(r.from)
	if err != nil {
		return ErrCut
	}
	r.from, r.zipped = bufio.NewReaderSize(zip, bufferSize), true
	return nil
}

// Next reads the next event. It skips and counts invalid lines. At the end of the log it returns io.EOF.
func (r *Reader) Next(e *Event) error {
	r.event = e
	if !r.begun {
		if err := r.unzip(); err != nil {
			return err
		}
	}
	for {
		outcome, err := r.readLine()
		if err != nil {
			return err
		}
		switch outcome {
		case isEvent:
			return nil
		case isCut:
			r.Skipped.Cut.add(r.Lines)
		case isNoJSON:
			r.Skipped.NoJSON.add(r.Lines)
		case isNoEvent:
			r.Skipped.NoEvent.add(r.Lines)
		}
	}
}

type outcome uint8

const (
	isBlank outcome = iota
	isEvent
	isCut
	isNoJSON
	isNoEvent
)

// readLine reads one line, in several parts if it is long.
func (r *Reader) readLine() (outcome, error) {
	r.scan.Reset()
	r.event.reset()
	r.line = line{}
	var broken, begun bool
	for first := true; ; first = false {
		piece, err := r.from.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			if r.zipped && !errors.As(err, new(*fs.PathError)) {
				err = ErrCut
			}
			return 0, err
		}
		if first && len(piece) == 0 {
			return 0, io.EOF
		}
		if first {
			r.Lines++
		}
		begun = begun || len(bytes.TrimSpace(piece)) > 0
		if !broken {
			broken = r.feed(bytes.TrimSuffix(piece, []byte("\n"))) != nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		switch {
		case !begun:
			return isBlank, nil
		case broken:
			return isNoJSON, nil
		case !r.scan.Complete():
			return isCut, nil
		case !r.complete():
			return isNoEvent, nil
		}
		return isEvent, nil
	}
}
