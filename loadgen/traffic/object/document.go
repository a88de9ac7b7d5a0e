package object

import "errors"

var (
	errNotJSON   = errors.New("the answer is not JSON")
	errTruncated = errors.New("the answer is not whole JSON")
	errLongValue = errors.New("the answer's continue token or resourceVersion is too long")
)

const (
	// deepest nesting that encoding/json takes.
	deepest = 10000
	// longestValue bounds what is kept of an answer. etcd's tokens have the
	// length of a key, a few hundred bytes.
	longestValue = 16 << 10
)

// document reads one JSON document in pieces of any size. It says whether it is
// valid, as encoding/json.Valid does (a fuzz test holds them together), and
// keeps nothing of it but metadata.continue and metadata.resourceVersion,
// wherever in the document metadata stands.
type document struct {
	state   state
	isKey   bool   // of the string being read
	hex     uint8  // digits to come of an escape
	literal string // what is to come of true, false or null
	depth   int
	arrays  []uint64 // a bit for each level: it is an array

	field  field // of the key that was read last, where it matters
	inMeta bool  // the object at depth 2 is metadata
	keep   field // what the string being read is kept as
	key    []byte
	// token and version are as they stand in the document, escapes and all.
	token, version []byte
}

type state uint8

const (
	beforeValue      state = iota
	beforeValueOrEnd       // of an array
	beforeKey
	beforeKeyOrEnd
	beforeColon
	afterValue
	inString
	inEscape
	inHex
	inLiteral
	inMinus
	inZero
	inInteger
	inPoint
	inFraction
	inE
	inExponentSign
	inExponent
	atEnd
)

// field is a member that is looked at.
type field uint8

const (
	noField field = iota
	fieldKey
	fieldMetadata
	fieldContinue
	fieldVersion
)

func (d *document) reset() {
	*d = document{arrays: d.arrays[:0], key: d.key[:0], token: d.token[:0], version: d.version[:0]}
}

// write reads the next piece. After an error the document is of no use.
func (d *document) write(p []byte) error {
	for i := 0; i < len(p); {
		if d.state == inString {
			n, err := d.inString(p[i:])
			if err != nil {
				return err
			}
			i += n
			continue
		}
		c := p[i]
		if c == ' ' || c == '\n' || c == '\r' || c == '\t' {
			if !d.space() {
				return errNotJSON
			}
			i++
			continue
		}
		again, err := d.step(c)
		if err != nil {
			return err
		}
		if !again {
			i++
		}
	}
	return nil
}

// whole tells that the document has ended.
func (d *document) whole() error {
	if d.state == atEnd || d.depth == 0 && d.number() {
		return nil
	}
	return errTruncated
}

// space is white space outside of strings. It ends a number.
func (d *document) space() bool {
	if d.number() {
		d.ended()
	}
	return d.state <= afterValue || d.state == atEnd
}

// step reads one byte outside of strings. Again: it ended a number, and is to
// be read once more.
func (d *document) step(c byte) (again bool, err error) {
	ok := true
	switch d.state {
	case beforeValueOrEnd:
		if c == ']' {
			d.leave()
			return false, nil
		}
		return false, d.value(c)
	case beforeValue:
		return false, d.value(c)
	case beforeKeyOrEnd, beforeKey:
		switch {
		case c == '"':
			d.beginKey()
		case c == '}' && d.state == beforeKeyOrEnd:
			d.leave()
		default:
			ok = false
		}
	case beforeColon:
		ok = c == ':'
		d.state = beforeValue
	case afterValue:
		return false, d.after(c)
	case inEscape:
		switch c {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			d.state = inString
		case 'u':
			d.state, d.hex = inHex, 4
		default:
			ok = false
		}
		d.kept(c)
	case inHex:
		ok = '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
		if d.hex--; d.hex == 0 {
			d.state = inString
		}
		d.kept(c)
	case inLiteral:
		ok = c == d.literal[0]
		if d.literal = d.literal[1:]; d.literal == "" {
			d.ended()
		}
	case atEnd:
		ok = false
	default:
		return d.digit(c)
	}
	if !ok {
		return false, errNotJSON
	}
	return false, nil
}

// value reads the first byte of a value.
func (d *document) value(c byte) error {
	switch c {
	case '"':
		d.state, d.isKey, d.keep = inString, false, noField
		if d.field == fieldContinue || d.field == fieldVersion {
			d.keep = d.field
			*d.buffer() = (*d.buffer())[:0]
		}
	case '{', '[':
		return d.enter(c == '[')
	case 't':
		d.state, d.literal = inLiteral, "rue"
	case 'f':
		d.state, d.literal = inLiteral, "alse"
	case 'n':
		d.state, d.literal = inLiteral, "ull"
	case '-':
		d.state = inMinus
	case '0':
		d.state = inZero
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		d.state = inInteger
	default:
		return errNotJSON
	}
	d.field = noField
	return nil
}

// after reads what comes after a value that is in another.
func (d *document) after(c byte) error {
	array := d.inArray()
	switch {
	case c == ',' && array:
		d.state = beforeValue
	case c == ',':
		d.state = beforeKey
	case c == ']' && array, c == '}' && !array:
		d.leave()
	default:
		return errNotJSON
	}
	return nil
}

// ended follows each value.
func (d *document) ended() {
	if d.state = afterValue; d.depth == 0 {
		d.state = atEnd
	}
}

func (d *document) enter(array bool) error {
	if d.depth == deepest {
		return errNotJSON
	}
	if d.depth%64 == 0 {
		d.arrays = append(d.arrays[:d.depth/64], 0)
	}
	if bit := uint64(1) << (d.depth % 64); array {
		d.arrays[d.depth/64] |= bit
	} else {
		d.arrays[d.depth/64] &^= bit
	}
	d.depth++
	d.state = beforeKeyOrEnd
	if array {
		d.state = beforeValueOrEnd
	}
	if d.depth == 2 {
		if d.inMeta = d.field == fieldMetadata && !array; d.inMeta {
			d.token, d.version = d.token[:0], d.version[:0] // the last one counts
		}
	}
	d.field = noField
	return nil
}

func (d *document) leave() {
	if d.depth--; d.depth == 1 {
		d.inMeta = false
	}
	d.ended()
}

func (d *document) inArray() bool {
	return d.arrays[(d.depth-1)/64]>>((d.depth-1)%64)&1 != 0
}
