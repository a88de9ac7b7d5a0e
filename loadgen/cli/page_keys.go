package cli

// keyParser finds the keys in the input from a terminal. It ignores pasted text and escape sequences, such as arrow keys.
type keyParser struct {
	state  keyState
	digits string // parameter of the current escape sequence
	pasted bool
}

type keyState int

const (
	keyPlain  keyState = iota
	keyEscape          // the last byte was ESC
	keyCSI             // inside an escape sequence that begins with ESC [
	keySS3             // the last bytes were ESC O
)

// The parameters of the escape sequences that a terminal sends before and after pasted text.
const (
	pasteBegins = "200"
	pasteEnds   = "201"
)

// feed parses the next bytes of the input and returns the keys in them.
func (p *keyParser) feed(data []byte) (keys []byte) {
	for _, b := range data {
		switch p.state {
		case keyEscape:
			p.state = map[byte]keyState{'[': keyCSI, 'O': keySS3, 0x1b: keyEscape}[b]
			p.digits = ""
		case keySS3:
			p.state = keyPlain
		case keyCSI:
			if b < 0x40 || b > 0x7e {
				if len(p.digits) < 8 {
					p.digits += string(rune(b))
				}
				continue
			}
			p.state = keyPlain
			if b == '~' && (p.digits == pasteBegins || p.digits == pasteEnds) {
				p.pasted = p.digits == pasteBegins
			}
		default:
			if b == 0x1b {
				p.state = keyEscape
			} else if !p.pasted {
				keys = append(keys, b)
			}
		}
	}
	return keys
}
