package h2conn

import (
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
)

// Template holds the method and headers of a request in encoded form. It is immutable, and can be used on any
// connection.
type Template struct {
	method []byte // encoded fields :method and :scheme
	rest   []byte // encoded fields to send after :authority and :path
	typed  []byte // encoded content-type, sent only with a body
	head   bool   // whether the method is HEAD; the response then has no body, even with a content-length
}

// NewTemplate returns the template of r. The template does not include Path, Body and Urgent.
func NewTemplate(r Request) *Template {
	t := &Template{head: r.Method == "HEAD"}
	if r.Method == "GET" {
		t.method = appendInt(nil, 0x80, 7, staticMethodGet)
	} else {
		t.method = appendNamed(nil, staticMethodGet, r.Method) // the static table provides only the name of the field
	}
	t.method = appendInt(t.method, 0x80, 7, staticSchemeHTTPS)
	if r.Accept != "" {
		t.rest = appendNamed(t.rest, staticAccept, r.Accept)
	}
	if r.UserAgent != "" {
		t.rest = appendNamed(t.rest, staticUserAgent, r.UserAgent)
	}
	t.rest = appendExtra(t.rest, r.Extra)
	if r.ContentType != "" {
		t.typed = appendNamed(nil, staticContentType, r.ContentType)
	}
	return t
}

// With returns a copy of t with one more header.
func (t *Template) With(name, value string) *Template {
	more := *t
	more.rest = appendField(t.rest[:len(t.rest):len(t.rest)], name, value)
	return &more
}

// appendHeaders queues the HEADERS frame of a request. If the header block does not fit into one frame, it also queues
// CONTINUATION frames. The caller holds mu.
func appendHeaders[T string | []byte](c *Conn, id uint32, t *Template, path T, body int) {
	at := len(c.out)
	b := appendFrame(c.out, http2.FrameHeaders, 0, id, 0)
	if !c.resized {
		b = append(b, resizeTable)
		c.resized = true
	}
	b = append(b, t.method...)
	b = append(b, c.authority...)
	b = appendNamed(b, staticPath, path)
	b = append(b, t.rest...)
	flags := http2.FlagHeadersEndStream
	if body > 0 {
		flags = 0
		b = append(b, t.typed...)
		var digits [20]byte
		b = appendNamed(b, staticContentLength, strconv.AppendInt(digits[:0], int64(body), 10))
	}
	length := len(b) - at - frameHeaderLen
	if length <= maxFrame {
		appendFrame(b[:at], http2.FrameHeaders, flags|http2.FlagHeadersEndHeaders, id, length) // replaces the provisional frame header
		c.out = b
		return
	}
	block := append([]byte(nil), b[at+frameHeaderLen:]...)
	b = b[:at]
	for kind := http2.FrameHeaders; len(block) > 0; kind = http2.FrameContinuation {
		n := min(len(block), maxFrame)
		if n == len(block) {
			flags |= http2.FlagHeadersEndHeaders
		}
		b = append(appendFrame(b, kind, flags, id, n), block[:n]...)
		flags, block = 0, block[n:]
	}
	c.out = b
}

// resizeTable is the first byte of a connection's first header block. It sets the size of the dynamic table to 0.
const resizeTable = 0x20

// appendInt appends n as an integer with a prefix of the given number of bits (RFC 7541, 5.1). `high` holds the bits of
// the first byte that are not part of the prefix.
func appendInt(b []byte, high byte, prefix uint, n int) []byte {
	most := 1<<prefix - 1
	if n < most {
		return append(b, high|byte(n))
	}
	b = append(b, high|byte(most))
	for n -= most; n >= 128; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// appendNamed appends a field whose name is at the given index of the static table. The value is not Huffman-coded, to
// save CPU time.
func appendNamed[T string | []byte](b []byte, index int, value T) []byte {
	b = appendInt(b, 0, 4, index)
	return append(appendInt(b, 0, 7, len(value)), value...)
}

// appendField appends a field with a literal name. The field is marked as never indexed.
func appendField(b []byte, name, value string) []byte {
	b = append(b, 0x10)
	b = append(appendInt(b, 0, 7, len(name)), name...)
	return append(appendInt(b, 0, 7, len(value)), value...)
}

func appendExtra(b []byte, extra http.Header) []byte {
	for name, values := range extra {
		for _, v := range values {
			b = appendField(b, strings.ToLower(name), v)
		}
	}
	return b
}
