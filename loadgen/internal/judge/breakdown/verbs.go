package breakdown

import (
	"strings"

	"github.com/stormglass/stormglass/loadgen/result"
)

// call is a client's verb and resource in the API server's terms.
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

// is reports whether a series of a request histogram is of this call.
func (c call) is(l map[string]string) bool {
	return l["verb"] == c.verb && l["group"] == c.group && l["resource"] == c.resource && l["subresource"] == c.subresource &&
		// DELETE of a collection has the same verb and another scope.
		(c.verb != "DELETE" || l["scope"] == "resource")
}

// sameResource reports whether a series is of the call's resource, of whatever
// subresource.
func (c call) sameResource(l map[string]string) bool {
	return l["group"] == c.group && l["resource"] == c.resource
}

func verbsOf(operation string) []string {
	return map[string][]string{"CREATE": {"POST"}, "UPDATE": {"PUT", "PATCH", "APPLY"}, "DELETE": {"DELETE"}}[operation]
}

// user is verbs that call an operation on etcd, and how often a request of one
// does at most; zero: as often as it takes.
type user struct {
	verbs []string
	most  float64
}

// usersOf lists the verbs that make an operation of etcd_request_duration_seconds, in the
// order in which its calls are attributed to them. The histogram does not have the
// request; this follows upstream's code (registry/generic/registry/store.go,
// storage/etcd3/store.go): a DELETE reads the object once, and so does a GET unless it
// names a resourceVersion; an update reads only to try again; an apply or update may
// create. A graceful delete is an update. Operations that only count objects are left out.
func usersOf(operation string) []user {
	updates := []string{"PUT", "PATCH", "APPLY"}
	switch operation {
	case "get":
		return []user{{[]string{"DELETE"}, 1}, {[]string{"GET"}, 1}, {updates, 0}}
	case "create":
		return []user{{[]string{"POST"}, 1}, {updates, 0}}
	case "update":
		return []user{{updates, 0}, {[]string{"DELETE"}, 0}, {[]string{"POST"}, 0}}
	case "delete":
		return []user{{[]string{"DELETE"}, 0}, {updates, 0}}
	case "list":
		return []user{{[]string{"LIST"}, 0}, {[]string{"GET"}, 0}}
	case "listStream", "getCurrentResourceVersion":
		return []user{{[]string{"LIST"}, 0}}
	}
	return nil
}

// shares hands n calls of an operation on etcd to the verbs that make it: how
// many each request of a verb made. requests counts those of a verb for the
// resource. Verbs that stand together share evenly.
func shares(operation string, n float64, requests func(verb string) float64) map[string]float64 {
	given := map[string]float64{}
	for _, u := range usersOf(operation) {
		k := 0.0
		for _, v := range u.verbs {
			k += requests(v)
		}
		if k == 0 || n <= 0 {
			continue
		}
		take := n
		if u.most > 0 {
			take = min(n, u.most*k)
		}
		for _, v := range u.verbs {
			if requests(v) > 0 {
				given[v] = take / k
			}
		}
		n -= take
	}
	return given
}
