package h2conn

import (
	"bytes"
	"math"
	"time"

	"golang.org/x/net/http2/hpack"
)

// Neither client nor server uses a dynamic table (SETTINGS_HEADER_TABLE_SIZE is 0). This adds a few hundred bytes to
// each response, but saves 8 KB of memory per connection. The client also needs no state from earlier header blocks,
// and can skip unneeded fields.

// The constants are indexes of the static table (RFC 7541, appendix A).
const (
	staticAuthority     = 1
	staticMethodGet     = 2
	staticPath          = 4
	staticSchemeHTTPS   = 7
	staticStatus        = 8 // indexes 8 to 14 have the name :status
	staticLastStatus    = 14
	staticAccept        = 19
	staticContentLength = 28
	staticContentType   = 31
	staticRetryAfter    = 53
	staticUserAgent     = 58
	staticLast          = 61
)

// staticStatuses are the values of :status in the static table, in order.
var staticStatuses = [...]int{200, 204, 206, 304, 400, 404, 500}

type fields struct {
	Header
	length  int64 // content-length; -1 if the block has none
	pseudo  bool  // whether the block contains pseudo-header fields
	invalid string
}

// fieldReader reads header blocks. It does not decode names, and decodes only the values of needed fields.
type fieldReader struct {
	scratch bytes.Buffer
	// The last content type, encoded and decoded. A server sends only a few content types, so most need no decoding.
	typeCoded []byte
	typeHuff  bool
	typeText  string
}

// coded is an encoded string literal of HPACK.
type coded struct {
	bytes []byte
	huff  bool
}

// read reads a complete header block. It returns false (COMPRESSION_ERROR) if the block is not valid HPACK or needs a
// dynamic table.
func (r *fieldReader) read(block []byte, f *fields) bool {
	*f = fields{length: -1}
	regular := false
	for len(block) > 0 {
		b := block[0]
		var index, ok = 0, false
		var name, value coded
		switch {
		case b&0x80 != 0:
			if index, block, ok = cutInt(block, 7); !ok || index == 0 || index > staticLast {
				return false
			}
		case b&0xe0 == 0x20: // a size update of the dynamic table; only 0 is allowed
			if index, block, ok = cutInt(block, 5); !ok || index != 0 {
				return false
			}
			continue
		default:
			prefix := uint(4)
			if b&0x40 != 0 {
				prefix = 6
			}
			if index, block, ok = cutInt(block, prefix); !ok || index > staticLast {
				return false
			}
			if index == 0 {
				if name, block, ok = cutString(block); !ok {
					return false
				}
				index = indexOf(name)
			}
			if value, block, ok = cutString(block); !ok {
				return false
			}
			if index <= staticLastStatus && index >= staticStatus {
				index = staticStatus // only the name comes from the static table
			}
			b = 0
		}
		pseudo := index >= staticAuthority && index <= staticLastStatus || index < 0
		f.pseudo = f.pseudo || pseudo
		switch {
		case pseudo && (regular || index < staticStatus || f.Status != 0):
			f.invalid = "pseudo-header field out of place"
			return true
		case pseudo && b != 0:
			f.Status = staticStatuses[index-staticStatus]
		case !pseudo:
			regular = true
		}
		// For a fully indexed field other than :status, the value is empty here.
		if (b == 0 || !pseudo) && !r.value(index, value, f) {
			return false
		}
	}
	return true
}

