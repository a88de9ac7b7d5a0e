package replay

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"
	"github.com/stormglass/stormglass/loadgen/internal/load/object"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

// action describes how the replay sends the requests of one shape of the recording, or why it does not send them.
type action struct {
	shape recording.Shape
	fate  fate
	why   string // reason for not sending the requests; "" if they are sent
	kind  int    // index in plan.kinds
	// touches means that the requests use objects that the replay creates. It is false for requests that the replay
	// does not send, and for reads for which it creates no objects.
	touches bool

	resource  *object.Resource // resource to which the requests are sent; ConfigMaps for asConfigMap
	template  *object.Template // renders the bodies of writes
	versioned bool             // whether updates must contain a resourceVersion
	class     int              // index in plan.classes
	names     []string         // names of existing objects, for reads of cluster-scoped objects
	query     string           // the part of the query that all requests share
	most      int              // largest size of the bodies, in bytes, not counting metadata
	chain     int32            // result of chains: shapes with the same number may be pages of the same list
}

// class is the method and the headers of requests, without the headers that depend on the user.
type class struct {
	method, contentType string
	gzip                bool
}

const (
	jsonType  = "application/json"
	mergeType = "application/merge-patch+json"
	applyType = "application/apply-patch+yaml"
	jsonPatch = "application/json-patch+json"
	strategic = "application/strategic-merge-patch+json"
)

func classOf(s recording.Shape, custom bool) class {
	switch s.Verb {
	case "create":
		return class{method: http.MethodPost, contentType: jsonType}
	case "update":
		return class{method: http.MethodPut, contentType: jsonType}
	case "patch":
		return class{method: http.MethodPatch, contentType: patchType(s.PatchType, custom)}
	case "delete", "deletecollection":
		return class{method: http.MethodDelete}
	}
	// Do not compress pages of lists, because the load reads their continue tokens. Do not compress watches, because
	// the load reads their events as they arrive.
	return class{method: http.MethodGet, gzip: s.Verb == "list" && s.Limit == 0 && !s.Paged}
}

// patchType returns the content type of a patch: the recorded type of patch, encoded as the replay sends it. A merge
// patch replaces an unknown type and, for custom resources, a strategic merge patch.
func patchType(recorded string, custom bool) string {
	switch {
	case strings.Contains(recorded, "apply-patch"):
		return applyType
	case strings.Contains(recorded, "json-patch"):
		return jsonPatch
	case strings.Contains(recorded, "strategic") && !custom:
		return strategic
	}
	return mergeType
}

// queryOf returns the part of the query that is the same for all requests of a shape, without names, versions and
// tokens.
func queryOf(s recording.Shape) string {
	var parts []string
	if s.Limit > 0 {
		parts = append(parts, "limit="+strconv.FormatInt(s.Limit, 10))
	}
	if s.LabelSelector != "" {
		parts = append(parts, "labelSelector="+url.QueryEscape(s.LabelSelector))
	}
	if s.DryRun {
		parts = append(parts, "dryRun=All")
	}
	if s.Verb == "patch" && patchType(s.PatchType, false) == applyType {
		parts = append(parts, "fieldManager=stormglass", "force=true")
	}
	if s.Verb == "watch" {
		parts = append(parts, "watch=true", "allowWatchBookmarks=true")
		if s.InitialEvents {
			parts = append(parts, "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan")
		}
	}
	return strings.Join(parts, "&")
}

// chains returns an index for each shape: the index of the first shape that has the same fields, ignoring Paged and
// ResourceVersion. Lists whose shapes have the same index may be pages of the same list.
func chains(shapes []recording.Shape) []int32 {
	of := map[recording.Shape]int32{}
	all := make([]int32, len(shapes))
	for i, s := range shapes {
		s.Paged, s.ResourceVersion = false, ""
		first, ok := of[s]
		if !ok {
			first, of[s] = int32(i), int32(i)
		}
		all[i] = first
	}
	return all
}

