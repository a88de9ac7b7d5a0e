// Package cborscan reads CBOR (RFC 8949) as package jsonscan reads JSON: as it comes in, in pieces cut anywhere, without
// holding it. It reads what API servers write: keys and text are byte or text strings of a definite length, in UTF-8 or
// not; tags mean nothing.
package cborscan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/stormglass/stormglass/internal/jsonscan"
)

// deepest nesting that apimachinery reads (serializer/cbor, MaxNestedLevels).
const deepest = 64

// Scanner reads one data item, or a sequence of maps (RFC 8742). It returns the tokens of a jsonscan.Scanner, and is used
// in the same way: the outermost map is entered, arrays never. Set the exported fields first.
type Scanner struct {
	// Stream: maps, one after another. Otherwise it is one item of any kind.
	Stream bool
	// LongestKey bounds the keys that are given, in bytes; longer ones are skipped. A kept value longer than LongestValue
	// is jsonscan.ErrLong.
	LongestKey, LongestValue int

	want   want
	open   []container
	ends   int     // maps whose End is to be given
	over   bool    // the item has ended, and Stream is false
	head   [9]byte // of an item, as far as it came
	have   int     // its bytes
	tagged bool    // a tag came, and its item has to follow
	skip   uint64  // bytes of a string to come that is read over
	need   uint64  // bytes of a string to come that is given
	key    bool    // it is a key
	// partial holds the bytes of the string that earlier pieces brought.
	partial []byte
	text    []byte // of the token
}

// container is an array or map that is open.
type container struct {
	left    uint64 // items to come, keys and values
	endless bool   // until a break
	mapping bool
	entered bool
	odd     bool // a key has come whose value has not
}

// want is the wanted part of a value.
type want uint8

const (
	nothing want = iota
	content
	members
)

// Keep asks for the value of the key just given, if it is a string or an integer.
func (s *Scanner) Keep() { s.want = content }

// Enter asks for the members of the value of the key just given, if it is a map.
func (s *Scanner) Enter() { s.want = members }

// Text returns the text of the token just given. It is valid until the next call, and only as long as the piece is.
func (s *Scanner) Text() []byte { return s.text }

// Complete reports whether the input may end here.
func (s *Scanner) Complete() bool {
	between := len(s.open) == 0 && s.have == 0 && !s.tagged && s.skip == 0 && s.need == 0 && s.ends == 0
	return between && (s.Stream || s.over)
}

// Reset makes it ready for another input.
func (s *Scanner) Reset() {
	*s = Scanner{Stream: s.Stream, LongestKey: s.LongestKey, LongestValue: s.LongestValue, open: s.open[:0], partial: s.partial[:0]}
}

// Next reads p up to the next token and returns the number of bytes it took; the caller passes the rest again. The last
// byte of an item that ends maps is taken with the last End: so all tokens of p are returned before p is used up. Reset the
// scanner after an error.
func (s *Scanner) Next(p []byte) (n int, t jsonscan.Token, err error) {
	for i := 0; i < len(p); {
		if s.ends == 0 {
			n, t, err = s.piece(p[i:])
			if i += n; err != nil {
				return i, jsonscan.None, err
			}
			if t == jsonscan.None && s.ends == 0 {
				continue
			}
			if s.ends > 0 {
				i-- // it is given again with the End
			}
			if t != jsonscan.None {
				return i, t, nil
			}
		}
		if s.ends--; s.ends == 0 {
			i++
		}
		return i, jsonscan.End, nil
	}
	return len(p), jsonscan.None, nil
}

// piece reads a part of one item.
func (s *Scanner) piece(p []byte) (n int, t jsonscan.Token, err error) {
	switch {
	case s.skip > 0:
		n = int(min(s.skip, uint64(len(p))))
		if s.skip -= uint64(n); s.skip == 0 {
			s.ended()
		}
		return n, jsonscan.None, nil
	case s.need > 0:
		n = int(min(s.need, uint64(len(p))))
		whole := uint64(n) == s.need
		s.need -= uint64(n)
		if !whole || len(s.partial) > 0 {
			s.partial = append(s.partial, p[:n]...)
			s.text = s.partial
		} else {
			s.text = p[:n]
		}
		if whole {
			t = s.given()
		}
		return n, t, nil
	}
	if s.over {
		return 0, jsonscan.None, errors.New("more after the item's end")
	}
	s.head[s.have] = p[0]
	s.have++
	if length := 1 + argumentLength(s.head[0]); s.have < length {
		return 1, jsonscan.None, nil
	}
	t, err = s.item(s.head[0]>>5, s.head[0]&31, argument(s.head[:s.have]))
	s.have = 0
	return 1, t, err
}

