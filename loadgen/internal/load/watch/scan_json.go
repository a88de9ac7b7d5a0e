package watch

import (
	"errors"

	"github.com/stormglass/stormglass/internal/cborscan"
	"github.com/stormglass/stormglass/internal/jsonscan"
)

// jsonScanner reads watch events, lists or objects in JSON or CBOR. It accepts all documents that encoding/json
// accepts, with two exceptions: a document must be an object, and the values that the scanner keeps must not be too
// long.
type jsonScanner struct {
	sink eventSink
	root level // level of the outermost object
	text jsonscan.Tokens

	ev    event
	level level // level of the object that is being read
	field field // field of the last key
}

// newJSON returns a scanner for JSON. root selects what it reads: events (levelEvent), or objects and lists
// (levelObject). For an object or a list, the scanner reports an event without a kind.
func newJSON(sink eventSink, root level) *jsonScanner {
	return &jsonScanner{sink: sink, root: root, text: &jsonscan.Scanner{
		Stream: true, LongestKey: longestKey, LongestValue: longestValue,
	}}
}

// newCBOR is like newJSON, for CBOR.
func newCBOR(sink eventSink, root level) *jsonScanner {
	return &jsonScanner{sink: sink, root: root, text: &cborscan.Scanner{
		Stream: true, LongestKey: longestKey, LongestValue: longestValue,
	}}
}

func (s *jsonScanner) idle() bool { return s.text.Complete() }

func (s *jsonScanner) reset() {
	s.text.Reset()
	s.level = outside
}

func (s *jsonScanner) feed(p []byte) error {
	for len(p) > 0 {
		n, token, err := s.text.Next(p)
		if err != nil {
			if errors.Is(err, jsonscan.ErrLong) {
				return errLongValue
			}
			return malformed("%v", err)
		}
		p = p[n:]
		switch token {
		case jsonscan.Key:
			s.key(s.text.Text())
		case jsonscan.String:
			if s.field != fieldCode {
				s.ev.set(s.field, s.text.Text())
			}
		case jsonscan.Number:
			if s.field == fieldCode {
				s.ev.set(fieldCode, s.text.Text())
			}
		case jsonscan.Object:
			if s.level != outside {
				s.level++
				continue
			}
			s.level, s.ev = s.root, event{stamp: s.ev.stamp[:0]}
		case jsonscan.End:
			if s.level > s.root {
				s.level--
				continue
			}
			s.level = outside
			if err := s.sink.take(&s.ev); err != nil {
				return err
			}
		}
	}
	return nil
}

// key handles an object key. If its value is needed, the scanner keeps it. A later value replaces an earlier value of
// the same key.
func (s *jsonScanner) key(text []byte) {
	s.field = fieldOf(s.level, text)
	switch s.field {
	case noField:
		return
	case fieldDescend:
		s.text.Enter()
	default:
		s.text.Keep()
	}
	s.ev.set(s.field, nil)
	if s.field == fieldDescend {
		e := &s.ev
		e.stamp, e.ends = e.stamp[:0], false
		if s.level <= levelObject {
			e.rv, e.name, e.namespace = 0, 0, 0
		}
		if s.level == levelEvent {
			e.code = 0
		}
	}
}
