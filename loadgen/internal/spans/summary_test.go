package spans

import (
	"testing"
)

// The span of a webhook call shows the webhook's name, which only its parent has.
func TestSpansSayWhatTheyWorkOn(t *testing.T) {
	r, _ := traced(1, 5)
	s := func(n, parent int, name string, client bool, key, value string) Span {
		return Span{Trace: r.Trace, ID: id(n), Parent: id(parent), Process: "kube-apiserver-0", Name: name, Client: client, Start: int64(n), End: 9, Attributes: []Attribute{{key, value}}}
	}
	x := Trace{Request: r, Spans: []Span{
		s(2, 1, "POST /api/v1/pods", false, attributeTarget, "/api/v1/pods?x=y"),
		s(3, 2, "Call validating webhook", false, "webhook", "policy.example.com"),
		s(4, 3, "HTTP POST", true, "url.full", "https://127.0.0.1:7/"),
		s(5, 2, "Create etcd3", false, "key", "/pods/ns/a"),
	}}
	want := []string{"", "/api/v1/pods?x=y", "policy.example.com", "policy.example.com", "/pods/ns/a"}
	for i, got := range x.Result().Spans {
		if got.Detail != want[i] {
			t.Errorf("%s: %q, want %q", got.Name, got.Detail, want[i])
		}
	}
}
