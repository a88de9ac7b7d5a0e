package stubapi

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// form is the encoding of a response: JSON or protobuf, of whole objects or of their metadata.
type form struct {
	protobuf bool
	metadata bool // whether to send only the metadata (PartialObjectMetadata)
}

const (
	jsonType      = "application/json"
	protobufType  = "application/vnd.kubernetes.protobuf"
	protobufWatch = protobufType + ";stream=watch"
)

// formOf returns the first encoding in an Accept header that the stub supports. It supports protobuf only for built-in
// resources.
func formOf(accept string, r resource) form {
	for _, one := range strings.Split(accept, ",") {
		f := form{
			protobuf: strings.Contains(one, protobufType),
			metadata: strings.Contains(one, "as=PartialObjectMetadata"),
		}
		if !f.protobuf || !strings.Contains(r.group, "stormglass") {
			return f
		}
	}
	return form{}
}

func (f form) contentType(watch bool) string {
	switch {
	case f.protobuf && watch:
		return protobufWatch
	case f.protobuf:
		return protobufType
	}
	return jsonType
}

func (f form) object(o *object) []byte {
	if b := o.forms[f]; b != nil {
		return b
	}
	b := o.json
	if f.metadata {
		b = encoded(map[string]any{
			"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o.fields["metadata"],
		})
	}
	if f.protobuf {
		b = toProtobuf(b)
	}
	if o.forms == nil {
		o.forms = map[form][]byte{}
	}
	o.forms[f] = b
	return b
}

func (f form) list(r resource, all []*object, rv uint64, next string, remaining int) []byte {
	kind, version := r.kind+"List", r.apiVersion()
	meta := map[string]any{"resourceVersion": fmt.Sprint(rv)}
	if next != "" {
		meta["continue"], meta["remainingItemCount"] = next, remaining
	}
	if f.metadata {
		kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, kind, version, encoded(meta))
	for i, o := range all {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(form{metadata: f.metadata}.object(o))
	}
	b.WriteString("]}\n")
	if f.protobuf {
		return toProtobuf(b.Bytes())
	}
	return b.Bytes()
}

// event returns the encoding of a watch event. object is the encoded object of the event.
func (f form) event(kind string, object []byte) []byte {
	if !f.protobuf {
		return fmt.Appendf(nil, "{\"type\":%q,\"object\":%s}\n", kind, bytes.TrimSpace(object))
	}
	e := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: object}}
	b, err := e.Marshal()
	if err != nil {
		panic(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func (f form) status(code int, reason metav1.StatusReason, message string) []byte {
	s := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
	if code < 300 {
		s.Status = metav1.StatusSuccess
	}
	if f.protobuf {
		return toProtobuf(encoded(s))
	}
	return encoded(s)
}

// kinds is the scheme of the built-in kinds and of the kinds of partial objects. codecs decodes these kinds.
var kinds, codecs = func() (*runtime.Scheme, serializer.CodecFactory) {
	s := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(s), metav1.AddMetaToScheme(s)); err != nil {
		panic(err) // cannot happen for these types
	}
	return s, serializer.NewCodecFactory(s)
}()

// toProtobuf converts the JSON of an object of a built-in kind to protobuf. It panics for other kinds.
func toProtobuf(json []byte) []byte {
	o, _, err := codecs.UniversalDeserializer().Decode(json, nil, nil)
	if err != nil {
		panic(fmt.Errorf("not a built-in object: %w", err))
	}
	var b bytes.Buffer
	if err := protobuf.NewSerializer(kinds, kinds).Encode(o, &b); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// fieldsOf decodes the object in the body of a request. contentType is the encoding of the body.
func fieldsOf(r resource, contentType string, body []byte) (map[string]any, error) {
	if strings.HasPrefix(contentType, protobufType) {
		o, _, err := codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return nil, err
		}
		if body, err = json.Marshal(o); err != nil {
			return nil, err
		}
	}
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	if fields == nil {
		return nil, fmt.Errorf("the body is not an object")
	}
	fields["apiVersion"], fields["kind"] = r.apiVersion(), r.kind
	return fields, nil
}
