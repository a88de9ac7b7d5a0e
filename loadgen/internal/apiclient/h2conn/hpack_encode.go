package h2conn

import (
	"net/http"
	"strings"
)

// resizeTable is the first thing a header encoder says: no dynamic table.
const resizeTable = 0x20

// appendInt appends an integer behind the high bits of its first byte (RFC 7541, 5.1).
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

// appendNamed appends a field with a name in the static table, not Huffman-coded, to save CPU.
func appendNamed[T string | []byte](b []byte, index int, value T) []byte {
	b = appendInt(b, 0, 4, index)
	return append(appendInt(b, 0, 7, len(value)), value...)
}

// appendField appends any other field, marked as never to be indexed.
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