// plan is a prepared replay: an action for each shape, and the schedules of requests and watches.
type plan struct {
	recording *recording.Recording
	options   Options
	actions   []action
	kinds     []request.Kind // kinds of requests, followed by kinds of watches
	requests  int            // number of kinds of requests
	classes   []class

	namespaces []string // the run's namespaces, by copy and recorded namespace; the last is for cluster-scoped objects
	all        []Arrival
	sent       []Arrival // all requests except watches
	watches    []Arrival

	leftOut map[string]int64 // number of requests of the recording that are not sent, by reason
	mapped  map[string]int64 // number of requests that are sent to ConfigMaps instead, by resource
	cut     map[string]int64 // number of requests with bodies cut to the API server's limit, by this limit in bytes
	refused []string         // the API server's refusals of the replay's objects
}

// newPlan returns a plan with all fields that do not depend on the cluster.
func newPlan(t *recording.Recording, o Options, namespaces []string) *plan {
	p := &plan{recording: t, options: o, namespaces: namespaces, leftOut: map[string]int64{}, mapped: map[string]int64{}, cut: map[string]int64{}}
	known := map[request.Kind]int{}
	for _, watches := range []bool{false, true} {
		for _, s := range t.Shapes {
			k := request.Kind{Verb: s.Verb, Resource: s.Kind()}
			if _, ok := known[k]; !ok && (s.Verb == "watch") == watches {
				known[k] = len(p.kinds)
				p.kinds = append(p.kinds, k)
			}
		}
		if !watches {
			p.requests = len(p.kinds)
		}
	}
	of := chains(t.Shapes)
	for i, s := range t.Shapes {
		p.actions = append(p.actions, action{
			shape: s, kind: known[request.Kind{Verb: s.Verb, Resource: s.Kind()}], query: queryOf(s), chain: of[i],
		})
	}
	return p
}

// schedule computes the arrivals of all requests that are sent.
func (p *plan) schedule() {
	for _, e := range p.recording.Entries {
		act := &p.actions[e.Shape]
		if act.fate != leftOut && int(e.Size) > act.most {
			p.cut[strconv.Itoa(act.most)]++
		}
		switch act.fate {
		case leftOut:
			p.leftOut[act.why]++
		case asConfigMap:
			p.mapped[act.shape.Kind()]++
		}
	}
	p.all = Schedule(p.recording, p.options, func(i int) bool { return p.actions[p.recording.Entries[i].Shape].fate != leftOut })
	for _, a := range p.all {
		if p.recording.Shapes[p.recording.Entries[a.Entry].Shape].Verb == "watch" {
			p.watches = append(p.watches, a)
		} else {
			p.sent = append(p.sent, a)
		}
	}
}

// beforehand returns the objects that must exist before the replay. first maps each of these objects to the first entry
// of the recording that uses it.
func (p *plan) beforehand() (made []Made, first map[int32]int32) {
	touches := func(entry int32) bool { return p.actions[p.recording.Entries[entry].Shape].touches }
	first = map[int32]int32{}
	for i, e := range p.recording.Entries {
		if _, ok := first[e.Object]; !ok && e.Object != recording.None && touches(int32(i)) {
			first[e.Object] = int32(i)
		}
	}
	return Beforehand(p.recording, p.all, p.options.Copies, touches), first
}

// Namespaces returns the number of namespaces that a replay uses: one for each copy of each recorded namespace, and one
// for cluster-scoped objects.
func Namespaces(t *recording.Recording, copies int) int { return len(t.Namespaces)*copies + 1 }

// namespace returns the run's namespace that replaces a namespace of the recording, for the given copy. For recording.None it
// returns "".
func (p *plan) namespace(of int32, copy int16) string {
	if of == recording.None {
		return ""
	}
	return p.namespaces[int(copy)*len(p.recording.Namespaces)+int(of)]
}

// name returns the name of an entry's object. An entry without a known object gets a new name from n, the number of the
// arrival.
func (p *plan) name(a Arrival, e *recording.Entry, act *action, n int64) object.Name {
	name := object.Name{Namespace: p.namespace(e.Namespace, a.Copy), Stem: "o", Number: int64(e.Object)}
	if e.Object == recording.None {
		name.Stem, name.Number = "n", n
	}
	if act.fate == asConfigMap && name.Namespace == "" {
		name.Namespace = p.namespaces[len(p.namespaces)-1]
		name.Stem = fmt.Sprintf("c%d-%s", a.Copy, name.Stem)
	}
	return name
}

// absentName is the name that a replay requests if the answer must be 404, or if the cluster has no object of the
// resource.
const absentName = "stormglass-none"

