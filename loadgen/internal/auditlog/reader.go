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

// Reader reads an audit log, which may be compressed with gzip. An event is normally one line, but it may have several
// lines, and a line may have several events.
type Reader struct {
	from  *bufio.Reader
	scan  jsonscan.Scanner
	line  line
	event *Event
	// begun reports whether the Reader has checked for compression. zipped reports whether the log is compressed;
	// `from` then returns decompressed text.
	begun, zipped bool
	rest          []byte // part of the current line that is in memory and unread
	open          bool   // whether the current line continues after rest
	// Skipped counts the records that are not valid events, by reason.
	Skipped Skipped
	// Lines is the number of lines read so far.
	Lines int64
	// Beta is the number of events with version audit.k8s.io/v1beta1, which has the same fields as v1. OneTime is the
	// number of events that have only one of requestReceivedTimestamp and stageTimestamp.
	Beta, OneTime int64
}

// Reason is the reason for skipping a record.
type Reason uint8

// Reasons for skipping records. A Cut record ends within an event, for example because the API server was killed or the
// log was split.
const (
	Cut Reason = iota
	NoJSON
	NoEvent
	EventList
	Incomplete
	NoTime
	reasons // number of reasons
	valid   = reasons
)

func (r Reason) String() string {
	return [reasons]string{
		Cut: "end within an event", NoJSON: "are not JSON objects", NoEvent: "are not events of audit.k8s.io/v1 or v1beta1",
		EventList: "are lists of events, which jq -c '.items[]' splits", Incomplete: "lack auditID, verb or a known stage",
		NoTime: "have neither requestReceivedTimestamp nor stageTimestamp",
	}[r]
}

// Skipped counts skipped records by Reason.
type Skipped [reasons]Lines

// Total returns the number of skipped records.
func (s *Skipped) Total() (n int64) {
	for _, lines := range s {
		n += lines.Count
	}
	return n
}

// Lines counts records. First is the number of the line where the first of them begins, counted from 1.
type Lines struct{ Count, First int64 }

// ErrCut reports that the compressed data of a log is truncated or damaged.
var ErrCut = errors.New("the compressed data is truncated or damaged")

// Maximum sizes in bytes. The longest expected keys are names of fields, and the longest expected values are URIs with
// selectors.
const (
	longestKey   = 64
	longestValue = 128 << 10
)

// NewReader returns a Reader for a log.
func NewReader(from io.Reader) *Reader {
	return &Reader{from: bufio.NewReaderSize(from, bufferSize), scan: jsonscan.Scanner{Stream: true, LongestKey: longestKey, LongestValue: longestValue}}
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

// Next reads the next event. It skips and counts invalid records. At the end of the log it returns io.EOF.
func (r *Reader) Next(e *Event) error {
	r.event = e
	if !r.begun {
		if err := r.unzip(); err != nil {
			return err
		}
	}
	for {
		begin, reason, err := r.read()
		if err != nil || reason == valid {
			return err
		}
		s := &r.Skipped[reason]
		if s.Count++; s.Count == 1 {
			s.First = begin
		}
	}
}

// read reads one record. begin is the number of its first line.
func (r *Reader) read() (begin int64, _ Reason, _ error) {
	r.scan.Reset()
	r.event.reset()
	r.line = line{}
	for {
		if len(r.rest) == 0 {
			// The next line continues this record unless it begins like a new record.
			if begin > 0 && !r.open {
				if next, _ := r.from.Peek(1); len(next) == 0 || next[0] == '{' {
					return begin, Cut, nil
				}
			}
			if err := r.fill(); err != nil {
				return 0, 0, err
			}
		}
		if begin == 0 {
			if r.rest = bytes.TrimLeft(r.rest, " \t\r"); len(r.rest) == 0 {
				continue
			}
			begin = r.Lines
		}
		unread := r.rest
		done, err := r.feed()
		switch {
		case err != nil && begin < r.Lines: // the current line is not part of the record
			r.rest = unread
			return begin, Cut, nil
		case err != nil:
			for r.open {
				if err := r.fill(); err != nil {
					return 0, 0, err
				}
			}
			r.rest = nil
			return begin, NoJSON, nil
		case done:
			return begin, r.complete(), nil
		}
	}
}

// fill reads the next line, or the next part of a long line.
func (r *Reader) fill() error {
	piece, err := r.from.ReadSlice('\n')
	more := errors.Is(err, bufio.ErrBufferFull)
	switch {
	case err != nil && !more && !errors.Is(err, io.EOF):
		if r.zipped && !errors.As(err, new(*fs.PathError)) {
			err = ErrCut
		}
		return err
	case len(piece) == 0 && !r.open:
		return io.EOF
	}
	if !r.open {
		r.Lines++
	}
	r.rest, r.open = bytes.TrimSuffix(piece, []byte("\n")), more
	return nil
}
