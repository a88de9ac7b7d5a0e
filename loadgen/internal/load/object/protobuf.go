package object

import "google.golang.org/protobuf/encoding/protowire"

// Field numbers (apimachinery, runtime and meta/v1, generated.proto).
const (
	unknownRaw        = 2
	itsMetadata       = 1 // of every object and list
	listMetaContinue  = 3
	objectMetaVersion = 6
)

// metadata finds a field in the metadata of an object or list, from the head of its envelope. known: more of the
// answer would change nothing.
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

// mostBefore is how many fields may stand before a wanted one. It bounds the work of an answer.
const mostBefore = 8

// member returns the beginning of a field's contents from the head of a message.
func member(b []byte, number protowire.Number) (contents []byte, whole, ok bool) {
	for range mostBefore {
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
