// Package cborscan reads CBOR (RFC 8949) in chunks that may end anywhere, as package jsonscan does for JSON. It does
// not hold the whole input in memory. It supports the CBOR that API servers write. Keys and strings may be byte strings
// or text strings of a definite length, and need not be valid UTF-8. Package cborscan ignores tags.
package cborscan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/stormglass/stormglass/internal/jsonscan"
)

// deepest is the maximum depth of nesting that apimachinery accepts (serializer/cbor, MaxNestedLevels).
const deepest = 64

// Scanner reads one CBOR data item, or a sequence of maps (RFC 8742). Use it like a jsonscan.Scanner; it returns the
// same tokens. It enters the outermost map, and never enters arrays. Set the exported fields before the first call.
type Scanner struct {
	// Stream reports whether the input is a sequence of maps. If false, the input is one data item of any kind.
	Stream bool
	// LongestKey is the maximum length of a key in bytes; Next skips longer keys. LongestValue is the maximum length in
	// bytes of a value that the caller requests with Keep; for a longer value Next returns jsonscan.ErrLong.
	LongestKey, LongestValue int

	want   want
	open   []container
	ends   int     // number of End tokens that Next has not returned yet
	over   bool    // whether the only item of the input has ended; always false if Stream is true
	head   [9]byte // the bytes of the current item's head that were read so far
	have   int     // number of bytes in head
	tagged bool    // whether the scanner has read a tag but not the item that must follow
	skip   uint64  // number of unread bytes of a string to skip
	need   uint64  // number of unread bytes of a string to return
	key    bool    // whether the string to return is a key
	// partial holds the part of the current string that was in earlier chunks.
	partial []byte
	text    []byte // text of the last token
}

// container is an open array or map.
type container struct {
	left    uint64 // number of unread items; in a map, a key and its value count as two
	endless bool   // whether the container has an indefinite length and ends with a break
	mapping bool
	entered bool
	odd     bool // whether the key of the current member was read, but not its value
}

// want is the part of a value that the caller has requested.
type want uint8

const (
	nothing want = iota
	content
	members
)

// Keep requests the value of the key that Next returned last. If this value is a string or an integer, the next call of
// Next returns it.
func (s *Scanner) Keep() { s.want = content }

// Enter requests the members of the value of the key that Next returned last. If this value is a map, the next calls of
// Next return its members.
func (s *Scanner) Enter() { s.want = members }

// Text returns the text of the last token. It is valid until the next call of Next, as long as the chunk p of the last
// call is unchanged.
func (s *Scanner) Text() []byte { return s.text }

// Complete reports whether the input may end after the bytes read so far.
func (s *Scanner) Complete() bool {
	between := len(s.open) == 0 && s.have == 0 && !s.tagged && s.skip == 0 && s.need == 0 && s.ends == 0
	return between && (s.Stream || s.over)
}

// Reset prepares the scanner for another input.
func (s *Scanner) Reset() {
	*s = Scanner{Stream: s.Stream, LongestKey: s.LongestKey, LongestValue: s.LongestValue, open: s.open[:0], partial: s.partial[:0]}
}

// Next reads p up to the next token and returns n, the number of bytes that it used. Pass the rest of p in the next
// call. If one byte ends several maps, Next counts that byte as used only with the last End. So when p is used up, Next
// has returned all its tokens. After an error, call Reset.
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
				i-- // the caller passes this byte again for the End
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

// piece reads the head or the string of an item, as far as p contains it.
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
		return 0, jsonscan.None, errors.New("unexpected data after the item")
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

// argumentLength returns the number of bytes that an item's argument takes after its first byte.
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

// The major types of CBOR items.
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

// item handles an item whose head was read completely.
func (s *Scanner) item(major, info byte, argument uint64) (jsonscan.Token, error) {
	if info > 27 && info < indefinite {
		return jsonscan.None, fmt.Errorf("invalid first byte %#x of a CBOR item", major<<5|info)
	}
	top := s.top()
	if major == simple && info == indefinite {
		if top == nil || !top.endless || top.odd || s.tagged {
			return jsonscan.None, errors.New("unexpected break")
		}
		s.close()
		return jsonscan.None, nil
	}
	if major == simple && info == 24 && argument < 32 {
		return jsonscan.None, fmt.Errorf("invalid simple value %d", argument)
	}
	if major == tag {
		if s.tagged = true; info == indefinite {
			return jsonscan.None, errors.New("tag without a number")
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
			return jsonscan.None, errors.New("item of a sequence is not a map")
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
			return jsonscan.None, errors.New("map is too large")
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

// begin reads the head of a string. Next then returns the string as a token, or skips it.
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

// given ends the string to return, and returns its token: Key or String.
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

// enter handles the start of an array or a map.
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

// ended handles the end of an item. It also closes the arrays and maps that end with the item.
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
