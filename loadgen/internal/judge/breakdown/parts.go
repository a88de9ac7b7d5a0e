package breakdown

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/result"
)

// serverParts adds to the row b of the breakdown the parts of the time at the API server. `all` is the total of the
// server's histogram for the verb and resource of c. perRequest is the number of requests at the server per request
// that the client sent.
func (w window) serverParts(b *row, c call, all total, perRequest float64) {
	if w.recorded(famFilter) {
		b.part(result.PartFilters, w.filters()*perRequest, ofServer, famFilter+" but priorityandfairness", "")
	} else {
		b.warn("the unexplained time includes the filters, because %s was not recorded", famFilter)
	}
	w.queues(b, c, all, perRequest)
	w.etcd(b, c, perRequest)
	w.cache(b, c, perRequest)
}

// filters returns the mean time that a request spends in the filters before its
// handler. It excludes the filter of priority and fairness, which is a separate part.
func (w window) filters() float64 {
	byName := w.by(famFilter, "filter", func(map[string]string) bool { return true })
	delete(byName, "priorityandfairness")
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		sum += byName[name].mean()
	}
	return sum
}

func (w window) ofOperation(operation string) float64 {
	verbs := verbsOf(operation)
	return w.total(famRequest, func(l map[string]string) bool { return slices.Contains(verbs, l["verb"]) }).count
}

// etcd adds to the row b of the breakdown the time of calls to etcd for the verb and the resource of c. For each etcd
// operation, it multiplies the calls per request by the mean time of the operation, and adds up the products.
func (w window) etcd(b *row, c call, perRequest float64) {
	if !w.recorded(famEtcd) {
		b.warn("the unexplained time includes etcd, because %s was not recorded", famEtcd)
		return
	}
	byOperation := w.by(famEtcd, "operation", c.sameResource)
	seconds := 0.0
	var used, with []string
	for _, operation := range slices.Sorted(maps.Keys(byOperation)) {
		t := byOperation[operation]
		given := w.shares(c, operation, t.count)
		mine, any := given[c.verb]
		if !any {
			continue
		}
		seconds += mine * t.mean()
		used = append(used, fmt.Sprintf("%.2f %s calls per request", mine, operation))
		for v := range given {
			if v != c.verb && !slices.Contains(with, v) {
				with = append(with, v)
			}
		}
	}
	slices.Sort(with)
	note := cmp.Or(strings.Join(used, ", "), "no calls: these requests are served from the watch cache")
	if len(with) > 0 {
		note += "; requests with other verbs (" + strings.Join(with, ", ") + ") make the same calls; docs/reference/breakdown.md describes how the calls are divided"
	}
	b.part(result.PartEtcd, seconds*perRequest, ofResource, famEtcd, note)
}

// calls returns the number of requests of a verb for the resource of c. It includes requests for subresources, because
// they read and write the same object in etcd.
func (w window) calls(c call, verb string) float64 {
	return w.total(famRequest, func(l map[string]string) bool {
		return verbOf(l) == verb && c.sameResource(l)
	}).count
}

func (w window) etcdCalls(c call, operation string) float64 {
	return w.total(famEtcd, func(l map[string]string) bool { return c.sameResource(l) && l["operation"] == operation }).count
}

// shares distributes n etcd calls of an operation for the resource of c among the
// verbs that can make them. It returns the calls per request of each verb.
func (w window) shares(c call, operation string, n float64) map[string]float64 {
	requests := func(verb string) float64 { return w.calls(c, verb) }
	perCollection := 0.0
	if requests(deleteCollection) > 0 {
		perCollection = shares("delete", w.etcdCalls(c, "delete"), 0, requests)[deleteCollection]
	}
	return shares(operation, n, perCollection, requests)
}

// cache adds to the row b of the breakdown the time that a read waits until the watch cache is fresh enough. The metric
// does not name the verb, so cache attributes the waits for a resource in this order: first at most one to each list
// (deletions of collections also list), then at most one to each GET that did not read from etcd. The other waits
// belong to watches that begin with the current state.
func (w window) cache(b *row, c call, perRequest float64) {
	if c.verb != "LIST" && c.verb != deleteCollection && c.verb != "GET" {
		return
	}
	t := w.total(famReadWait, c.sameResource)
	requests := w.calls(c, "LIST") + w.calls(c, deleteCollection)
	waits := min(t.count, requests)
	if c.verb == "GET" {
		given := w.shares(c, "get", w.etcdCalls(c, "get"))
		requests = w.calls(c, "GET")
		waits = min(t.count-waits, requests*(1-given["GET"]))
	}
	if waits <= 0 {
		return
	}
	each := waits / requests
	note := fmt.Sprintf("%.2f waits per request", each)
	if waits < t.count {
		note += fmt.Sprintf("; some of the %.0f waits for this resource belong to other reads, for example watches that begin with the current state", t.count)
	}
	b.part(result.PartCache, each*t.mean()*perRequest, ofResource, famReadWait, note)
}

