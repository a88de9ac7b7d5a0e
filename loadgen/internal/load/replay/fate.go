package replay

import (
	"slices"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/load/object"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

// fate says whether and how the replay sends the requests of one shape (the same verb, resource and options).
type fate uint8

const (
	asRecorded  fate = iota
	asConfigMap      // writes that the replay sends to a ConfigMap instead
	leftOut
)

// Reasons why the replay does not send some requests of the recording.
const (
	reasonLacking     = "resources that the API server lacks"
	reasonStream      = "streams of pods"
	reasonBinding     = "bindings of pods"
	reasonCollection  = "deletions of collections that the replay does not create"
	reasonSubresource = "subresources of objects that the replay does not create"
)

// facts are properties of a resource on the API server. `lacking` means that the server does not serve the resource.
type facts struct {
	lacking, namespaced bool
	// refuses means that the API server refuses the objects that the replay would create for this resource.
	refuses bool
}

func (act *action) decide(f facts) {
	act.fate, act.why = fateOf(act.shape, f)
	act.most = object.MaxPayload(act.target())
	act.touches = act.fate != leftOut && (act.shape.Writes() || f.namespaced && !f.refuses)
}

// fateOf returns how the replay sends the requests of a shape. If it does not send them, fateOf returns the reason too.
//
// The replay writes no cluster-scoped objects, because it could not distinguish its own objects from existing ones. It
// sends such a write to a ConfigMap of the same name instead. This costs the API server and etcd about the same.
func fateOf(s recording.Shape, f facts) (fate, string) {
	switch {
	case slices.Contains([]string{"exec", "attach", "portforward", "log", "proxy"}, s.Subresource):
		return leftOut, reasonStream
	case s.Subresource == "binding" || s.Resource == "bindings":
		return leftOut, reasonBinding
	case f.lacking:
		return leftOut, reasonLacking
	case !s.Writes(), builtin.IsReview(s.GroupResource()):
		return asRecorded, ""
	case s.Verb == "deletecollection" && (!f.namespaced || f.refuses):
		return leftOut, reasonCollection
	case (!f.namespaced || f.refuses) && s.Verb == "create" && s.Subresource != "":
		return leftOut, reasonSubresource
	case !f.namespaced, f.refuses:
		return asConfigMap, ""
	}
	return asRecorded, ""
}
