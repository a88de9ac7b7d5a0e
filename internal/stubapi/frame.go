package stubapi

import (
	"strconv"

	"golang.org/x/net/http2"
)

// appendFrame appends the header of a frame (RFC 9113, 4.1).
func appendFrame(b []byte, kind http2.FrameType, flags http2.Flags, id uint32, length int) []byte {
	return append(b, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags),
		byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
}

// appendField appends a header field as a literal that is never indexed
// (RFC 7541, 6.2.2), without a Huffman code.
func appendField(b []byte, name, value string) []byte {
	b = append(b, 0)
	b = append(appendLength(b, len(name)), name...)
	return append(appendLength(b, len(value)), value...)
}

// appendLength is an integer of prefix 7 (RFC 7541, 5.1).
func appendLength(b []byte, n int) []byte {
	if n < 127 {
		return append(b, byte(n))
	}
	b = append(b, 127)
	for n -= 127; n >= 128; n >>= 7 {
		b = append(b, byte(n)|128)
	}
	return append(b, byte(n))
}

// appendStatus appends :status.
func appendStatus(b []byte, status int) []byte {
	if status == 200 {
		return append(b, 0x88) // static table
	}
	return appendField(b, ":status", strconv.Itoa(status))
}
