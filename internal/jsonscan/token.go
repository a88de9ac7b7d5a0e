package jsonscan

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

func (s *Scanner) begin(key, keep bool) {
	s.state, s.inKey, s.keep, s.escapes = inString, key, keep, false
	s.partial = s.partial[:0]
}

// skip reads a string that the caller has not requested, from the byte after the opening quote to its end or its first
// escape.
func (s *Scanner) skip(p []byte, key bool) (n int) {
	n = plain(p)
	switch {
	case n == len(p) || p[n] != '"':
		s.begin(key, false)
		return n
	case key:
		s.state = beforeColon
	default:
		s.ended()
	}
	return n + 1
}

// string continues to read a string, up to its end or its next escape.
func (s *Scanner) string(p []byte) (n int, t Token, err error) {
	n = plain(p)
	ended := n < len(p) && p[n] == '"'
	text := p[:n]
	if s.keep {
		if err = s.bound(len(s.partial) + n); err != nil {
			return n, None, err
		}
	}
	if s.keep && (len(s.partial) > 0 || !ended) {
		s.partial = append(s.partial, text...)
		text = s.partial
	}
	switch {
	case ended:
		return n + 1, s.end(text), nil
	case n == len(p):
		return n, None, nil
	case p[n] != '\\':
		return n, None, fmt.Errorf("control character %q in a JSON string", p[n])
	}
	s.hold('\\')
	s.escapes, s.state = true, inEscape
	return n + 1, None, nil
}

// bound checks the length n of a string or number. It stops keeping a key that is longer than LongestKey, and returns
// ErrLong for a value that is longer than LongestValue.
func (s *Scanner) bound(n int) error {
	switch {
	case s.inKey && n > s.LongestKey:
		s.keep, s.partial = false, s.partial[:0]
	case !s.inKey && n > s.LongestValue:
		return ErrLong
	}
	return nil
}

func (s *Scanner) hold(c byte) {
	if s.keep {
		s.partial = append(s.partial, c)
	}
}

// end finishes a string and returns its token.
func (s *Scanner) end(text []byte) Token {
	if s.keep {
		// Do not decode keys with invalid UTF-8: no caller looks for such a key.
		if s.text = text; s.escapes || !s.inKey && !utf8.Valid(text) {
			s.meaning = appendMeaning(s.meaning[:0], text)
			s.text = s.meaning
		}
	}
	t := String
	if s.inKey {
		t, s.state, s.want = Key, beforeColon, nothing
	} else {
		s.ended()
	}
	if !s.keep {
		return None
	}
	return t
}

// byte handles a byte of an escape or a literal.
func (s *Scanner) byte(c byte) error {
	switch s.state {
	case inEscape:
		switch {
		case c == 'u':
			s.state, s.hex = inHex, 4
		case strings.IndexByte(`"\/bfnrt`, c) >= 0:
			s.state = inString
		default:
			return fmt.Errorf("invalid escape %q in a JSON string", c)
		}
		s.hold(c)
	case inHex:
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
			return fmt.Errorf("invalid character %q in a \\u escape", c)
		}
		s.hold(c)
		if s.hex--; s.hex == 0 {
			s.state = inString
		}
	case inLiteral:
		if c != s.literal[0] {
			return fmt.Errorf("unexpected %q in a literal", c)
		}
		if s.literal = s.literal[1:]; s.literal == "" {
			s.ended()
		}
	}
	return nil
}

// number continues to read a number (RFC 8259, section 6), up to the first byte after it.
func (s *Scanner) number(p []byte) (n int, t Token, err error) {
	for n < len(p) {
		next := s.digit(p[n])
		if next == 0 {
			break
		}
		s.state = next
		n++
	}
	if s.keep {
		if len(s.partial)+n > s.LongestValue {
			return n, None, ErrLong
		}
		s.partial = append(s.partial, p[:n]...)
	}
	switch {
	case n == len(p):
		return n, None, nil
	case !s.numberMayEnd():
		return n, None, fmt.Errorf("unexpected %q in a number", p[n])
	}
	s.ended()
	if !s.keep {
		return n, None, nil
	}
	s.text = s.partial
	return n, Number, nil
}

// digit returns the state after c in a number; 0 if c is not part of the number.
func (s *Scanner) digit(c byte) state {
	if '0' <= c && c <= '9' {
		switch s.state {
		case afterMinus:
			if c == '0' {
				return afterZero
			}
			return inInteger
		case inInteger:
			return inInteger
		case afterDot, inFraction:
			return inFraction
		case afterE, afterESign, inExponent:
			return inExponent
		}
		return 0
	}
	switch {
	case c == '.' && (s.state == afterZero || s.state == inInteger):
		return afterDot
	case (c == 'e' || c == 'E') && (s.state == afterZero || s.state == inInteger || s.state == inFraction):
		return afterE
	case (c == '+' || c == '-') && s.state == afterE:
		return afterESign
	}
	return 0
}

// numberMayEnd reports whether the value that is being read is a number that can end here.
func (s *Scanner) numberMayEnd() bool {
	return s.state == afterZero || s.state == inInteger || s.state == inFraction || s.state == inExponent
}

// appendMeaning appends the decoded text of a valid string, as encoding/json decodes it: invalid UTF-8 and lone
// surrogates become U+FFFD.
func appendMeaning(b, inside []byte) []byte {
	for i := 0; i < len(inside); {
		c := inside[i]
		switch {
		case c != '\\':
			r, n := rune(c), 1
			if c >= utf8.RuneSelf {
				r, n = utf8.DecodeRune(inside[i:])
			}
			b = utf8.AppendRune(b, r)
			i += n
		case inside[i+1] != 'u':
			b = append(b, "\"\\/\b\f\n\r\t"[strings.IndexByte(`"\/bfnrt`, inside[i+1])])
			i += 2
		default:
			r := hexRune(inside[i+2:])
			i += 6
			if utf16.IsSurrogate(r) {
				pair := rune(utf8.RuneError)
				if rest := inside[i:]; len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
					pair = utf16.DecodeRune(r, hexRune(rest[2:]))
				}
				if r = pair; r != utf8.RuneError {
					i += 6
				}
			}
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

func hexRune(digits []byte) (r rune) {
	for _, c := range digits[:4] {
		switch {
		case c <= '9':
			c -= '0'
		default:
			c = c&^0x20 - 'A' + 10
		}
		r = r<<4 | rune(c)
	}
	return r
}

// plain returns the number of bytes in p before the first quote, backslash or control character. It tests eight bytes
// at a time.
func plain(p []byte) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(p); i += 8 {
		x := binary.LittleEndian.Uint64(p[i:])
		quote, slash := x^(low*'"'), x^(low*'\\')
		// Only the lowest set bit is reliable: a borrow in the subtraction may set higher bits.
		found := ((quote-low)&^quote | (slash-low)&^slash | (x-low*0x20)&^x) & high
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(p); i++ {
		if c := p[i]; c == '"' || c == '\\' || c < 0x20 {
			break
		}
	}
	return i
}
