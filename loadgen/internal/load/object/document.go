package object

import (
	"errors"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/jsonscan"
)

var (
	errNotJSON   = errors.New("the answer is not JSON")
	errTruncated = errors.New("the answer is not whole JSON")
	errLongValue = errors.New("the answer's continue token or resourceVersion is too long")
)

const (
	// longestKey is more than the wanted keys have, each letter written as \u and its number.
	longestKey = 128
	// longestValue bounds what is kept of an answer. etcd's tokens have a few hundred bytes.
	longestValue = 16 << 10
)

// document validates one JSON document as encoding/json.Valid does (see the fuzz test), in pieces of any size. It
// keeps metadata.continue and metadata.resourceVersion.
type document struct {
	text  jsonscan.Scanner
	depth int   // 1 in the document's object, 2 in its metadata
	field field // whose value was asked for
	// token and version are "" if there are none that are strings.
	token, version []byte
}

type field uint8

const (
	noField field = iota
	fieldContinue
	fieldVersion
)

func (d *document) reset() {
	d.text.Reset()
	d.depth = 0
	d.token, d.version = d.token[:0], d.version[:0]
}

// write reads the next piece. After an error the document is of no use.
func (d *document) write(p []byte) error {
	d.text.LongestKey, d.text.LongestValue = longestKey, longestValue // the zero value is ready
	for len(p) > 0 {
		n, token, err := d.text.Next(p)
		if err != nil {
			if errors.Is(err, jsonscan.ErrLong) {
				return errLongValue
			}
			return errNotJSON
		}
		p = p[n:]
		switch token {
		case jsonscan.Key:
			d.key(string(d.text.Text()))
		case jsonscan.String:
			if d.field == fieldContinue {
				d.token = append(d.token, d.text.Text()...)
			} else {
				d.version = append(d.version, d.text.Text()...)
			}
		case jsonscan.Object:
			d.depth++
		case jsonscan.End:
			d.depth--
		}
	}
	return nil
}

// key asks for what is looked for. The last member of a name counts.
func (d *document) key(key string) {
	switch {
	case d.depth == 1 && key == "metadata":
		d.token, d.version = d.token[:0], d.version[:0]
		d.text.Enter()
	case d.depth == 2 && key == "continue":
		d.field, d.token = fieldContinue, d.token[:0]
		d.text.Keep()
	case d.depth == 2 && key == "resourceVersion":
		d.field, d.version = fieldVersion, d.version[:0]
		d.text.Keep()
	}
}

// whole reports whether the document has ended.
func (d *document) whole() error {
	if d.text.Complete() {
		return nil
	}
	return errTruncated
}
