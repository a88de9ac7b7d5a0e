package watch

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"
)

const (
	// StampAnnotation is the annotation that marks a measured write. Its value is "<ledger id>:<sequence number>".
	StampAnnotation = "stormglass.dev/stamp"
	// endAnnotation is the annotation on the bookmark that ends the initial events of a WatchList.
	endAnnotation = "k8s.io/initial-events-end"
)

type eventKind uint8

const (
	unknownEvent eventKind = iota
	added
	modified
	deleted
	bookmark
	errorEvent
)

func kindOf(value []byte) eventKind {
	switch string(value) {
	case "ADDED":
		return added
	case "MODIFIED":
		return modified
	case "DELETED":
		return deleted
	case "BOOKMARK":
		return bookmark
	case "ERROR":
		return errorEvent
	}
	return unknownEvent
}

// event contains the values that a scanner reads from one watch event, one object or one list.
type event struct {
	kind eventKind
	// rv is object.metadata.resourceVersion; 0 if it is absent or not a number.
	rv uint64
	// code is object.code: the HTTP status of an ERROR event.
	code int
	// ends means that the event is the bookmark that ends the initial events of a WatchList.
	ends bool
	// name and namespace are hashes of the object's name and namespace. They are 0 for an absent or empty name.
	name, namespace uint64
	// stamp is the value of StampAnnotation, valid until `take` returns.
	stamp []byte
}

// key is a hash that distinguishes objects of one resource.
func (e *event) key() uint64 { return e.name ^ bits.RotateLeft64(e.namespace, 32) }

// eventSink receives the events that a scanner finds. If `take` returns an error, the scanner stops.
type eventSink interface{ take(*event) error }

// scanner finds the events in a stream that arrives in chunks of any size. It keeps only a few values of an event, so
// its memory does not depend on the size of objects.
type scanner interface {
	// feed reads the next bytes. After an error, the scanner must be reset.
	feed(p []byte) error
	// idle reports whether the scanner is between two events, where the stream may end.
	idle() bool
	reset()
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", listwatch.ErrMalformed, fmt.Sprintf(format, args...))
}

// Maximum lengths of keys and values that are read, in encoded bytes including escapes.
const (
	longestKey   = 256
	longestValue = 4096
)

var errLongValue = malformed("a key or value exceeds its maximum length")

// hash returns a hash of b, or 0 if b is empty.
func hash(b []byte) uint64 {
	if len(b) == 0 {
		return 0
	}
	const prime = 0x9e3779b97f4a7c15
	h := uint64(len(b)) * prime
	for ; len(b) >= 8; b = b[8:] {
		h = mix(h^binary.LittleEndian.Uint64(b), prime)
	}
	var last uint64
	for i, c := range b {
		last |= uint64(c) << (8 * i)
	}
	return mix(h^last, prime) | 1
}

func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// parseVersion parses a resourceVersion. It returns 0 if b is not a decimal number of 64 bits. Unlike strconv.ParseUint,
// it does not allocate a string.
func parseVersion(b []byte) (v uint64) {
	if len(b) == 0 || len(b) > 20 {
		return 0
	}
	for _, c := range b {
		digit := uint64(c - '0')
		if digit > 9 || v > (1<<64-1-digit)/10 {
			return 0
		}
		v = v*10 + digit
	}
	return v
}

// level is the nesting level of the object that the scanner is reading. The levels are in order from the outermost to
// the innermost.
type level uint8

const (
	outside level = iota
	levelEvent
	levelObject
	levelMetadata
	levelAnnotations
)

type field uint8

const (
	noField field = iota
	fieldType
	fieldCode
	fieldRV
	fieldName
	fieldNamespace
	fieldStamp
	fieldEnds
	fieldDescend // the nested object at the next level
	// fieldEncoding is the encoding of an object. Only protobuf has this field.
	fieldEncoding
	fieldKey   // key of an annotation
	fieldValue // value of the annotation whose key was read last
)

func fieldOf(l level, key []byte) field {
	switch l {
	case levelEvent:
		switch string(key) {
		case "type":
			return fieldType
		case "object":
			return fieldDescend
		}
	case levelObject:
		switch string(key) {
		case "metadata":
			return fieldDescend
		case "code":
			return fieldCode
		}
	case levelMetadata:
		switch string(key) {
		case "annotations":
			return fieldDescend
		case "resourceVersion":
			return fieldRV
		case "name":
			return fieldName
		case "namespace":
			return fieldNamespace
		}
	case levelAnnotations:
		return annotation(key)
	}
	return noField
}

func annotation(key []byte) field {
	switch string(key) {
	case StampAnnotation:
		return fieldStamp
	case endAnnotation:
		return fieldEnds
	}
	return noField
}

// set stores the value of the field f. text is the encoded value; an empty text means that there is no value.
func (e *event) set(f field, text []byte) {
	switch f {
	case fieldType:
		e.kind = kindOf(text)
	case fieldCode:
		e.code, _ = strconv.Atoi(string(text))
	case fieldRV:
		e.rv = parseVersion(text)
	case fieldName:
		e.name = hash(text)
	case fieldNamespace:
		e.namespace = hash(text)
	case fieldStamp:
		e.stamp = append(e.stamp[:0], text...)
	case fieldEnds:
		e.ends = string(text) == "true"
	}
}
