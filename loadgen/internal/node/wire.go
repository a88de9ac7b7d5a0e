package node

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

// strategic is the content type of the patches that kubelets send for statuses.
const strategic = "application/strategic-merge-patch+json"

type (
	marshaler   interface{ Marshal() ([]byte, error) }
	unmarshaler interface{ Unmarshal([]byte) error }
)

func encode(apiVersion, kind string, object marshaler) ([]byte, error) {
	raw, err := object.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	return wrap(apiVersion, kind, raw), nil
}

// wrap puts an encoded object into the protobuf envelope of Kubernetes request bodies: the magic number and a
// runtime.Unknown.
func wrap(apiVersion, kind string, raw []byte) []byte {
	object := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	out := append(make([]byte, 0, len(protobuf.Envelope)+object.Size()), protobuf.Envelope...)
	_, _ = object.MarshalTo(out[len(out):cap(out)]) // the buffer is large enough
	return out[:cap(out)]
}

// appendField appends the protobuf field n. Its value is the bytes v, or the number x if v is nil, as protobuf.Fields
// delivers fields.
func appendField(to []byte, n protowire.Number, v []byte, x uint64) []byte {
	if v == nil {
		return protowire.AppendVarint(protowire.AppendTag(to, n, protowire.VarintType), x)
	}
	return protowire.AppendBytes(protowire.AppendTag(to, n, protowire.BytesType), v)
}

func decode(data []byte, into unmarshaler) error {
	raw, err := protobuf.Unwrap(data)
	if err != nil {
		return err
	}
	return into.Unmarshal(raw)
}

// view holds the few fields that a watcher reads from each object. Most events result from the node's own writes, and
// need no more than these fields.
type view struct {
	protobuf.Object
	initialEventsEnd bool // whether the object is the bookmark that ends the initial list of a WatchList
	nodeName         []byte
	ready            []byte // status of the condition Ready, such as "True"
}

// layout holds the protobuf field numbers (generated.proto) that scan needs for one kind of object. scan does not read
// a field whose number is 0.
type layout struct {
	nodeName   protowire.Number // field number in the spec
	conditions protowire.Number // field number in the status
}

func podLayout() layout  { return layout{nodeName: 10, conditions: 2} }
func nodeLayout() layout { return layout{conditions: 4} }

func scan(object []byte, l layout) (v view, err error) {
	v.Object, err = protobuf.ReadObject(object, func(key, _ []byte) {
		v.initialEventsEnd = v.initialEventsEnd || string(key) == metav1.InitialEventsAnnotationKey
	})
	if err == nil && l.nodeName != 0 {
		v.nodeName, err = protobuf.Field(v.Spec, l.nodeName)
	}
	if err == nil && l.conditions != 0 {
		v.ready, err = protobuf.Ready(v.Status, l.conditions)
	}
	return v, err
}

// number parses a resourceVersion as a number (KEP-5504). It returns 0 if version is not a number.
func number(version string) uint64 {
	n, err := strconv.ParseUint(strings.TrimSpace(version), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
