package traffic

import (
	"fmt"
	"strconv"
)

// StampAnnotation marks a measured write: "<ledger id>:<sequence number>".
const StampAnnotation = "stormglass.dev/stamp"

// eventKind is the type of a watch event.
type eventKind uint8

const (
	unknownEvent eventKind = iota
	added
	modified
	deleted
	bookmark
	errorEvent
)

// event is what is read of one watch event (or, from a scanner of plain
// objects, of one object).
type event struct {
	kind eventKind
	// rv is object.metadata.resourceVersion; 0 if absent or not a number.
	rv uint64
	// code is object.code: the HTTP status of an ERROR event.
	code int
	// stamp is the value of StampAnnotation, valid until take returns.
	stamp []byte
}

// eventSink takes the events that a scanner finds.
type eventSink interface{ take(*event) }

// scanner finds the events in a stream of JSON documents that is fed to it in
// pieces of any size. It decodes nothing else and holds nothing of a document
// but the few values above, so its memory does not depend on the size of the
// objects; it needs no reader of its own, so any loop that gets hold of bytes
// can drive it. It skips what it does not need without validating it: every
// stream that encoding/json accepts gives the same events (a fuzz test says
// so), but some are accepted that encoding/json refuses.
type scanner struct {
	sink eventSink
	root level // of a whole document

	ev      event
	level   level
	state   scanState
	field   field // of the key just read
	nesting int   // of a skipped value
	// Of the string being read:
	quote   bool   // in a string inside a skipped value
	escaped bool   // the piece before ended on a backslash
	escapes bool   // there was one in this string
	keep    bool   // the string is wanted
	partial []byte // what earlier pieces held of it
}

// level is the object being read. They nest in this order.
type level uint8

const (
	outside level = iota
	levelEvent
	levelObject
	levelMetadata
	levelAnnotations
)

// field is a member that is read, by level.
type field uint8

const (
	noField field = iota
	fieldType
	fieldCode
	fieldRV
	fieldStamp
	fieldDescend // the object of the next level
)

type scanState uint8

const (
	beforeDocument scanState = iota
	beforeKeyOrEnd
	beforeKey
	inKey
	beforeColon
	beforeValue
	inString
	inScalar
	inSkipped
	afterValue
)

// newEventScanner reads watch events.
func newEventScanner(sink eventSink) scanner { return scanner{sink: sink, root: levelEvent} }

// newObjectScanner reads plain objects: rv, code (of a Status) and stamp.
func newObjectScanner(sink eventSink) scanner { return scanner{sink: sink, root: levelObject} }

// feed reads the next piece of the stream. After an error the scanner is of no
// further use.
func (s *scanner) feed(p []byte) error {
	for len(p) > 0 {
		var n int
		var err error
		switch s.state {
		case inKey, inString:
			n, err = s.readString(p)
		case inScalar:
			n, err = s.readScalar(p)
		case inSkipped:
			n = s.skip(p)
		default:
			n, err = 1, s.readByte(p[0])
		}
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// readByte reads what is between keys and values.
func (s *scanner) readByte(c byte) error {
	if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
		return nil
	}
	switch {
	case s.state == beforeDocument && c == '{':
		s.level, s.ev = s.root, event{stamp: s.ev.stamp[:0]}
		s.state = beforeKeyOrEnd
	case c == '"' && (s.state == beforeKey || s.state == beforeKeyOrEnd):
		s.beginString(inKey, true)
	case c == ':' && s.state == beforeColon:
		s.state = beforeValue
	case s.state == beforeValue:
		return s.beginValue(c)
	case c == ',' && s.state == afterValue:
		s.state = beforeKey
	case c == '}' && (s.state == afterValue || s.state == beforeKeyOrEnd):
		s.endObject()
	default:
		return fmt.Errorf("unexpected %q between JSON values", c)
	}
	return nil
}

func (s *scanner) endObject() {
	s.state = afterValue
	if s.level == s.root {
		s.level, s.state = outside, beforeDocument
		s.sink.take(&s.ev)
		return
	}
	s.level--
}

// beginValue forgets what an earlier key of the same name has set: the last
// one counts, as in encoding/json.
func (s *scanner) beginValue(c byte) error {
	switch s.field {
	case fieldType:
		s.ev.kind = unknownEvent
	case fieldCode:
		s.ev.code = 0
	case fieldRV:
		s.ev.rv = 0
	case fieldStamp:
		s.ev.stamp = s.ev.stamp[:0]
	case fieldDescend:
		s.ev.stamp = s.ev.stamp[:0]
		if s.level <= levelObject {
			s.ev.rv = 0
		}
		if s.level == levelEvent {
			s.ev.code = 0
		}
	}
	switch {
	case c == '"':
		s.beginString(inString, s.field == fieldType || s.field == fieldRV || s.field == fieldStamp)
	case c == '{' && s.field == fieldDescend:
		s.level++
		s.state = beforeKeyOrEnd
	case c == '{' || c == '[':
		s.state, s.nesting, s.quote = inSkipped, 1, false
	case scalarByte(c):
		s.state, s.partial = inScalar, append(s.partial[:0], c)
	default:
		return fmt.Errorf("unexpected %q where a JSON value begins", c)
	}
	return nil
}

// readScalar reads on in a number, true, false or null.
func (s *scanner) readScalar(p []byte) (int, error) {
	n := 0
	for n < len(p) && scalarByte(p[n]) {
		n++
	}
	if s.partial = append(s.partial, p[:n]...); len(s.partial) > longestValue {
		return 0, errLongValue
	}
	if n < len(p) {
		s.state = afterValue
		if s.field == fieldCode {
			s.ev.code, _ = strconv.Atoi(string(s.partial))
		}
	}
	return n, nil
}

// skip reads on in an object or array that does not matter.
func (s *scanner) skip(p []byte) int {
	for i := 0; i < len(p); i++ {
		if s.quote {
			end, ended := s.stringEnd(p[i:])
			s.quote = !ended
			i += end
			continue
		}
		switch p[i] {
		case '"':
			s.quote, s.escaped = true, false
		case '{', '[':
			s.nesting++
		case '}', ']':
			if s.nesting--; s.nesting == 0 {
				s.state = afterValue
				return i + 1
			}
		}
	}
	return len(p)
}

func scalarByte(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E'
}

func fieldOf(l level, key []byte) field {
	switch l {
	case levelEvent:
		switch string(key) {
		case "type":
			return fieldType
		case "object":
			return fieldDescend
		}
	case levelObject:
		switch string(key) {
		case "metadata":
			return fieldDescend
		case "code":
			return fieldCode
		}
	case levelMetadata:
		switch string(key) {
		case "annotations":
			return fieldDescend
		case "resourceVersion":
			return fieldRV
		}
	case levelAnnotations:
		if string(key) == StampAnnotation {
			return fieldStamp
		}
	}
	return noField
}

func kindOf(value []byte) eventKind {
	switch string(value) {
	case "ADDED":
		return added
	case "MODIFIED":
		return modified
	case "DELETED":
		return deleted
	case "BOOKMARK":
		return bookmark
	case "ERROR":
		return errorEvent
	}
	return unknownEvent
}
