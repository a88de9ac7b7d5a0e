package traffic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Longest strings that can matter, as written, escapes included.
const (
	longestKey   = 256
	longestValue = 4096
)

var errLongValue = errors.New("a value that should be short is not")

func (s *scanner) beginString(state scanState, keep bool) {
	s.state, s.keep = state, keep
	s.escaped, s.escapes = false, false
	s.partial = s.partial[:0]
}

// readString reads on in a key or a string value.
func (s *scanner) readString(p []byte) (int, error) {
	end, ended := s.stringEnd(p)
	token := p[:end]
	if s.keep && (!ended || len(s.partial) > 0) {
		s.partial = append(s.partial, token...)
		token = s.partial
	}
	tooLong := false
	if s.state == inKey {
		tooLong = len(token) > longestKey
	} else if s.keep && len(token) > longestValue {
		return 0, errLongValue
	}
	if tooLong {
		s.keep = false // no key that matters
	}
	if !ended {
		return end, nil
	}
	if s.keep && (s.escapes || !utf8.Valid(token)) {
		plain, err := unquote(token)
		if err != nil {
			return 0, err
		}
		token = plain
	}
	if s.state == inKey {
		s.field, s.state = noField, beforeColon
		if s.keep {
			s.field = fieldOf(s.level, token)
		}
		return end + 1, nil
	}
	s.state = afterValue
	if s.keep {
		s.set(token)
	}
	return end + 1, nil
}

func (s *scanner) set(value []byte) {
	switch s.field {
	case fieldType:
		s.ev.kind = kindOf(value)
	case fieldRV:
		s.ev.rv, _ = strconv.ParseUint(string(value), 10, 64)
	case fieldStamp:
		s.ev.stamp = append(s.ev.stamp[:0], value...)
	}
}

// stringEnd finds the quote that ends the current string: its index, or the
// length of p and false. Linear also where a string is full of escapes.
func (s *scanner) stringEnd(p []byte) (end int, ended bool) {
	i := 0
	if s.escaped {
		s.escaped, i = false, 1
	}
	quote := -1 // the next one at or after i
	for {
		if quote < i {
			quote = len(p)
			if q := bytes.IndexByte(p[i:], '"'); q >= 0 {
				quote = i + q
			}
		}
		k := bytes.IndexByte(p[i:quote], '\\')
		if k < 0 {
			return quote, quote < len(p)
		}
		s.escapes = true
		if i += k + 2; i > len(p) {
			s.escaped = true
			return len(p), false
		}
	}
}

// unquote is the meaning of a string's inside with escapes in it.
func unquote(inside []byte) ([]byte, error) {
	quoted := make([]byte, 0, len(inside)+2)
	quoted = append(append(append(quoted, '"'), inside...), '"')
	var plain string
	if err := json.Unmarshal(quoted, &plain); err != nil {
		return nil, fmt.Errorf("a JSON string in the stream: %w", err)
	}
	return []byte(plain), nil
}
