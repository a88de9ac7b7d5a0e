package listwatch

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Frames splits the body of a watch response into events. The body may arrive in chunks of any size.
type Frames struct {
	// Lines means that each event is one line, as in JSON. Otherwise a length of four bytes precedes each event, as in
	// protobuf.
	Lines bool

	rest []byte // the incomplete event at the end of the data so far
}

// Feed reads the next bytes of the body, and calls `take` for each event that is now complete. The event is valid only
// during that call.
func (f *Frames) Feed(p []byte, take func(event []byte) error) error {
	if len(f.rest) > 0 {
		p = append(f.rest, p...)
	}
	for len(p) > 0 {
		begin, end, after := f.cut(p)
		if end-begin > MaxEvent {
			return fmt.Errorf("%w: an event has %d bytes, which is too long", ErrMalformed, end-begin)
		}
		if after > len(p) {
			f.rest = append(f.rest[:0], p...)
			return nil
		}
		if err := take(p[begin:end]); err != nil {
			return err
		}
		p = p[after:]
	}
	f.rest = nil // few events arrive in two chunks, so free the memory
	return nil
}

// cut returns the bounds of the first event in p, and the index at which the next event begins. If the first event is
// incomplete, `after` is greater than len(p).
func (f *Frames) cut(p []byte) (begin, end, after int) {
	if f.Lines {
		if end = bytes.IndexByte(p, '\n'); end < 0 {
			end = len(p)
		}
		return 0, end, end + 1
	}
	if len(p) < 4 {
		return 0, 0, len(p) + 1
	}
	end = 4 + int(binary.BigEndian.Uint32(p))
	return 4, end, end
}