// argumentLength is the number of bytes of an item's argument after its first byte.
func argumentLength(first byte) int {
	if info := first & 31; info >= 24 && info <= 27 {
		return 1 << (info - 24)
	}
	return 0
}

func argument(head []byte) uint64 {
	if len(head) == 1 {
		return uint64(head[0] & 31)
	}
	var wide [8]byte
	copy(wide[9-len(head):], head[1:])
	return binary.BigEndian.Uint64(wide[:])
}

// The major types.
const (
	unsigned = iota
	negative
	byteString
	textString
	array
	mapping
	tag
	simple
)

const indefinite = 31

// item begins an item, whose head is whole.
func (s *Scanner) item(major, info byte, argument uint64) (jsonscan.Token, error) {
	if info > 27 && info < indefinite {
		return jsonscan.None, fmt.Errorf("no CBOR item begins with %#x", major<<5|info)
	}
	top := s.top()
	if major == simple && info == indefinite {
		if top == nil || !top.endless || top.odd || s.tagged {
			return jsonscan.None, errors.New("a break where nothing is open")
		}
		s.close()
		return jsonscan.None, nil
	}
	if major == simple && info == 24 && argument < 32 {
		return jsonscan.None, fmt.Errorf("no simple value is written as %d", argument)
	}
	if major == tag {
		if s.tagged = true; info == indefinite {
			return jsonscan.None, errors.New("a tag without a number")
		}
		return jsonscan.None, nil
	}
	s.tagged = false
	isKey := top != nil && top.mapping && !top.odd
	if isKey && major != byteString && major != textString {
		return jsonscan.None, errors.New("key is not a string")
	}
	wanted := s.want
	s.want = nothing
	if top == nil {
		if wanted = members; s.Stream && major != mapping {
			return jsonscan.None, errors.New("a sequence of what are no maps")
		}
	}
	if info == indefinite && major != array && major != mapping {
		return jsonscan.None, errors.New("only arrays and maps may have an indefinite length")
	}
	switch major {
	case byteString, textString:
		return s.begin(isKey, wanted, argument)
	case array:
		return jsonscan.None, s.enter(container{left: argument, endless: info == indefinite})
	case mapping:
		if argument > 1<<62 {
			return jsonscan.None, errors.New("a map that is too large")
		}
		err := s.enter(container{left: 2 * argument, endless: info == indefinite, mapping: true, entered: wanted == members})
		if wanted == members && err == nil {
			return jsonscan.Object, nil
		}
		return jsonscan.None, err
	case unsigned, negative:
		if wanted == content {
			s.partial = appendNumber(s.partial[:0], major, argument)
			s.text = s.partial
			s.ended()
			return jsonscan.Number, nil
		}
	}
	s.ended()
	return jsonscan.None, nil
}

func appendNumber(b []byte, major byte, argument uint64) []byte {
	if major == unsigned {
		return strconv.AppendUint(b, argument, 10)
	}
	if argument == 1<<64-1 {
		return append(b, "-18446744073709551616"...)
	}
	return strconv.AppendUint(append(b, '-'), argument+1, 10)
}

// begin begins a string.
func (s *Scanner) begin(isKey bool, wanted want, length uint64) (jsonscan.Token, error) {
	top := s.top()
	given := isKey && top.entered && length <= uint64(s.LongestKey) || !isKey && wanted == content
	switch {
	case given && !isKey && length > uint64(s.LongestValue):
		return jsonscan.None, jsonscan.ErrLong
	case given:
		if s.key, s.need, s.text, s.partial = isKey, length, nil, s.partial[:0]; length == 0 {
			return s.given(), nil
		}
	default:
		if s.skip = length; length == 0 {
			s.ended()
		}
	}
	return jsonscan.None, nil
}

// given ends a string that is given.
func (s *Scanner) given() jsonscan.Token {
	s.ended()
	if s.key {
		return jsonscan.Key
	}
	return jsonscan.String
}

func (s *Scanner) top() *container {
	if len(s.open) == 0 {
		return nil
	}
	return &s.open[len(s.open)-1]
}

// enter begins an array or a map.
func (s *Scanner) enter(c container) error {
	if len(s.open) == deepest {
		return fmt.Errorf("CBOR nested deeper than %d", deepest)
	}
	s.open = append(s.open, c)
	if c.left == 0 && !c.endless {
		s.close()
	}
	return nil
}

// close ends the innermost array or map.
func (s *Scanner) close() {
	if s.top().entered {
		s.ends++
	}
	s.open = s.open[:len(s.open)-1]
	s.ended()
}

// ended follows each item, and ends what ends with it.
func (s *Scanner) ended() {
	top := s.top()
	if top == nil {
		s.over = !s.Stream
		return
	}
	top.odd = top.mapping && !top.odd
	if top.endless {
		return
	}
	if top.left--; top.left == 0 {
		s.close()
	}
}
