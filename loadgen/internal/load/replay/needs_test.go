package replay

import (
	"slices"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/load/object"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

func TestNeedsAreThoseOfWhatIsSent(t *testing.T) {
	tr := recordingOf(t,
		one("get", "pods", "a", 200),
		recording.Request{Verb: "list", Resource: "pods", Code: 200},
		recording.Request{Verb: "get", Resource: "nodes", Name: "n", Code: 200},
		recording.Request{Verb: "patch", Resource: "nodes", Subresource: "status", Name: "n", Code: 200},
		recording.Request{Verb: "update", Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: "prod", Name: "d", Code: 200},
		recording.Request{Verb: "list", Group: "nosuch.io", Resource: "gadgets", Code: 200},
	)
	got := Needs(tr, map[string]bool{"pods": true, "nodes": false, "deployments.apps": true, "configmaps": true})
	for _, want := range []object.Need{
		{Verb: "get", Resource: "pods"}, {Verb: "create", Resource: "pods"}, {Verb: "list", Resource: "pods", Cluster: true},
		{Verb: "get", Resource: "nodes", Cluster: true}, {Verb: "list", Resource: "nodes", Cluster: true},
		{Verb: "update", Group: "apps", Resource: "deployments/scale"}, {Verb: "create", Group: "apps", Resource: "deployments"},
		{Verb: "patch", Resource: "configmaps"},
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%+v is missing among %+v", want, got)
		}
	}
	for _, n := range got {
		if n.Group == "nosuch.io" || n.Verb == "patch" && n.Resource != "configmaps" {
			t.Errorf("the needs contain %+v, which no request needs", n)
		}
	}
}
