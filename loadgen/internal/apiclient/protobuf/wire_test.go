package protobuf

import (
	"bytes"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// wrapped returns an object in its envelope, encoded by Kubernetes' own encoder.
func wrapped(t testing.TB, o interface{ Marshal() ([]byte, error) }, encoding string) []byte {
	t.Helper()
	raw, err := o.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{Kind: "x"}, Raw: raw, ContentEncoding: encoding}
	body, err := u.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(Envelope), body...)
}

func event(t testing.TB, kind string, object []byte) []byte {
	t.Helper()
	data, err := (&metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: object}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestMessagesOfTheAPIAreRead(t *testing.T) {
	list := &corev1.PodList{
		ListMeta: metav1.ListMeta{ResourceVersion: "100", Continue: "more"},
		Items:    []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}},
	}
	var names []string
	meta, err := List(wrapped(t, list, ""), func(object []byte) error {
		var p corev1.Pod
		err := p.Unmarshal(object)
		names = append(names, p.Name)
		return err
	})
	if err != nil || meta != (ListMeta{"100", "more"}) || len(names) != 2 || names[1] != "b" {
		t.Errorf("%+v %v %v", meta, names, err)
	}
	pod := &list.Items[0]
	raw, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"MODIFIED", "SOMETHING"} {
		got, object, err := Event(event(t, kind, wrapped(t, pod, "")))
		if err != nil || got != kind || !bytes.Equal(object, raw) {
			t.Errorf("%s %q %v", got, object, err)
		}
	}
}

func TestForeignMessagesAreErrors(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	whole := event(t, "ADDED", wrapped(t, pod, ""))
	for n := range whole {
		if kind, object, err := Event(whole[:n]); !errors.Is(err, ErrFormat) {
			t.Errorf("the first %d of %d bytes: %q %q %v", n, len(whole), kind, object, err)
		}
	}
	for what, data := range map[string][]byte{
		"no envelope": []byte(`{"kind":"Status"}`), "compressed": wrapped(t, pod, "gzip"), "nothing": nil,
	} {
		if _, err := Unwrap(data); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// FuzzEvent checks that data from a server causes no panic.
func FuzzEvent(f *testing.F) {
	f.Add(event(f, "ADDED", wrapped(f, &corev1.Pod{}, "")))
	f.Add([]byte(Envelope))
	f.Add([]byte{0x12, 0x7f})
	f.Fuzz(func(_ *testing.T, data []byte) {
		if _, object, err := Event(data); err == nil {
			_, _ = ReadObject(object, func([]byte, []byte) {})
		}
		_, _ = List(data, func([]byte) error { return nil })
	})
}