// call is a verb and a resource, in the API server's names.
type call struct {
	verb                         string // value of the label verb: GET, LIST, POST, PUT, PATCH, APPLY, DELETE; or deleteCollection
	group, resource, subresource string
	operation                    string // the operation in admission: CREATE, UPDATE, DELETE; empty for reads
	audit                        string // the verb in audit events
}

// callOf returns the verb and resource of a request in the API server's names, or false if the server's metrics do not
// distinguish such requests. The verbs in metrics follow endpoints/metrics (CleanVerb, CanonicalVerb), which
// distinguishes an apply from a patch by the content type. The verbs in audit events follow endpoints/request
// (RequestInfo), which does not distinguish an apply from a patch.
func callOf(r result.Requests) (call, bool) {
	if strings.HasPrefix(r.Resource, "/") { // a path such as /openapi/v3: metrics do not distinguish them
		return call{}, false
	}
	c, known := map[string]call{
		"get": {verb: "GET"}, "list": {verb: "LIST"},
		"create": {verb: "POST", operation: "CREATE"}, "delete": {verb: "DELETE", operation: "DELETE"},
		"update": {verb: "PUT", operation: "UPDATE"}, "patch": {verb: "PATCH", operation: "UPDATE"},
		"apply": {verb: "APPLY", operation: "UPDATE", audit: "patch"}, "deletecollection": {verb: deleteCollection, operation: "DELETE"},
	}[r.Verb]
	c.audit = cmp.Or(c.audit, r.Verb)
	name, sub, _ := strings.Cut(r.Resource, "/")
	c.resource, c.group, _ = strings.Cut(name, ".")
	c.subresource = sub
	return c, known
}

// is reports whether a series of a request histogram belongs to this call.
func (c call) is(l map[string]string) bool {
	return verbOf(l) == c.verb && l["group"] == c.group && l["resource"] == c.resource && l["subresource"] == c.subresource
}

// deleteCollection is the verb that this package uses for the deletion of a collection.
// Upstream's metrics use the verb DELETE with a scope other than "resource".
const deleteCollection = "DELETECOLLECTION"

// verbOf returns the verb of a series of a request histogram, or deleteCollection.
func verbOf(l map[string]string) string {
	if l["verb"] == "DELETE" && l["scope"] != "resource" {
		return deleteCollection
	}
	return l["verb"]
}

// sameResource reports whether a series belongs to the call's resource or a subresource of it.
func (c call) sameResource(l map[string]string) bool {
	return l["group"] == c.group && l["resource"] == c.resource
}

func verbsOf(operation string) []string {
	return map[string][]string{"CREATE": {"POST"}, "UPDATE": {"PUT", "PATCH", "APPLY"}, "DELETE": {"DELETE"}}[operation]
}

// user is a set of verbs whose requests make etcd calls of the same operation. `most` is the maximum number of such
// calls per request; zero means unlimited.
type user struct {
	verbs []string
	most  float64
}

// usersOf returns the verbs whose requests make calls of an operation of etcd_request_duration_seconds, in the order in
// which calls are attributed to them. The histogram does not name the verb, so the order follows upstream's code
// (registry/generic/registry/store.go, storage/etcd3/store.go). A DELETE reads the object once. A GET reads it once,
// unless it names a resourceVersion. An update reads only for a retry. An apply or an update may create the object. A
// graceful delete is an update. The deletion of a collection is a list, then a read and a delete of each object.
// perCollection is the number of objects that each deletion of a collection deletes, or 0 if it deletes none
// immediately. usersOf omits operations that only count objects.
func usersOf(operation string, perCollection float64) []user {
	updates, lists := user{verbs: []string{"PUT", "PATCH", "APPLY"}}, user{verbs: []string{"LIST", deleteCollection}}
	by := func(verb string, most float64) user { return user{[]string{verb}, most} }
	return map[string][]user{
		"get":                       {by("DELETE", 1), by("GET", 1), by(deleteCollection, perCollection), updates},
		"create":                    {by("POST", 1), updates},
		"update":                    {updates, by("DELETE", 1), by(deleteCollection, 0), by("POST", 0)},
		"delete":                    {by("DELETE", 1), by(deleteCollection, 0), by("DELETE", 0), updates},
		"list":                      {lists, by("GET", 0)},
		"listStream":                {lists},
		"getCurrentResourceVersion": {lists},
	}[operation]
}

// shares distributes n etcd calls of an operation among the verbs that can make them. It returns the calls per request
// of each verb. requests returns the number of requests of a verb for the resource. For perCollection see usersOf.
// Verbs in the same user get the same number of calls per request.
func shares(operation string, n, perCollection float64, requests func(verb string) float64) map[string]float64 {
	given := map[string]float64{}
	for _, u := range usersOf(operation, perCollection) {
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
				given[v] += take / k
			}
		}
		n -= take
	}
	return given
}
