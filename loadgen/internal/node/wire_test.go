package node

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

// The view of an object must equal what decoding shows.
func TestScanSeesWhatDecodingWould(t *testing.T) {
	now := metav1.NewTime(time.Unix(1700000000, 0))
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", Namespace: "ns", UID: "u", ResourceVersion: "42", Generation: 7, DeletionTimestamp: &now, CreationTimestamp: now,
			Labels: map[string]string{"x": "y"}, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.ContainersReady, Status: corev1.ConditionFalse}, {Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}},
	}
	kind, object, err := protobuf.Event(frame("MODIFIED", "Pod", p)[4:])
	must(t, err)
	v, err := scan(object, podLayout())
	must(t, err)
	if kind != "MODIFIED" || string(v.Name) != "a" || string(v.Namespace) != "ns" || string(v.UID) != "u" || string(v.ResourceVersion) != "42" ||
		!v.Deleting || !v.initialEventsEnd || string(v.nodeName) != "n1" || string(v.ready) != "True" {
		t.Errorf("%s %+v", kind, v)
	}
	p.DeletionTimestamp, p.Annotations = nil, nil
	raw, err := p.Marshal()
	must(t, err)
	if v, err := scan(raw, podLayout()); err != nil || v.Deleting || v.initialEventsEnd {
		t.Errorf("%+v, %v", v, err)
	}
	n := &corev1.Node{Status: corev1.NodeStatus{Phase: "x", Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}}}
	raw, err = n.Marshal()
	must(t, err)
	if v, err := scan(raw, nodeLayout()); err != nil || string(v.ready) != "Unknown" {
		t.Errorf("%+v, %v", v, err)
	}
}

// No input from a server may crash this program.
func FuzzScan(f *testing.F) {
	raw, err := (&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u"}}).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte{0x12, 0x7f})
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = scan(data, podLayout()) })
}

func TestRefusalsAreReadInAnyForm(t *testing.T) {
	for body, want := range map[string]string{
		`{"kind":"Status","status":"Failure","reason":"Forbidden","message":"no","code":403}`: "no",
		"<html>gateway</html>": "the server responded with 403 <html>gateway</html>",
	} {
		if got := statusError(h2conn.Header{Status: 403}, []byte(body)).Error(); !strings.Contains(got, want) {
			t.Errorf("%q became %q", body, got)
		}
	}
}
