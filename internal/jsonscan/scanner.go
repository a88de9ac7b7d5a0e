// Package jsonscan reads JSON in chunks that may end anywhere. It does not hold the whole input in memory. A Scanner
// returns only the keys and values that the caller requests, and skips the rest without allocations. It accepts and
// refuses exactly the same inputs as encoding/json; a fuzz test verifies that.
package jsonscan

import (
	"errors"
	"fmt"
)

// Token is the kind of token that Next returns.
type Token uint8

// The kinds of token. Next returns no tokens for values that the caller has not requested.
const (
	None   Token = iota // no further token in this chunk
	Key                 // a key of an entered object; Text is the key, with invalid UTF-8 unchanged
	String              // a string requested with Keep; Text is the decoded string
	Number              // a number requested with Keep; Text is the number as written
	Object              // the beginning of an entered object
	End                 // the end of an entered object
)

// Tokens is the interface of Scanner and of cborscan.Scanner.
type Tokens interface {
	Next(p []byte) (n int, t Token, err error)
	Keep()
	Enter()
	Text() []byte
	Complete() bool
	Reset()
}

// ErrLong is the error for a requested value (see Keep) that is longer than LongestValue.
var ErrLong = errors.New("value is too long")

// deepest is the maximum depth of nesting that encoding/json accepts.
const deepest = 10000

// Scanner reads one JSON value, or a stream of objects. It returns the keys of entered objects. After each key, the
// caller calls Keep or Enter. To skip the value, it calls neither. The Scanner enters the outermost object, and never
// enters arrays. Set the exported fields before the first call.
type Scanner struct {
	// Stream reports whether the input is a stream of objects, separated by white space. If false, the input is one
	// JSON value of any kind.
	Stream bool
	// LongestKey is the maximum length of a key, in bytes as written; Next skips longer keys. LongestValue is the
	// maximum length of a value that the caller requests with Keep; for a longer value Next returns ErrLong.
	LongestKey, LongestValue int

	state   state
	want    want     // part of the next value that the caller has requested
	entered int      // number of open objects that were entered
	beyond  int      // number of open objects and arrays that are skipped, within the innermost entered object
	arrays  uint64   // a bit for each of the innermost 64 skipped containers: 1 for an array, 0 for an object
	further []uint64 // like arrays, for the outer skipped containers: 64 bits in each element
	hex     uint8    // number of unread digits of a \u escape
	literal string   // the unread part of true, false or null
	// inKey reports whether the current string is a key. The fields from inKey to partial are the state of the current
	// string or number.
	inKey   bool
	keep    bool   // whether the caller has requested the string or number
	escapes bool   // whether the string contains an escape
	partial []byte // the part of the string or number that was in earlier chunks
	meaning []byte // buffer for decoded strings
	text    []byte // text of the last token
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
	// The states from afterMinus to inExponent are states within a number, named by the last character read.
	afterMinus
	afterZero
	inInteger
	afterDot
	inFraction
	afterE
	afterESign
	inExponent
)

// want is the part of a value that the caller has requested.
type want uint8

const (
	nothing want = iota
	content
	members
)

// Keep requests the value of the key that Next returned last. If this value is a string or a number, the next call of
// Next returns it.
func (s *Scanner) Keep() { s.want = content }

// Enter requests the members of the value of the key that Next returned last. If this value is an object, the next
// calls of Next return its members.
func (s *Scanner) Enter() { s.want = members }

// Text returns the text of the last token. It is valid until the next call of Next, as long as the chunk p of the last
// call is unchanged.
func (s *Scanner) Text() []byte { return s.text }

// Complete reports whether the input may end after the bytes read so far.
func (s *Scanner) Complete() bool {
	if s.Stream {
		return s.state == beforeText
	}
	return s.state == afterText || s.entered+s.beyond == 0 && s.numberMayEnd()
}

// Reset prepares the scanner for another input.
func (s *Scanner) Reset() {
	*s = Scanner{
		Stream: s.Stream, LongestKey: s.LongestKey, LongestValue: s.LongestValue,
		further: s.further[:0], partial: s.partial[:0], meaning: s.meaning[:0],
	}
}

// Next reads p up to the next token and returns n, the number of bytes that it used. Pass the rest of p in the next
// call. After an error, call Reset.
func (s *Scanner) Next(p []byte) (n int, t Token, err error) {
	for i := 0; i < len(p); {
		c := p[i]
		// Most bytes are in strings, so test for a string first.
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

// structure handles a byte that is not part of a string, a number or a literal.
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

// open handles the start of an object or an array to skip.
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

// close ends the innermost object or array. It returns the token End if the object was entered.
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

// ended sets the state of the scanner after a value.
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
