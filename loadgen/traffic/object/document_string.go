package object

import "github.com/stormglass/stormglass/internal/jsontext"

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
	n := jsontext.Plain(p)
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