// value stores the value v of the field with the given index, if the field is needed. It returns false if v has an
// invalid Huffman code.
func (r *fieldReader) value(index int, v coded, f *fields) bool {
	switch index {
	case staticStatus:
		text, ok := r.text(v)
		n := number(text)
		if len(text) != 3 || n < 100 {
			f.invalid = "no HTTP status"
			n = -1 // marks :status as present
		}
		f.Status = int(n)
		return ok
	case staticContentLength:
		text, ok := r.text(v)
		n := number(text)
		if n < 0 || f.length >= 0 && f.length != n {
			f.invalid = "wrong content-length"
		}
		f.length = n
		return ok
	case staticRetryAfter:
		text, ok := r.text(v)
		// HTTP also allows a date as the value, but API servers do not send dates.
		f.RetryAfter = time.Duration(max(0, min(number(text), math.MaxInt32))) * time.Second
		return ok
	case staticContentType:
		if r.typeText == "" || r.typeHuff != v.huff || !bytes.Equal(r.typeCoded, v.bytes) {
			text, ok := r.text(v)
			if !ok {
				return false
			}
			r.typeCoded, r.typeHuff, r.typeText = append(r.typeCoded[:0], v.bytes...), v.huff, string(text)
		}
		f.ContentType = r.typeText
	}
	return true
}

// number parses a decimal number. It returns -1 if text is not a number or has more than 18 digits.
func number(text []byte) int64 {
	if len(text) == 0 || len(text) > 18 {
		return -1
	}
	var n int64
	for _, ch := range text {
		if ch < '0' || ch > '9' {
			return -1
		}
		n = 10*n + int64(ch-'0')
	}
	return n
}

// text decodes a string literal. The result is valid until the next call. It returns false if the Huffman code is
// invalid.
func (r *fieldReader) text(v coded) ([]byte, bool) {
	if !v.huff {
		return v.bytes, true
	}
	r.scratch.Reset()
	_, err := hpack.HuffmanDecode(&r.scratch, v.bytes)
	return r.scratch.Bytes(), err == nil
}

// literalNames contains the names of the needed fields. Some servers send names as literals.
var literalNames = func() (names []literalName) {
	for index, name := range map[int]string{
		staticStatus: ":status", staticContentLength: "content-length",
		staticContentType: "content-type", staticRetryAfter: "retry-after",
	} {
		names = append(names, literalName{index, []byte(name), hpack.AppendHuffmanString(nil, name)})
	}
	return names
}()

type literalName struct {
	index       int
	plain, huff []byte
}

// colon is the Huffman code of ':', which is 7 bits long.
const colon = 0x5c

// indexOf returns the index in the static table of a name that was sent as a literal. It returns 0 for a field that is
// not needed, and -1 for a pseudo-header field that is not allowed in a response.
func indexOf(name coded) int {
	for _, n := range literalNames {
		if name.huff && bytes.Equal(name.bytes, n.huff) || !name.huff && bytes.Equal(name.bytes, n.plain) {
			return n.index
		}
	}
	if len(name.bytes) > 0 && (name.huff && name.bytes[0]>>1 == colon || !name.huff && name.bytes[0] == ':') {
		return -1
	}
	return 0
}

// cutInt parses the integer at the start of p (RFC 7541, 5.1). It returns the integer and the remaining bytes of p.
func cutInt(p []byte, prefix uint) (n int, rest []byte, ok bool) {
	if len(p) == 0 {
		return 0, nil, false
	}
	most := 1<<prefix - 1
	n = int(p[0]) & most
	p = p[1:]
	if n < most {
		return n, p, true
	}
	for shift := uint(0); shift < 28; shift += 7 {
		if len(p) == 0 {
			return 0, nil, false
		}
		b := p[0]
		p = p[1:]
		n += int(b&0x7f) << shift
		if b&0x80 == 0 {
			return n, p, true
		}
	}
	return 0, nil, false
}

// cutString parses the string literal at the start of p (RFC 7541, 5.2). It returns the string and the remaining bytes.
func cutString(p []byte) (s coded, rest []byte, ok bool) {
	if len(p) == 0 {
		return s, nil, false
	}
	s.huff = p[0]&0x80 != 0
	n, p, ok := cutInt(p, 7)
	if !ok || n > len(p) {
		return s, nil, false
	}
	s.bytes = p[:n]
	return s, p[n:], true
}
