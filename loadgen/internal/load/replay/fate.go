package replay

import (
	"slices"

	"github.com/stormglass/stormglass/loadgen/internal/trace"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// fate is what becomes of the requests of a shape.
type fate uint8

const (
	asTraced    fate = iota
	asConfigMap      // a write that goes to a ConfigMap instead
	leftOut
)

// Reasons for leaving requests out.
const (
	reasonLacking     = "resources that the API server lacks"
	reasonStream      = "streams of pods"
	reasonBinding     = "bindings of pods"
	reasonCollection  = "deletions of collections that the replay does not make"
	reasonSubresource = "subresources of objects that the replay does not make"
)

// facts are what the API server says of a resource.
type facts struct {
	lacking, namespaced bool
	// refuses: it does not take the objects that are made of the resource.
	refuses bool
}

// fateOf decides what becomes of a shape's requests, with the reason for leaving them out.
//
// Nothing cluster-scoped is written: the run could not tell what it made from what was there. Such a write goes to a
// ConfigMap of its name, which costs the API server and etcd about the same.
func fateOf(s trace.Shape, f facts) (fate, string) {
	switch {
	case slices.Contains([]string{"exec", "attach", "portforward", "log", "proxy"}, s.Subresource):
		return leftOut, reasonStream
	case s.Subresource == "binding" || s.Resource == "bindings":
		return leftOut, reasonBinding
	case f.lacking:
		return leftOut, reasonLacking
	case !s.Writes(), scenario.IsReview(s.GroupResource()):
		return asTraced, ""
	case s.Verb == "deletecollection" && (!f.namespaced || f.refuses):
		return leftOut, reasonCollection
	case (!f.namespaced || f.refuses) && s.Verb == "create" && s.Subresource != "":
		return leftOut, reasonSubresource
	case !f.namespaced, f.refuses:
		return asConfigMap, ""
	}
	return asTraced, ""
}
