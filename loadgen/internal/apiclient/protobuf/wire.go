// Package protobuf reads objects in the API server's protobuf encoding without decoding them into Go structs. Decoding
// whole pods costs at least six times the CPU (BenchmarkDecodePod in workload), and this program's own writes cause
// most events. A reader selects the fields of an object by their numbers (k8s.io/api/*/generated.proto). These numbers
// never change.
package protobuf

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// ContentType and WatchType are the media types of the API server's protobuf encoding.
const (
	ContentType = "application/vnd.kubernetes.protobuf"
	WatchType   = ContentType + ";stream=watch"
)

// Envelope is the magic number before every object in this encoding. A runtime.Unknown (apimachinery) follows it.
const Envelope = "k8s\x00"

// These are field numbers of messages in apimachinery's packages runtime and meta/v1.
const (
	unknownRaw              = 2
	unknownContentEncoding  = 3
	eventType, eventObject  = 1, 2
	rawExtensionRaw         = 1
	objectMetadata          = 1
	objectSpec              = 2
	objectStatus            = 3
	listMetadata, listItems = 1, 2
	listMetaResourceVersion = 2
	listMetaContinue        = 3
)

// ErrFormat means that data is not in the API server's protobuf encoding.
var ErrFormat = errors.New("not Kubernetes protobuf")

// Fields calls f for each field of a message. For a string, bytes or message field, b is its contents. For a numeric
// field, b is nil and v is its value.
func Fields(msg []byte, f func(num protowire.Number, b []byte, v uint64) error) error {
	for len(msg) > 0 {
		num, typ, n := protowire.ConsumeTag(msg)
		if n < 0 {
			return malformed(n)
		}
		msg = msg[n:]
		var b []byte
		var v uint64
		switch typ {
		case protowire.BytesType:
			b, n = protowire.ConsumeBytes(msg)
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(msg)
		default:
			n = protowire.ConsumeFieldValue(num, typ, msg)
		}
		if n < 0 {
			return malformed(n)
		}
		if err := f(num, b, v); err != nil {
			return err
		}
		msg = msg[n:]
	}
	return nil
}

func malformed(n int) error { return fmt.Errorf("%w: %w", ErrFormat, protowire.ParseError(n)) }

// Unwrap returns the message of an object from data, which must begin with Envelope.
func Unwrap(data []byte) ([]byte, error) {
	if len(data) < len(Envelope) || string(data[:len(Envelope)]) != Envelope {
		return nil, ErrFormat
	}
	var raw []byte
	err := Fields(data[len(Envelope):], func(num protowire.Number, b []byte, _ uint64) error {
		switch {
		case num == unknownRaw:
			raw = b
		case num == unknownContentEncoding && len(b) > 0:
			return fmt.Errorf("%w: an object has the content encoding %q", ErrFormat, b)
		}
		return nil
	})
	return raw, err
}

// Event returns the type of a watch event and the message of the event's object. If the type is ERROR, the object is a
// Status.
func Event(frame []byte) (kind string, object []byte, err error) {
	var raw []byte
	err = Fields(frame, func(num protowire.Number, b []byte, _ uint64) error {
		switch num {
		case eventType:
			kind = known(b)
		case eventObject:
			return Fields(b, func(num protowire.Number, b []byte, _ uint64) error {
				if num == rawExtensionRaw {
					raw = b
				}
				return nil
			})
		}
		return nil
	})
	if err == nil {
		object, err = Unwrap(raw)
	}
	return kind, object, err
}

// known returns an event type as a string. For the usual types it allocates nothing.
func known(kind []byte) string {
	for _, k := range [...]string{"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"} {
		if string(kind) == k {
			return k
		}
	}
	return string(kind)
}

// ListMeta is the metadata of a list.
type ListMeta struct {
	ResourceVersion string
	Continue        string // token of the next page; empty on the last page
}

// List reads a list of any kind from data, which must begin with Envelope. It calls item with the message of each item.
func List(data []byte, item func(object []byte) error) (m ListMeta, err error) {
	msg, err := Unwrap(data)
	if err != nil {
		return m, err
	}
	err = Fields(msg, func(num protowire.Number, b []byte, _ uint64) error {
		switch num {
		case listMetadata:
			return Fields(b, func(num protowire.Number, b []byte, _ uint64) error {
				switch num {
				case listMetaResourceVersion:
					m.ResourceVersion = string(b)
				case listMetaContinue:
					m.Continue = string(b)
				}
				return nil
			})
		case listItems:
			return item(b)
		}
		return nil
	})
	return m, err
}