// appendPath appends the path of arrival n, with the query but without versions and tokens. `queried` is true if there
// is a query.
func (p *plan) appendPath(b []byte, a Arrival, n int64) (path []byte, queried bool) {
	e := &p.recording.Entries[a.Entry]
	act := &p.actions[e.Shape]
	s := &act.shape
	b = act.resource.AppendCollection(b, p.name(a, e, act, n).Namespace)
	named := e.Object != recording.None && s.Verb != "create" || s.Verb == "create" && s.Subresource != ""
	collective := s.Collective()
	if named && !collective {
		b = p.appendName(append(b, '/'), a, e, act, n)
		if s.Subresource != "" && act.fate == asRecorded {
			b = append(append(b, '/'), s.Subresource...)
		}
	}
	if act.query != "" {
		b, queried = append(append(b, '?'), act.query...), true
	}
	if selector := s.FieldSelector; collective && (selector != "" || e.Object != recording.None) {
		b = appendParameter(b, &queried, "fieldSelector=")
		if e.Object != recording.None {
			b = p.appendName(append(b, "metadata.name%3D"...), a, e, act, n)
			if selector != "" {
				b = append(b, "%2C"...)
			}
		}
		b = append(b, url.QueryEscape(selector)...)
	}
	return b, queried
}

// appendName appends the name of an entry's object. Reads of cluster-scoped resources use the names of existing
// objects.
func (p *plan) appendName(b []byte, a Arrival, e *recording.Entry, act *action, n int64) []byte {
	if act.fate == asRecorded && !act.resource.Namespaced() {
		if e.Code == http.StatusNotFound || len(act.names) == 0 {
			return append(b, absentName...)
		}
		return append(b, act.names[int(e.Object)%len(act.names)]...)
	}
	name := p.name(a, e, act, n)
	return strconv.AppendInt(append(b, name.Stem...), name.Number, 10)
}

// appendParameter appends a query parameter after "?" or "&", and sets *queried.
func appendParameter(b []byte, queried *bool, parameter string) []byte {
	sign := byte('&')
	if !*queried {
		sign, *queried = '?', true
	}
	return append(append(b, sign), parameter...)
}

// appendBody appends the body of a write, which may be empty. version is the resourceVersion that an update must
// contain, or 0.
func (p *plan) appendBody(b []byte, a Arrival, n int64, version uint64) []byte {
	e := &p.recording.Entries[a.Entry]
	act := &p.actions[e.Shape]
	if act.template == nil && !act.shape.Writes() || act.shape.Verb == "delete" || act.shape.Verb == "deletecollection" {
		return b
	}
	name := p.name(a, e, act, n)
	if act.fate == asRecorded {
		if fixed := fixedBody(act.shape, act.resource.APIVersion(), name.Namespace, name.Stem+strconv.FormatInt(name.Number, 10)); fixed != "" {
			return append(b, fixed...)
		}
	}
	size := cmp.Or(int(e.Size), defaultSize)
	refused := e.Code == http.StatusConflict // in the recording the version was too old, so send an old version here too
	switch class := &p.classes[act.class]; {
	case act.shape.Verb == "create":
		return act.template.Append(b, name, size, n+1, 0)
	case act.shape.Verb == "update" && refused:
		return act.template.Append(b, name, size, n+1, 1)
	case act.shape.Verb == "update":
		return act.template.Append(b, name, size, n+1, version)
	case class.contentType == applyType:
		return act.template.Append(b, name, size, n+1, 0)
	case refused && class.contentType != jsonPatch:
		return append(b, `{"metadata":{"resourceVersion":"1"}}`...)
	case class.contentType == jsonPatch:
		return act.template.AppendJSONPatch(b, size, n+1)
	}
	return act.template.AppendMergePatch(b, size, n+1)
}

// defaultSize is the payload size, in bytes, for bodies whose size is not in the recording.
const defaultSize = 1 << 10

// watchTimeout returns the timeoutSeconds for a watch that the load keeps open for the given number of seconds. The
// timeout is longer, so that the server does not end the watch first.
func watchTimeout(seconds float64) int64 {
	return int64(max(seconds, listwatch.ShortestWatch.Seconds())) + 60
}
