package object

import (
	"errors"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/stormglass/stormglass/internal/cborscan"
	"github.com/stormglass/stormglass/internal/jsonscan"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

var (
	errNoAnswer    = errors.New("the response is empty")
	errNotProtobuf = errors.New("the response is not Kubernetes protobuf")
)

// Answer checks the responses to requests as they arrive, one after another, and keeps the values that the load needs.
// The zero value expects answers in JSON.
type Answer struct {
	action action
	tenant int

	// call.expect sets these fields. protobuf means that the response must be in protobuf.
	protobuf bool
	gzip     bool  // whether the response may be compressed
	find     field // the metadata field to keep in protobuf; in JSON and CBOR, token and version are always kept

	begun      bool
	compressed bool // whether the response is compressed and not checked
	json       document
	head       []byte // beginning of a protobuf response: the magic number and, if a field must be found, the metadata
	found      bool
	value      []byte // value of the metadata field that `find` selects
}

// longestHead is the size of the beginning of a protobuf response in which an Answer searches for a metadata field.
// Metadata is the first field of an object or list.
const longestHead = longestValue + 4<<10

// Begin prepares for the next response. gzip means that the response may be compressed.
func (a *Answer) Begin(gzip bool) {
	a.gzip = gzip
	a.begun, a.compressed, a.found = false, false, false
	a.json.reset()
	a.head, a.value = a.head[:0], a.value[:0]
}

// Data reads the next bytes of a 2xx response. An empty p marks the end of the response. Data fails if the response is
// not complete, or is not in the expected encoding.
func (a *Answer) Data(p []byte) error {
	if len(p) == 0 {
		return a.whole()
	}
	return a.write(p)
}

func (a *Answer) write(p []byte) error {
	if !a.begun {
		a.begun = true
		// The first byte of gzip cannot be the first byte of JSON, protobuf or CBOR. The API server compresses answers
		// over 128 KiB; these are not decompressed.
		a.compressed = a.gzip && p[0] == 0x1f
	}
	switch {
	case a.compressed:
		return nil
	case a.protobuf:
		return a.writeProtobuf(p)
	}
	return a.json.write(p)
}

// whole returns an error if a 2xx response is incomplete.
func (a *Answer) whole() error {
	switch {
	case !a.begun:
		return errNoAnswer
	case a.compressed:
		return nil
	case a.protobuf:
		if len(a.head) < len(protobuf.Envelope) {
			return errNotProtobuf
		}
		return nil
	}
	return a.json.whole()
}

func (a *Answer) writeProtobuf(p []byte) error {
	if a.found || len(a.head) >= len(protobuf.Envelope) && a.find == noField {
		return nil
	}
	most := longestHead
	if a.find == noField {
		most = len(protobuf.Envelope)
	}
	a.head = append(a.head, p[:min(len(p), most-len(a.head))]...)
	if n := min(len(a.head), len(protobuf.Envelope)); string(a.head[:n]) != protobuf.Envelope[:n] {
		return errNotProtobuf
	}
	if a.find != noField && len(a.head) > len(protobuf.Envelope) {
		value, known := metadata(a.head[len(protobuf.Envelope):], a.find)
		a.value, a.found = append(a.value[:0], value...), known || len(a.head) == longestHead
	}
	return nil
}

// Token returns the continue token in the metadata of the response. It is empty if there is no token.
func (a *Answer) Token() []byte {
	if a.protobuf {
		return a.value
	}
	return a.json.token
}

// Version returns the resourceVersion in the metadata of the response. It returns 0 if that is missing or not a number.
func (a *Answer) Version() uint64 {
	text := a.json.version
	if a.protobuf {
		text = a.value
	}
	return parseVersion(string(text))
}

// parseVersion parses a resourceVersion. It returns 0 if text is not a number.
func parseVersion(text string) uint64 {
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// versionIn returns the resourceVersion in the metadata of an object in JSON. It returns 0 if that is missing or not a
// number.
func versionIn(body []byte) uint64 {
	var d document
	if d.write(body) != nil {
		return 0
	}
	return parseVersion(string(d.version))
}

var (
	errNotJSON   = errors.New("the response is not JSON")
	errNotCBOR   = errors.New("the response is not CBOR")
	errTruncated = errors.New("the response is incomplete")
	errLongValue = errors.New("the response's continue token or resourceVersion is too long")
)

const (
	// longestKey is the maximum length of an object key that document reads, in bytes. It is long enough for the needed
	// keys even if each letter is a \u escape.
	longestKey = 128
	// longestValue is the maximum length of a value that document keeps, in bytes. Continue tokens of etcd have a few
	// hundred bytes.
	longestValue = 16 << 10
)

// document validates one JSON document, with the same result as encoding/json.Valid (see the fuzz test), or one CBOR
// item. It can read the document in chunks of any size, and keeps metadata.continue and metadata.resourceVersion.
type document struct {
	binary bool // whether the document is CBOR
	json   jsonscan.Scanner
	cbor   cborscan.Scanner
	depth  int   // 1 in the outermost object, 2 in its metadata
	field  field // the field whose value the scanner currently keeps
	// token and version are empty if the field is missing or not a string.
	token, version []byte
}

type field uint8

const (
	noField field = iota
	fieldContinue
	fieldVersion
)

func (d *document) reset() {
	d.json.Reset()
	d.cbor.Reset()
	d.depth = 0
	d.token, d.version = d.token[:0], d.version[:0]
}

// text returns the scanner for the document's encoding, JSON or CBOR.
func (d *document) text() jsonscan.Tokens {
	if d.binary {
		d.cbor.LongestKey, d.cbor.LongestValue = longestKey, longestValue
		return &d.cbor
	}
	d.json.LongestKey, d.json.LongestValue = longestKey, longestValue
	return &d.json
}

// write reads the next bytes. After an error, call reset.
func (d *document) write(p []byte) error {
	text := d.text()
	for len(p) > 0 {
		n, token, err := text.Next(p)
		switch {
		case errors.Is(err, jsonscan.ErrLong):
			return errLongValue
		case err != nil && d.binary:
			return errNotCBOR
		case err != nil:
			return errNotJSON
		}
		p = p[n:]
		switch token {
		case jsonscan.Key:
			d.key(text, string(text.Text()))
		case jsonscan.String:
			if d.field == fieldContinue {
				d.token = append(d.token, text.Text()...)
			} else {
				d.version = append(d.version, text.Text()...)
			}
		case jsonscan.Object:
			d.depth++
		case jsonscan.End:
			d.depth--
		}
	}
	return nil
}

// key handles an object key. It makes the scanner enter the object "metadata" and keep the values that are needed. If a
// key is repeated, the last value is kept.
func (d *document) key(text jsonscan.Tokens, key string) {
	switch {
	case d.depth == 1 && key == "metadata":
		d.token, d.version = d.token[:0], d.version[:0]
		text.Enter()
	case d.depth == 2 && key == "continue":
		d.field, d.token = fieldContinue, d.token[:0]
		text.Keep()
	case d.depth == 2 && key == "resourceVersion":
		d.field, d.version = fieldVersion, d.version[:0]
		text.Keep()
	}
}

// whole returns an error if the document is incomplete.
func (d *document) whole() error {
	if d.text().Complete() {
		return nil
	}
	return errTruncated
}

// Protobuf field numbers (apimachinery, runtime and meta/v1, generated.proto).
const (
	unknownRaw        = 2
	itsMetadata       = 1 // number of the metadata field of every object and list
	listMetaContinue  = 3
	objectMetaVersion = 6
)

// metadata finds a field in the metadata of an object or list. head is the beginning of the protobuf message
// runtime.Unknown that contains the object. `known` is false if more bytes could change the result.
func metadata(head []byte, f field) (value []byte, known bool) {
	raw, rawWhole, ok := member(head, unknownRaw)
	if !ok {
		return nil, false
	}
	meta, metaWhole, ok := member(raw, itsMetadata)
	if !ok {
		return nil, rawWhole
	}
	number := protowire.Number(listMetaContinue)
	if f == fieldVersion {
		number = objectMetaVersion
	}
	value, whole, ok := member(meta, number)
	if !ok {
		return nil, metaWhole
	}
	if !whole {
		return nil, false
	}
	return value, true
}

// maxBefore is the maximum number of fields of a message that the function member reads. This limits the work for a
// response.
const maxBefore = 8

// member finds a field in b, the beginning of a protobuf message. It returns those contents of the field that have
// arrived. `whole` is true if the contents are complete. ok is false if b does not contain the field.
func member(b []byte, number protowire.Number) (contents []byte, whole, ok bool) {
	for range maxBefore {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, false, false
		}
		b = b[n:]
		if typ != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
				return nil, false, false
			}
			b = b[n:]
			continue
		}
		length, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return nil, false, false
		}
		b = b[n:]
		whole = length <= uint64(len(b))
		if !whole {
			length = uint64(len(b))
		}
		if num == number {
			return b[:length], whole, true
		}
		b = b[length:]
	}
	return nil, false, false
}
