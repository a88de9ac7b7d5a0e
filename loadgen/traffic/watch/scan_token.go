package watch

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stormglass/stormglass/internal/jsontext"
)

// begin starts a string after its quote.
func (s *jsonScanner) begin(key, keep bool) {
	s.state, s.inKey, s.keep, s.escapes = inString, key, keep, false
	s.partial = s.partial[:0]
}

// text reads on in a string, up to its end or an escape.
func (s *jsonScanner) text(p []byte) (int, error) {
	n := jsontext.Plain(p)
	token := p[:n]
	if n == len(p) || p[n] == '\\' {
		if s.keep {
			s.partial = append(s.partial, token...)
			if err := s.bound(len(s.partial)); err != nil {
				return 0, err
			}
		}
		if n == len(p) {
			return n, nil
		}
		s.hold('\\')
		s.escapes, s.state = true, inEscape
		return n + 1, nil
	}
	if p[n] != '"' {
		return 0, malformed("control character %q in a JSON string", p[n])
	}
	if s.keep && len(s.partial) > 0 {
		s.partial = append(s.partial, token...)
		token = s.partial
	}
	if s.keep {
		if err := s.bound(len(token)); err != nil {
			return 0, err
		}
	}
	return n + 1, s.end(token)
}

// bound gives up a key that is too long to matter, and refuses a value that is.
func (s *jsonScanner) bound(n int) error {
	switch {
	case s.inKey && n > longestKey:
		s.keep, s.partial = false, s.partial[:0]
	case !s.inKey && n > longestValue:
		return errLongValue
	}
	return nil
}

func (s *jsonScanner) hold(c byte) {
	if s.keep {
		s.partial = append(s.partial, c)
	}
}

// end takes a whole string.
func (s *jsonScanner) end(token []byte) error {
	if s.keep && (s.escapes || !s.inKey && !utf8.Valid(token)) {
		var err error
		if token, err = unquote(token); err != nil {
			return err
		}
	}
	if s.inKey {
		s.state = beforeColon
		if s.beyond == 0 {
			s.field = noField
			if s.keep {
				s.field = fieldOf(s.level, token)
			}
		}
		return nil
	}
	s.state = afterValue
	if !s.keep {
		return nil
	}
	e := &s.ev
	switch s.field {
	case fieldType:
		e.kind = kindOf(token)
	case fieldRV:
		e.rv = parseVersion(token)
	case fieldName:
		e.name = hash(token)
	case fieldNamespace:
		e.namespace = hash(token)
	case fieldStamp:
		e.stamp = append(e.stamp[:0], token...)
	case fieldEnds:
		e.ends = string(token) == "true"
	}
	return nil
}

// token reads one byte of an escape, a literal or a number; again: the byte is
// what comes after a number.
func (s *jsonScanner) token(c byte) (again bool, err error) {
	switch s.state {
	case inEscape:
		if c == 'u' {
			s.state, s.hex = inHex, 4
		} else if strings.IndexByte(`"\/bfnrt`, c) >= 0 {
			s.state = inString
		} else {
			return false, malformed("escape %q in a JSON string", c)
		}
		s.hold(c)
		return false, nil
	case inHex:
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
			return false, malformed("%q in a \\u escape", c)
		}
		s.hold(c)
		if s.hex--; s.hex == 0 {
			s.state = inString
		}
		return false, nil
	case inLiteral:
		if c != s.literal[0] {
			return false, malformed("unexpected %q in a literal", c)
		}
		if s.literal = s.literal[1:]; s.literal == "" {
			s.state = afterValue
		}
		return false, nil
	}
	return s.number(c)
}

// number follows RFC 8259, 6.
func (s *jsonScanner) number(c byte) (again bool, err error) {
	digit := '0' <= c && c <= '9'
	var next jsonState
	switch {
	case digit && s.state == afterMinus && c == '0':
		next = afterZero
	case digit && (s.state == afterMinus || s.state == inInteger):
		next = inInteger
	case digit && (s.state == afterDot || s.state == inFraction):
		next = inFraction
	case digit && (s.state == afterE || s.state == afterESign || s.state == inExponent):
		next = inExponent
	case c == '.' && (s.state == afterZero || s.state == inInteger):
		next = afterDot
	case (c == 'e' || c == 'E') && (s.state == afterZero || s.state == inInteger || s.state == inFraction):
		next = afterE
	case (c == '+' || c == '-') && s.state == afterE:
		next = afterESign
	case s.state == afterZero || s.state == inInteger || s.state == inFraction || s.state == inExponent:
		if s.keep {
			s.ev.code, _ = strconv.Atoi(string(s.partial))
		}
		s.state = afterValue
		return true, nil
	default:
		return false, malformed("unexpected %q in a number", c)
	}
	s.state = next
	if s.keep {
		if s.partial = append(s.partial, c); len(s.partial) > longestValue {
			return false, errLongValue
		}
	}
	return false, nil
}

// unquote is the meaning of a string's inside with escapes in it.
func unquote(inside []byte) ([]byte, error) {
	quoted := make([]byte, 0, len(inside)+2)
	quoted = append(append(append(quoted, '"'), inside...), '"')
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		return nil, malformed("a JSON string: %v", err)
	}
	return []byte(text), nil
}
