package object

import (
	"encoding/binary"
	"math/bits"
)

// longestKey is more than the keys that are looked for have.
const longestKey = 32

func (d *document) beginKey() {
	d.state, d.isKey, d.keep, d.field = inString, true, noField, noField
	if d.depth == 1 || d.depth == 2 && d.inMeta {
		d.keep, d.key = fieldKey, d.key[:0]
	}
}

// inString reads on in a string and returns how many bytes it took.
func (d *document) inString(p []byte) (int, error) {
	n := plain(p)
	switch d.keep {
	case noField:
	case fieldKey:
		if len(d.key) < longestKey {
			d.key = append(d.key, p[:min(n, longestKey)]...)
		}
	default:
		b := d.buffer()
		if *b = append(*b, p[:n]...); len(*b) > longestValue {
			return 0, errLongValue
		}
	}
	if n == len(p) {
		return n, nil
	}
	switch c := p[n]; c {
	case '"':
		d.endString()
	case '\\':
		d.state = inEscape
		d.kept(c)
	default:
		return 0, errNotJSON // a control character
	}
	return n + 1, nil
}

func (d *document) endString() {
	if !d.isKey {
		d.ended()
		return
	}
	d.state = beforeColon
	if d.keep == noField {
		return
	}
	switch key := string(d.key); {
	case d.depth == 1 && key == "metadata":
		d.field = fieldMetadata
	case d.depth == 2 && key == "continue":
		d.field = fieldContinue
	case d.depth == 2 && key == "resourceVersion":
		d.field = fieldVersion
	}
}

// kept keeps a byte of an escape. A key with one is none that is looked for:
// the API server's encoder writes letters as they are.
func (d *document) kept(c byte) {
	switch d.keep {
	case noField:
	case fieldKey:
		if len(d.key) < longestKey {
			d.key = append(d.key, c)
		}
	default:
		b := d.buffer()
		*b = append(*b, c)
	}
}

// buffer is where the string being read is kept.
func (d *document) buffer() *[]byte {
	switch {
	case d.keep == fieldContinue:
		return &d.token
	case d.keep == fieldVersion:
		return &d.version
	}
	return &d.key
}

// plain is how many bytes at the head of p are a string's own: neither quote
// nor backslash nor control characters. Eight at a time: the bodies of lists
// are mostly strings.
func plain(p []byte) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(p); i += 8 {
		x := binary.LittleEndian.Uint64(p[i:])
		quote, slash := x^(low*'"'), x^(low*'\\')
		// The lowest bit set is right: borrows only go up.
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
