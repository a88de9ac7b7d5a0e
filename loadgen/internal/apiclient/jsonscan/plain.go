package jsonscan

import (
	"encoding/binary"
	"math/bits"
)

// plain is how many bytes at the head of p are neither quote nor backslash nor control characters, eight at a
// time.
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
