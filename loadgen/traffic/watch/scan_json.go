package watch

// jsonScanner reads a stream of JSON documents: newline-delimited watch
// events, a list, an object. It takes what encoding/json takes and refuses what
// that refuses, byte by byte (a fuzz test says so), but for two things: a
// document must be an object, and the few values it keeps must be short.
type jsonScanner struct {
	sink eventSink
	root level // of a whole document

	ev    event
	state jsonState
	// level is that of the innermost object whose members matter, beyond is how
	// many objects and arrays are open within it that do not.
	level   level
	field   field // of the key just read
	beyond  int
	arrays  uint64   // the innermost 64 of those: a bit is set for an array
	further []uint64 // the others, by 64
	hex     uint8    // digits of a \u still to come
	literal string   // rest of true, false, null
	// Of the string or number being read:
	inKey   bool
	keep    bool   // it is wanted
	escapes bool   // there was one
	partial []byte // what came before this piece
}

type jsonState uint8

const (
	beforeDocument jsonState = iota
	beforeKeyOrEnd
	beforeKey
	beforeColon
	beforeValue
	beforeValueOrEnd
	afterValue
	inString
	inEscape
	inHex
	inLiteral
	// Numbers, by what was read last.
	afterMinus
	afterZero
	inInteger
	afterDot
	inFraction
	afterE
	afterESign
	inExponent
)

// deepest nesting that encoding/json reads.
const deepest = 10000

// newJSONEvents reads watch events.
func newJSONEvents(sink eventSink) *jsonScanner { return &jsonScanner{sink: sink, root: levelEvent} }

// newJSONObjects reads plain objects and lists: rv, code (of a Status), stamp.
func newJSONObjects(sink eventSink) *jsonScanner { return &jsonScanner{sink: sink, root: levelObject} }

func (s *jsonScanner) idle() bool { return s.state == beforeDocument }

func (s *jsonScanner) reset() {
	*s = jsonScanner{
		sink: s.sink, root: s.root, partial: s.partial[:0], further: s.further[:0],
		ev: event{stamp: s.ev.stamp[:0]},
	}
}

func (s *jsonScanner) feed(p []byte) error {
	for i := 0; i < len(p); {
		if s.state == inString {
			n, err := s.text(p[i:])
			if err != nil {
				return err
			}
			i += n
			continue
		}
		c := p[i]
		if s.state < inString {
			i++
			if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
				continue
			}
			if err := s.structure(c); err != nil {
				return err
			}
			continue
		}
		again, err := s.token(c)
		if err != nil {
			return err
		}
		if !again {
			i++
		}
	}
	return nil
}

// structure reads what is between strings, numbers and literals.
func (s *jsonScanner) structure(c byte) error {
	switch s.state {
	case beforeDocument:
		if c == '{' {
			s.level, s.beyond = s.root, 0
			s.ev = event{stamp: s.ev.stamp[:0]}
			s.state = beforeKeyOrEnd
			return nil
		}
	case beforeKeyOrEnd, beforeKey:
		switch {
		case c == '"':
			s.begin(true, s.beyond == 0)
			return nil
		case c == '}' && s.state == beforeKeyOrEnd:
			return s.close()
		}
	case beforeColon:
		if c == ':' {
			s.state = beforeValue
			return nil
		}
	case afterValue:
		array := s.beyond > 0 && s.arrays&1 == 1
		switch {
		case c == ',' && array:
			s.state = beforeValue
			return nil
		case c == ',':
			s.state = beforeKey
			return nil
		case c == ']' && array, c == '}' && !array:
			return s.close()
		}
	case beforeValueOrEnd:
		if c == ']' {
			return s.close()
		}
		return s.value(c)
	case beforeValue:
		return s.value(c)
	}
	return malformed("unexpected %q between JSON values", c)
}

// value reads the first byte of a value.
func (s *jsonScanner) value(c byte) error {
	matters := s.beyond == 0 && s.field != noField
	if matters {
		s.forget()
	}
	switch c {
	case '"':
		s.begin(false, matters && s.field != fieldCode && s.field != fieldDescend)
	case '{':
		if matters && s.field == fieldDescend {
			s.level++
		} else if err := s.open(0); err != nil {
			return err
		}
		s.state = beforeKeyOrEnd
	case '[':
		s.state = beforeValueOrEnd
		return s.open(1)
	case 't':
		s.state, s.literal = inLiteral, "rue"
	case 'f':
		s.state, s.literal = inLiteral, "alse"
	case 'n':
		s.state, s.literal = inLiteral, "ull"
	default:
		switch {
		case c == '-':
			s.state = afterMinus
		case c == '0':
			s.state = afterZero
		case '1' <= c && c <= '9':
			s.state = inInteger
		default:
			return malformed("unexpected %q where a JSON value begins", c)
		}
		if s.keep = matters && s.field == fieldCode; s.keep {
			s.partial = append(s.partial[:0], c)
		}
	}
	return nil
}

// forget drops what an earlier key of the same name has set: the last one
// counts, as in encoding/json.
func (s *jsonScanner) forget() {
	e := &s.ev
	switch s.field {
	case fieldType:
		e.kind = unknownEvent
	case fieldCode:
		e.code = 0
	case fieldRV:
		e.rv = 0
	case fieldName:
		e.name = 0
	case fieldNamespace:
		e.namespace = 0
	case fieldStamp:
		e.stamp = e.stamp[:0]
	case fieldEnds:
		e.ends = false
	case fieldDescend:
		e.stamp, e.ends = e.stamp[:0], false
		if s.level <= levelObject {
			e.rv, e.name, e.namespace = 0, 0, 0
		}
		if s.level == levelEvent {
			e.code = 0
		}
	}
}

// open goes into an object or an array whose members do not matter.
func (s *jsonScanner) open(array uint64) error {
	if int(s.level-s.root)+1+s.beyond >= deepest {
		return malformed("JSON nested deeper than %d", deepest)
	}
	if s.beyond > 0 && s.beyond%64 == 0 {
		s.further = append(s.further, s.arrays)
	}
	s.arrays = s.arrays<<1 | array
	s.beyond++
	return nil
}

// close leaves an object or an array.
func (s *jsonScanner) close() error {
	s.state = afterValue
	switch {
	case s.beyond > 0:
		s.beyond--
		s.arrays >>= 1
		if n := len(s.further); n > 0 && s.beyond%64 == 0 {
			s.arrays, s.further = s.further[n-1], s.further[:n-1]
		}
	case s.level == s.root:
		s.level, s.state = outside, beforeDocument
		return s.sink.take(&s.ev)
	default:
		s.level--
	}
	return nil
}
