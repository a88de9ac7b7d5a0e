package object

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

func read(a *Answer, body []byte, n int) error {
	a.Begin(a.gzip)
	for len(body) > 0 {
		k := min(n, len(body))
		if err := a.write(body[:k]); err != nil {
			return err
		}
		body = body[k:]
	}
	return a.whole()
}

func encoded(t *testing.T, o runtime.Object) []byte {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, corev1.AddToScheme(scheme))
	var b bytes.Buffer
	must(t, protobuf.NewSerializer(scheme, scheme).Encode(o, &b))
	return b.Bytes()
}

// Token and version of protobuf responses are found in pieces of any size.
func TestMetadataOfProtobuf(t *testing.T) {
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "77", Continue: "to/ken=="}}
	for range 20 {
		list.Items = append(list.Items, corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "one", ResourceVersion: "5"}, Data: map[string]string{"payload": strings.Repeat("x", 2000)},
		})
	}
	last := list.DeepCopy()
	last.Continue = ""
	one := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "storm", UID: "u", ResourceVersion: "123", Labels: map[string]string{"a": "b"}},
	}
	for _, c := range []struct {
		o       runtime.Object
		find    field
		token   string
		version uint64
	}{{list, fieldContinue, "to/ken==", 0}, {last, fieldContinue, "", 0}, {one, fieldVersion, "", 123}} {
		body := encoded(t, c.o)
		for _, n := range []int{1, 2, 3, 7, 50, 16384, len(body)} {
			a := &Answer{protobuf: true, find: c.find}
			must(t, read(a, body, n))
			if c.find == fieldContinue && string(a.Token()) != c.token {
				t.Errorf("token %q, want %q, in pieces of %d", a.Token(), c.token, n)
			}
			if c.find == fieldVersion && a.Version() != c.version {
				t.Errorf("version %d, want %d, in pieces of %d", a.Version(), c.version, n)
			}
			if len(a.head) > longestHead {
				t.Errorf("the Answer keeps %d bytes", len(a.head))
			}
		}
	}
}

func FuzzProtobufMetadata(f *testing.F) {
	f.Add([]byte{0x12, 0x08, 0x0a, 0x06, 0x12, 0x01, '7', 0x1a, 0x01, 't'})
	f.Fuzz(func(t *testing.T, head []byte) {
		for _, field := range []field{fieldContinue, fieldVersion} {
			if value, _ := metadata(head, field); len(value) > len(head) {
				t.Fatal("the Answer accepts more bytes than the response has")
			}
		}
	})
}

// A response that does not match the request is malformed.
func TestAnswersThatAreNotWhatWasAskedFor(t *testing.T) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write([]byte(`{"kind":"ConfigMapList"}`))
	must(t, w.Close())
	for _, c := range []struct {
		name string
		a    Answer
		body string
		ok   bool
	}{
		{"json", Answer{}, `{"kind":"ConfigMap"}`, true},
		{"half of it", Answer{}, `{"kind":"Conf`, false},
		{"nothing", Answer{}, ``, false},
		{"a page of a proxy", Answer{}, `<html>Bad Gateway</html>`, false},
		{"protobuf for json", Answer{}, "k8s\x00\x0a", false},
		{"protobuf", Answer{protobuf: true}, "k8s\x00\x0a", true},
		{"json for protobuf", Answer{protobuf: true}, `{"kind":"ConfigMap"}`, false},
		{"half a magic number", Answer{protobuf: true}, `k8`, false},
		{"nothing for protobuf", Answer{protobuf: true}, ``, false},
		{"gzip that was requested", Answer{gzip: true}, zipped.String(), true},
		{"gzip for protobuf", Answer{gzip: true, protobuf: true}, zipped.String(), true},
		{"gzip that was not", Answer{}, zipped.String(), false},
	} {
		for _, n := range []int{1, 4096} {
			if err := read(&c.a, []byte(c.body), n); (err == nil) != c.ok {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}
