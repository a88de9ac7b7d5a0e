package watch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

type marshaler interface{ Marshal() ([]byte, error) }

// enveloped returns an object in its envelope, as the API server writes it.
func enveloped(t testing.TB, o marshaler) []byte {
	t.Helper()
	raw, err := o.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	body, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(protobuf.Envelope), body...)
}

// protoEventOf returns one event of a stream.
func protoEventOf(t testing.TB, kind string, o marshaler) []byte {
	t.Helper()
	frame, err := (&metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: enveloped(t, o)}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
}

func testMeta() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: "flood-0", Namespace: "storm", UID: "1", ResourceVersion: "1234",
			Labels:        map[string]string{"a": "b"},
			Annotations:   map[string]string{"other": strings.Repeat("x", 5000), StampAnnotation: "run:17"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "loadgen", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)}},
		},
		Data: map[string]string{"payload": strings.Repeat("0123456789abcdef", 64)},
	}
}

// protoReference reads events with the API's decoders, up to the first event that they reject. ok is false if there is one.
func protoReference(stream []byte) (lines []string, ok bool) {
	for len(stream) > 0 {
		if len(stream) < 4 {
			return lines, false
		}
		n := int(binary.BigEndian.Uint32(stream))
		if n == 0 || n > listwatch.MaxEvent || n > len(stream)-4 {
			return lines, false
		}
		e, err := decodeEvent(stream[4 : 4+n])
		if err != nil {
			return lines, false
		}
		lines = append(lines, line(e))
		stream = stream[4+n:]
	}
	return lines, true
}

func decodeEvent(frame []byte) (*event, error) {
	var w metav1.WatchEvent
	if err := w.Unmarshal(frame); err != nil {
		return nil, err
	}
	body, ok := bytes.CutPrefix(w.Object.Raw, []byte(protobuf.Envelope))
	if !ok {
		return nil, errors.New("no envelope")
	}
	var u runtime.Unknown
	if err := u.Unmarshal(body); err != nil {
		return nil, err
	}
	e := &event{kind: kindOf([]byte(w.Type))}
	var o metav1.PartialObjectMetadata
	if err := o.Unmarshal(u.Raw); err != nil {
		return nil, err
	}
	e.rv = parseVersion([]byte(o.ResourceVersion))
	if o.Name != "" {
		e.name = hash([]byte(o.Name))
	}
	if o.Namespace != "" {
		e.namespace = hash([]byte(o.Namespace))
	}
	e.stamp = []byte(o.Annotations[StampAnnotation])
	e.ends = o.Annotations[endAnnotation] == "true"
	if e.kind == errorEvent {
		var s metav1.Status
		if err := s.Unmarshal(u.Raw); err != nil {
			return nil, err
		}
		e.code = int(s.Code)
	}
	return e, nil
}

var emptyName = hash(nil)

// protoSeen is like seen, but leaves out what the reference does not report: that an empty name was written, and a code
// outside of a Status.
type protoSeen struct{ seen }

func (s *protoSeen) take(e *event) error {
	c := *e
	if c.kind != errorEvent {
		c.code = 0
	}
	if c.name == emptyName {
		c.name = 0
	}
	if c.namespace == emptyName {
		c.namespace = 0
	}
	return s.seen.take(&c)
}

