package breakdown

import (
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/result"
)

// call is what a client's verb and resource are to the API server.
type call struct {
	verb                         string // label verb: GET, LIST, POST, PUT, PATCH, APPLY, DELETE
	group, resource, subresource string
	operation                    string // of admission: CREATE, UPDATE, DELETE; empty for reads
	audit                        string // the verb of audit events
}

// callOf knows the API server's names: endpoints/metrics (CleanVerb,
// CanonicalVerb) for metrics, where an apply is told from a patch by its
// content type; endpoints/request (RequestInfo) for audit, where it is not.
func callOf(r result.Requests) (call, bool) {
	c, known := map[string]call{
		"get": {verb: "GET"}, "list": {verb: "LIST"},
		"create": {verb: "POST", operation: "CREATE"}, "delete": {verb: "DELETE", operation: "DELETE"},
		"update": {verb: "PUT", operation: "UPDATE"}, "patch": {verb: "PATCH", operation: "UPDATE"},
		"apply": {verb: "APPLY", operation: "UPDATE", audit: "patch"},
	}[r.Verb]
	if c.audit == "" {
		c.audit = r.Verb
	}
	name, sub, _ := strings.Cut(r.Resource, "/")
	c.resource, c.group, _ = strings.Cut(name, ".")
	c.subresource = sub
	return c, known
}

// is tells whether a series of a request histogram is of this call.
func (c call) is(l map[string]string) bool {
	return l["verb"] == c.verb && l["group"] == c.group && l["resource"] == c.resource && l["subresource"] == c.subresource &&
		// DELETE of a collection has the same verb and another scope.
		(c.verb != "DELETE" || l["scope"] == "resource")
}

// sameResource tells whether a series is of the call's resource, of whatever
// subresource.
func (c call) sameResource(l map[string]string) bool {
	return l["group"] == c.group && l["resource"] == c.resource
}

// verbsOf an admission operation.
func verbsOf(operation string) []string {
	return map[string][]string{"CREATE": {"POST"}, "UPDATE": {"PUT", "PATCH", "APPLY"}, "DELETE": {"DELETE"}}[operation]
}

// etcdVerbs says which verbs an operation of etcd_request_duration_seconds is
// for: those that use it in the first place, then those that do where none of
// the first was called. What is not here (listWithCount, listOnlyKeys, which
// count objects) is for no request.
func etcdVerbs(operation string) [][]string {
	writes := []string{"POST", "PUT", "PATCH", "APPLY", "DELETE"}
	switch operation {
	case "get":
		return [][]string{{"GET"}, writes}
	case "create":
		return [][]string{{"POST"}, {"APPLY"}, writes}
	case "update":
		return [][]string{{"PUT", "PATCH", "APPLY"}, {"DELETE"}, writes}
	case "delete":
		return [][]string{{"DELETE"}, writes}
	case "list":
		return [][]string{{"LIST"}, {"GET"}}
	case "listStream", "getCurrentResourceVersion":
		return [][]string{{"LIST"}}
	}
	return nil
}

// owners are the verbs with requests in the window that an operation on etcd
// is for; nil: none. calls counts all requests of a verb for the resource.
func owners(operation string, calls func(verb string) float64) []string {
	for _, verbs := range etcdVerbs(operation) {
		some := slices.DeleteFunc(slices.Clone(verbs), func(v string) bool { return calls(v) == 0 })
		if len(some) > 0 {
			return some
		}
	}
	return nil
}
