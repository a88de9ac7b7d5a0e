package watch

import "github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"

// protoScanner reads a stream of watch events, or one list, in protobuf. It skips unneeded fields by their length. In
// the fields that it reads, it accepts what apimachinery's generated decoders accept (see the fuzz test), except input
// that Kubernetes never writes: for example, a message that occurs twice, an object in another encoding, an
// annotation's value before its key, or a value that is too long.
type protoScanner struct {
	sink eventSink
	root protoLevel

	ev    event
	state protoState
	level protoLevel
	left  [protoLevels]uint64 // remaining bytes of each open message
	had   [protoLevels]bool   // whether each message has occurred in this event
	value uint64              // value of the number that is being read
	count uint8               // number of bytes of value that were read
	field field
	need  uint64 // remaining bytes of a string that is being read, or of data to skip
	entry field  // field for the value of the current annotation
	named bool   // whether the key of the current annotation was read
	// partial contains the bytes of the current string that have arrived.
	partial []byte
}

type protoState uint8

const (
	inLength protoState = iota // reads the length of an event
	inMagic
	inTag
	inNumber
	inFieldLength
	inKept
	inSkipped
)

// Wire types (protobuf encoding).
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

// magic is the prefix of every object (apimachinery, serializer/protobuf).
const magic = "k8s\x00"

// unbounded is the length of a message that extends to the end of the stream.
const unbounded = 1 << 62

// newProto returns a scanner for events (levelEvent) or for one list (levelObject). For a list, it reports an event with
// the list's version as soon as the version has been read.
func newProto(sink eventSink, root level) *protoScanner {
	s := &protoScanner{sink: sink, root: protoEvent}
	if root == levelObject {
		s.root = protoEnvelope
	}
	s.reset()
	return s
}

func (s *protoScanner) reset() {
	*s = protoScanner{sink: s.sink, root: s.root, partial: s.partial[:0], ev: event{stamp: s.ev.stamp[:0]}}
	if s.root == protoEnvelope {
		s.level, s.state = protoEnvelope, inMagic
		s.left[protoEnvelope] = unbounded
	}
}

func (s *protoScanner) idle() bool {
	if s.root == protoEnvelope {
		return s.level == protoEnvelope && s.state == inTag && s.count == 0
	}
	return s.state == inLength && s.count == 0
}

func (s *protoScanner) feed(p []byte) error {
	for len(p) > 0 {
		n, err := 1, error(nil)
		switch s.state {
		case inLength:
			err = s.length(p[0])
		case inMagic:
			if p[0] != magic[s.count] {
				return malformed("an object does not begin with %q", magic)
			}
			s.left[s.level]--
			if s.count++; s.count == uint8(len(magic)) {
				s.count, s.state = 0, inTag
				err = s.ended()
			}
		case inKept:
			n, err = s.kept(p)
		case inSkipped:
			n = int(min(s.need, uint64(len(p))))
			if s.need -= uint64(n); s.need == 0 {
				s.state = inTag
				err = s.ended()
			}
		default:
			err = s.number(p[0])
		}
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

func (s *protoScanner) length(c byte) error {
	s.value = s.value<<8 | uint64(c)
	if s.count++; s.count < 4 {
		return nil
	}
	n := s.value
	s.value, s.count = 0, 0
	if n == 0 || n > listwatch.MaxEvent {
		return malformed("an event of %d bytes", n)
	}
	s.ev = event{stamp: s.ev.stamp[:0]}
	s.had = [protoLevels]bool{}
	s.level, s.state = protoEvent, inTag
	s.left[protoEvent] = n
	return nil
}

// number reads one byte of a varint, which is a tag, a length or the value of a field.
func (s *protoScanner) number(c byte) error {
	if s.left[s.level] == 0 {
		return malformed("a message ends within a field")
	}
	s.left[s.level]--
	s.value |= uint64(c&0x7f) << (7 * s.count)
	s.count++
	if c >= 0x80 {
		if s.count == 10 {
			return malformed("a number has more than 64 bits")
		}
		if s.left[s.level] == 0 {
			return malformed("a message ends within a field")
		}
		return nil
	}
	v := s.value
	s.value, s.count = 0, 0
	switch s.state {
	case inTag:
		return s.tag(v)
	case inFieldLength:
		return s.content(v)
	}
	if s.field == fieldCode {
		s.ev.code = int(int32(v))
	}
	s.state = inTag
	return s.ended()
}

func (s *protoScanner) tag(v uint64) error {
	number, wire := int32(v>>3), v&7
	if number <= 0 {
		return malformed("field number %d", number)
	}
	s.field = s.meaning(number)
	if s.field == fieldCode && wire != wireVarint {
		s.field = noField // a field with another wire type
	}
	if s.field != noField && (wire == wireBytes) == (s.field == fieldCode) {
		return malformed("wire type %d of field %d", wire, number)
	}
	switch wire {
	case wireVarint:
		s.state = inNumber
	case wireBytes:
		s.state = inFieldLength
	case wire64:
		return s.content(8)
	case wire32:
		return s.content(4)
	default:
		return malformed("wire type %d", wire)
	}
	if s.left[s.level] == 0 {
		return malformed("a message ends within a field")
	}
	return nil
}

// content begins to read the content of a field. The content is n bytes long.
func (s *protoScanner) content(n uint64) error {
	if n > s.left[s.level] {
		return malformed("a field has %d bytes, but only %d are left", n, s.left[s.level])
	}
	s.left[s.level] -= n
	switch s.field {
	case noField:
		s.state, s.need = inSkipped, n
	case fieldDescend:
		s.level++
		if s.had[s.level] && s.level != protoEntry {
			return malformed("a message occurs twice")
		}
		s.had[s.level] = true
		s.left[s.level] = n
		s.state = inTag
		switch s.level {
		case protoEnvelope:
			if n < uint64(len(magic)) {
				return malformed("an object of %d bytes", n)
			}
			s.state = inMagic
		case protoEntry:
			s.entry, s.named = noField, false
		}
		return s.ended()
	default:
		if n > longestValue && s.field != fieldKey {
			return errLongValue
		}
		if n > longestKey && s.field == fieldKey {
			s.entry, s.named = noField, true // too long for a key that matters
			s.state, s.need = inSkipped, n
			return nil
		}
		s.state, s.need, s.partial = inKept, n, s.partial[:0]
	}
	if n > 0 {
		return nil
	}
	if s.state == inKept {
		if err := s.keep(nil); err != nil {
			return err
		}
	}
	s.state = inTag
	return s.ended()
}

// kept consumes the bytes of p that belong to a string whose value the scanner needs. It returns their number.
func (s *protoScanner) kept(p []byte) (int, error) {
	n := int(min(s.need, uint64(len(p))))
	token := p[:n]
	s.need -= uint64(n)
	if s.need > 0 || len(s.partial) > 0 {
		s.partial = append(s.partial, token...)
		token = s.partial
	}
	if s.need > 0 {
		return n, nil
	}
	s.state = inTag
	if err := s.keep(token); err != nil {
		return 0, err
	}
	return n, s.ended()
}

// ended ends all open messages that have no bytes left.
func (s *protoScanner) ended() error {
	for s.state == inTag && s.left[s.level] == 0 {
		if s.level > s.root {
			s.level--
			if s.level == protoObject && s.root == protoEnvelope {
				if err := s.sink.take(&s.ev); err != nil {
					return err
				}
			}
			continue
		}
		if !s.had[protoEnvelope] {
			return malformed("an event has no object")
		}
		s.state = inLength
		return s.sink.take(&s.ev)
	}
	return nil
}
