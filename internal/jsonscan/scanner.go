// Package jsonscan reads JSON as it arrives, in pieces cut anywhere, without holding it: a Scanner returns the few
// keys and values that its user looks for and skips the rest, without allocations. It accepts and refuses exactly
// the same texts as encoding/json, byte by byte; a fuzz test verifies that.
package jsonscan

import (
	"errors"
	"fmt"
)

// Token is the kind of token that Next found.
type Token uint8

// The tokens. Unwanted values give none.
const (
	None   Token = iota // the piece is used up
	Key                 // of a member of an entered object: Text is the key; invalid UTF-8 in it stays unchanged
	String              // the value asked for with Keep: Text is its meaning
	Number              // the same: Text is as written
	Object              // an object begins that is entered
	End                 // and ends
)

// ErrLong is a value asked for with Keep that is longer than LongestValue.
var ErrLong = errors.New("a value that should be short is not")

// deepest nesting that encoding/json reads.
const deepest = 10000

// Scanner reads one JSON text, or a stream of objects. It returns the keys of entered objects; after each the
// caller calls Keep or Enter, or skips the value. The outermost object is entered, arrays never. Set the exported
// fields first.
type Scanner struct {
	// Stream: objects, with white space between them. Otherwise it is one text of any kind.
	Stream bool
	// LongestKey bounds the keys that are given, in bytes as written; longer ones are skipped. A kept value longer
	// than LongestValue is ErrLong.
	LongestKey, LongestValue int

	state   state
	want    want     // of the value to come
	entered int      // objects that are open
	beyond  int      // objects and arrays open within those that are read over
	arrays  uint64   // the innermost 64 of these: a bit is set for an array
	further []uint64 // the outer ones, 64 each
	hex     uint8    // digits of a \u still to come
	literal string   // rest of true, false, null
	// Of the string or number being read:
	inKey   bool
	keep    bool   // it is wanted
	escapes bool   // there was one
	partial []byte // the part of it in earlier pieces
	meaning []byte // what stands for text with escapes
	text    []byte // of the token
}

type state uint8

const (
	beforeText state = iota
	beforeKeyOrEnd
	beforeKey
	beforeColon
	beforeValue
	beforeValueOrEnd
	afterValue
	afterText
	inString
	inEscape
	inHex
	inLiteral
	// Numbers, by the character read last.
	afterMinus
	afterZero
	inInteger
	afterDot
	inFraction
	afterE
	afterESign
	inExponent
)

// want is the wanted part of a value.
type want uint8

const (
	nothing want = iota
	content
	members
)

// Keep asks for the value of the key just given, if it is a string or a number.
func (s *Scanner) Keep() { s.want = content }

// Enter asks for the members of the value of the key just given, if it is an object.
func (s *Scanner) Enter() { s.want = members }

// Text returns the text of the token just given. It is valid until the next call, and only as long as the piece
// is.
func (s *Scanner) Text() []byte { return s.text }

// Complete reports whether the input may end here.
func (s *Scanner) Complete() bool {
	if s.Stream {
		return s.state == beforeText
	}
	return s.state == afterText || s.entered+s.beyond == 0 && s.numberMayEnd()
}

// Reset makes it ready for another input.
func (s *Scanner) Reset() {
	*s = Scanner{
		Stream: s.Stream, LongestKey: s.LongestKey, LongestValue: s.LongestValue,
		further: s.further[:0], partial: s.partial[:0], meaning: s.meaning[:0],
	}
}

// Next reads p up to the next token and returns how many bytes it took; the rest is to be given again. After an
// error the scanner has to be reset.
func (s *Scanner) Next(p []byte) (n int, t Token, err error) {
	for i := 0; i < len(p); {
		c := p[i]
		// The most frequent case comes first.
		switch {
		case s.state == inString:
			n, t, err = s.string(p[i:])
			i += n
		case c == '"' && (s.state == beforeKey || s.state == beforeKeyOrEnd):
			i++
			if s.beyond > 0 {
				i += s.skip(p[i:], true)
				continue
			}
			s.begin(true, true)
			n, t, err = s.string(p[i:])
			i += n
		case c == '"' && s.state == beforeValue && s.want != content:
			s.want = nothing
			i += 1 + s.skip(p[i+1:], false)
			continue
		case s.state == beforeColon && c == ':':
			s.state = beforeValue
			i++
			continue
		case s.state < inString:
			i++
			if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
				continue
			}
			t, err = s.structure(c)
		case s.state >= afterMinus:
			n, t, err = s.number(p[i:])
			i += n
		default:
			err = s.byte(c)
			i++
		}
		if t != None || err != nil {
			return i, t, err
		}
	}
	return len(p), None, nil
}

// structure reads what is between strings, numbers and literals.
func (s *Scanner) structure(c byte) (Token, error) {
	switch s.state {
	case beforeText:
		if c == '{' || !s.Stream {
			s.want = members
			return s.value(c)
		}
	case beforeKeyOrEnd:
		if c == '}' {
			return s.close(), nil
		}
	case beforeValue:
		return s.value(c)
	case beforeValueOrEnd:
		if c == ']' {
			return s.close(), nil
		}
		return s.value(c)
	case afterValue:
		array := s.beyond > 0 && s.arrays&1 == 1
		switch {
		case c == ',' && array:
			s.state = beforeValue
			return None, nil
		case c == ',':
			s.state = beforeKey
			return None, nil
		case c == ']' && array, c == '}' && !array:
			return s.close(), nil
		}
	}
	return None, fmt.Errorf("unexpected %q between JSON values", c)
}

func (s *Scanner) value(c byte) (Token, error) {
	wanted := s.want
	s.want = nothing
	switch c {
	case '"':
		s.begin(false, wanted == content)
	case '{':
		s.state = beforeKeyOrEnd
		if wanted != members {
			return None, s.open(0)
		}
		if s.entered++; s.entered > deepest {
			return None, errDeep
		}
		return Object, nil
	case '[':
		s.state = beforeValueOrEnd
		return None, s.open(1)
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
			return None, fmt.Errorf("unexpected %q where a JSON value begins", c)
		}
		if s.keep = wanted == content; s.keep {
			s.partial = append(s.partial[:0], c)
		}
	}
	return None, nil
}

var errDeep = fmt.Errorf("JSON nested deeper than %d", deepest)

// open goes into an object or an array that is read over.
func (s *Scanner) open(array uint64) error {
	if s.entered+s.beyond >= deepest {
		return errDeep
	}
	if s.beyond > 0 && s.beyond%64 == 0 {
		s.further = append(s.further, s.arrays)
	}
	s.arrays = s.arrays<<1 | array
	s.beyond++
	return nil
}

// close leaves an object or an array.
func (s *Scanner) close() (t Token) {
	if s.beyond > 0 {
		s.beyond--
		s.arrays >>= 1
		if n := len(s.further); n > 0 && s.beyond%64 == 0 {
			s.arrays, s.further = s.further[n-1], s.further[:n-1]
		}
	} else {
		s.entered--
		t = End
	}
	s.ended()
	return t
}

// ended follows each value.
func (s *Scanner) ended() {
	switch {
	case s.entered+s.beyond > 0:
		s.state = afterValue
	case s.Stream:
		s.state = beforeText
	default:
		s.state = afterText
	}
}