func protoStreams(t testing.TB) [][]byte {
	cm := protoEventOf(t, "MODIFIED", testMeta())
	partial := &metav1.PartialObjectMetadata{ObjectMeta: testMeta().ObjectMeta}
	bookmark := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "99", Annotations: map[string]string{endAnnotation: "true"}}}
	return [][]byte{
		cm,
		bytes.Repeat(cm, 3),
		protoEventOf(t, "ADDED", partial),
		protoEventOf(t, "BOOKMARK", bookmark),
		protoEventOf(t, "ERROR", &metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old"}),
		protoEventOf(t, "DELETED", &corev1.ConfigMap{}),
		protoEventOf(t, "NEW", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", ResourceVersion: "7"}}),
		cm[:len(cm)-1],
		append([]byte{0, 0, 0, 0}, cm...),
		{0, 0, 0, 2, 0x0a, 0x7f},
		{0, 0, 0, 3, 0x08, 0x01, 0x00},
		{0xff, 0xff, 0xff, 0xff},
	}
}

func TestProtobufIsReadAsTheAPIDoes(t *testing.T) {
	for i, stream := range protoStreams(t) {
		for seed := range uint64(30) {
			checkProto(t, stream, seed)
		}
		if i == 0 {
			var got seen
			if err := newProto(&got, levelEvent).feed(stream); err != nil || len(got.lines) != 1 || !strings.Contains(got.lines[0], `2 rv=1234 code=0 ends=false`) || !strings.Contains(got.lines[0], `"run:17"`) {
				t.Errorf("%v %v", got.lines, err)
			}
		}
	}
}

func checkProto(t *testing.T, stream []byte, seed uint64) {
	t.Helper()
	var got, whole protoSeen
	err := scanPieces(newProto(&got, levelEvent), stream, seed)
	s := newProto(&whole, levelEvent)
	wholeErr := s.feed(stream)
	if wholeErr == nil && !s.idle() {
		wholeErr = io.ErrUnexpectedEOF
	}
	if (err == nil) != (wholeErr == nil) || strings.Join(got.lines, "\n") != strings.Join(whole.lines, "\n") {
		t.Fatalf("in pieces: %v %v\nas one:   %v %v\n%x", got.lines, err, whole.lines, wholeErr, stream)
	}
	want, valid := protoReference(stream)
	if valid && err != nil && !neverWritten(stream) {
		t.Fatalf("refused: %v\n%x", err, stream)
	}
	if err == nil && !valid && len(got.lines) < len(want) {
		t.Fatalf("%d events, the API reads %d\n%x", len(got.lines), len(want), stream)
	}
	for i := range min(len(want), len(got.lines)) {
		if got.lines[i] != want[i] && !neverWritten(stream) {
			t.Fatalf("event %d: %s\nthe API reads:  %s\n%x", i, got.lines[i], want[i], stream)
		}
	}
}

// neverWritten reports whether an event has a form that the API's decoders accept but that the scanner rejects or reads
// differently, see protoScanner.
func neverWritten(stream []byte) bool {
	for len(stream) >= 4 {
		n := int(binary.BigEndian.Uint32(stream))
		if n > len(stream)-4 {
			return false
		}
		if odd(stream[4:4+n], protoEvent) {
			return true
		}
		stream = stream[4+n:]
	}
	return false
}

func odd(msg []byte, level protoLevel) bool {
	if level == protoEnvelope {
		body, ok := bytes.CutPrefix(msg, []byte(protobuf.Envelope))
		if !ok {
			return true // an invalid object, which a later one may replace
		}
		msg = body
	}
	s := &protoScanner{level: level}
	times, named := 0, false
	for len(msg) > 0 {
		number, typ, n := protowire.ConsumeTag(msg)
		if n < 0 {
			// Bytes that protowire rejects and generated code accepts, such as numbers that overflow.
			return true
		}
		msg = msg[n:]
		n = protowire.ConsumeFieldValue(number, typ, msg)
		if n < 0 || typ == protowire.StartGroupType || typ == protowire.EndGroupType {
			return true
		}
		content := msg[:n]
		msg = msg[n:]
		switch meaning := s.meaning(int32(number)); meaning {
		case fieldDescend:
			b, n := protowire.ConsumeBytes(content)
			if n < 0 {
				return true
			}
			if times++; times > 1 && level != protoMetadata || odd(b, level+1) {
				return true
			}
		case fieldEncoding:
			if len(content) > 1 {
				return true
			}
		case fieldKey:
			named = true
		case fieldValue:
			if !named {
				return true
			}
		}
		if level == protoEntry && typ != protowire.BytesType || level == protoMetadata && typ != protowire.BytesType {
			return true // a number in the ListMeta of a Status or in a map entry
		}
	}
	return false
}

// For any stream that the API's decoders accept, split anywhere, the scanner finds the same events.
func FuzzProtobuf(f *testing.F) {
	for i, s := range protoStreams(f) {
		f.Add(s, uint64(i))
	}
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		if len(stream) > longestValue { // longer strings are refused on purpose
			return
		}
		checkProto(t, stream, seed)
	})
}

func TestProtobufListsTellTheirVersion(t *testing.T) {
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "100", Continue: "x"}}
	var stream []byte
	for range 3 {
		stream = enveloped(t, list)
		for seed := range uint64(20) {
			var got seen
			if err := scanPieces(newProto(&got, levelObject), stream, seed); err != nil || len(got.lines) != 1 || !strings.HasPrefix(got.lines[0], "0 rv=100 ") {
				t.Fatalf("%d items: %v %v", len(list.Items), got.lines, err)
			}
		}
		list.Items = append(list.Items, *testMeta())
	}
	var got seen
	if err := scanPieces(newProto(&got, levelObject), stream[:len(stream)-3], 1); err == nil {
		t.Error("a truncated list counts as complete")
	}
}

func BenchmarkScanProtobuf(b *testing.B) {
	cm := testMeta()
	cm.Annotations = map[string]string{StampAnnotation: "run:17"}
	benchmarkScan(b, newProto(discard{}, levelEvent), protoEventOf(b, "MODIFIED", cm))
}
