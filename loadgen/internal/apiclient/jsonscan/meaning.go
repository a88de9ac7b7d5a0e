package jsonscan

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// appendMeaning appends what the inside of a checked string stands for, as encoding/json: invalid UTF-8 and
// surrogates become U+FFFD.
func appendMeaning(b, inside []byte) []byte {
	for i := 0; i < len(inside); {
		c := inside[i]
		switch {
		case c != '\\':
			r, n := rune(c), 1
			if c >= utf8.RuneSelf {
				r, n = utf8.DecodeRune(inside[i:])
			}
			b = utf8.AppendRune(b, r)
			i += n
		case inside[i+1] != 'u':
			b = append(b, "\"\\/\b\f\n\r\t"[strings.IndexByte(`"\/bfnrt`, inside[i+1])])
			i += 2
		default:
			r := hexRune(inside[i+2:])
			i += 6
			if utf16.IsSurrogate(r) {
				pair := rune(utf8.RuneError)
				if rest := inside[i:]; len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
					pair = utf16.DecodeRune(r, hexRune(rest[2:]))
				}
				if r = pair; r != utf8.RuneError {
					i += 6
				}
			}
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

func hexRune(digits []byte) (r rune) {
	for _, c := range digits[:4] {
		switch {
		case c <= '9':
			c -= '0'
		default:
			c = c&^0x20 - 'A' + 10
		}
		r = r<<4 | rune(c)
	}
	return r
}
