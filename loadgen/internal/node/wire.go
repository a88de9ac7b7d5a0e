package node

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

// strategic is the patch that kubelets send for statuses.
const strategic = "application/strategic-merge-patch+json"

type marshaler interface{ Marshal() ([]byte, error) }

func encode(apiVersion, kind string, object marshaler) ([]byte, error) {
	raw, err := object.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	return wrap(apiVersion, kind, raw), nil
}

// wrap puts an encoded object into the envelope of a request's body: the magic number and a runtime.Unknown
// {typeMeta = 1 {apiVersion = 1, kind = 2}, raw = 2, contentEncoding = 3, contentType = 4}.
func wrap(apiVersion, kind string, raw []byte) []byte {
	meta := 2 + len(apiVersion) + 2 + len(kind) // both are shorter than 128
	out := make([]byte, 0, len(protobuf.Envelope)+2+meta+6+len(raw)+4)
	out = append(out, protobuf.Envelope...)
	out = protowire.AppendTag(out, 1, protowire.BytesType)
	out = protowire.AppendVarint(out, uint64(meta))
	out = protowire.AppendTag(out, 1, protowire.BytesType)
	out = protowire.AppendString(out, apiVersion)
	out = protowire.AppendTag(out, 2, protowire.BytesType)
	out = protowire.AppendString(out, kind)
	out = appendField(out, 2, raw, 0)
	out = appendField(out, 3, []byte{}, 0) // set and empty, as generated encoders write it
	return appendField(out, 4, []byte{}, 0)
}

// appendField writes a field as protobuf.Fields read it: v, or the number x where v is nil.
func appendField(to []byte, n protowire.Number, v []byte, x uint64) []byte {
	if v == nil {
		return protowire.AppendVarint(protowire.AppendTag(to, n, protowire.VarintType), x)
	}
	return protowire.AppendBytes(protowire.AppendTag(to, n, protowire.BytesType), v)
}

func decode(data []byte, into interface{ Unmarshal([]byte) error }) error {
	raw, err := protobuf.Unwrap(data)
	if err != nil {
		return err
	}
	return into.Unmarshal(raw)
}

// view holds the fields read of most objects, which are echoes of our own writes. Byte slices are parts of the message.
type view struct {
	name, namespace, uid, version []byte
	deleting                      bool // has a deletionTimestamp
	initialEventsEnd              bool // a WatchList's closing bookmark
	nodeName                      []byte
	phase                         []byte
	ready                         []byte // status of the condition Ready
}

// layout is where a kind keeps what view holds, by the numbers of generated.proto.
type layout struct {
	nodeName   protowire.Number // in spec
	phase      protowire.Number // in status
	conditions protowire.Number // in status
}

func podLayout() layout  { return layout{nodeName: 10, phase: 1, conditions: 2} }
func nodeLayout() layout { return layout{conditions: 4} }

func scan(object []byte, l layout) (view, error) {
	var o view
	err := protobuf.Fields(object, func(n protowire.Number, v []byte, _ uint64) error {
		switch {
		case n == 1:
			return o.meta(v)
		case n == 2 && l.nodeName != 0:
			return protobuf.Fields(v, func(n protowire.Number, v []byte, _ uint64) error {
				if n == l.nodeName {
					o.nodeName = v
				}
				return nil
			})
		case n == 3 && l.conditions != 0:
			return protobuf.Fields(v, func(n protowire.Number, v []byte, _ uint64) error {
				switch n {
				case l.phase:
					o.phase = v
				case l.conditions:
					return o.condition(v)
				}
				return nil
			})
		}
		return nil
	})
	return o, err
}

func (o *view) meta(message []byte) error {
	return protobuf.Fields(message, func(n protowire.Number, v []byte, _ uint64) error {
		switch n {
		case 1:
			o.name = v
		case 3:
			o.namespace = v
		case 5:
			o.uid = v
		case 6:
			o.version = v
		case 9:
			o.deleting = true
		case 12: // annotations
			if bytes.Contains(v, []byte(metav1.InitialEventsAnnotationKey)) {
				o.initialEventsEnd = true
			}
		}
		return nil
	})
}

// condition reads a PodCondition or NodeCondition {type = 1, status = 2}.
func (o *view) condition(message []byte) error {
	var kind, status []byte
	err := protobuf.Fields(message, func(n protowire.Number, v []byte, _ uint64) error {
		switch n {
		case 1:
			kind = v
		case 2:
			status = v
		}
		return nil
	})
	if string(kind) == "Ready" {
		o.ready = status
	}
	return err
}

// number is a resourceVersion as a number (KEP-5504); 0 where it is none.
func number(version string) uint64 {
	n, err := strconv.ParseUint(strings.TrimSpace(version), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
