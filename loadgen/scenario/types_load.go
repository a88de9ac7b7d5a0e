package scenario

import (
	"fmt"
	"slices"
)

// Load is a stream of requests or other work that runs during one phase or in every phase.
type Load struct {
	Name string `yaml:"name,omitempty"` // name of the load, unique in the run; default: the kind
	Kind string `yaml:"kind"`           // kind of load (docs/reference/scenarios.md#loads)

	// Rate: rate at which the load sends requests or opens watches; default for a history: 20/s
	Rate Rate `yaml:"rate,omitempty"`
	// Arrival: times between requests: "constant" (default) or "poisson" (random, like many independent clients)
	Arrival     string `yaml:"arrival,omitempty"`
	Shape       Shape  `yaml:"shape,omitempty"`       // how the rate changes during the load
	MinAchieved *Bound `yaml:"minAchieved,omitempty"` // minimum share of the load's work; overrides the scenario's minAchieved
	// MaxInFlight: maximum number of requests in flight, default 1000; further requests are not sent
	MaxInFlight int      `yaml:"maxInFlight,omitempty" zero:"1000"`
	Timeout     Duration `yaml:"timeout,omitempty" zero:"60s"` // timeout of each request, default 60s
	// Connections: number of HTTP/2 connections, used in turn, default 4; the load opens more when all are full
	Connections int `yaml:"connections,omitempty" zero:"4"`

	// Operation is the request that the load sends, unless Mix is set. For watches, it names the watched objects.
	Operation `yaml:",inline"`
	// Mix: operations, chosen at random by weight; replaces `verb` and the other fields of an operation
	Mix []Operation `yaml:"mix,omitempty"`

	// Objects: number of objects of each resource, created before the load starts; default 100 for requests, 5 for a
	// history, else 1
	Objects int `yaml:"objects,omitempty" zero:"100 for requests, 5 for a history, else 1"`
	// Namespaces: number of namespaces for the objects, default 1 (the run's namespace)
	Namespaces int `yaml:"namespaces,omitempty" zero:"1"`
	// Spread: distribution of objects over namespaces: "even" (default) or "zipf" (the k-th namespace gets objects in
	// proportion to 1/k)
	Spread string      `yaml:"spread,omitempty"`
	Size   Bytes       `yaml:"size,omitempty" zero:"1KiB"` // size of the payload of each object, default 1KiB
	Sizes  []SizeShare `yaml:"sizes,omitempty"`            // payload sizes, chosen at random by weight; replaces `size`
	// Object: manifest of the objects to write. The load sets name, namespace and labels, and puts the payload into an
	// annotation. Only configmaps, secrets, services, serviceaccounts, leases.coordination.k8s.io, pods and
	// widgets.load.stormglass.dev (a custom resource of the run) have a default
	Object any `yaml:"object,omitempty"`
	// Tenants: users to impersonate, chosen at random for each request; default: the load's own identity
	Tenants []Tenant `yaml:"tenants,omitempty"`

	Count int  `yaml:"count,omitempty"` // number of watches, opened at `rate`
	Hold  bool `yaml:"hold,omitempty"`  // keep the watches open until the end of the run
	// Connect: how watches use connections: "shared" (fills each connection up to the server's limit of streams;
	// default) or "each" (one connection per watch)
	Connect string `yaml:"connect,omitempty"`
	// Start: how watches start: "list" (one list for all watches; default) or "watchList" (each watch asks for the
	// initial events, as informers do)
	Start string      `yaml:"start,omitempty"`
	Slow  SlowWatches `yaml:"slow,omitempty"` // makes some watches read slowly

	// Watches: for a load of changes, the name of the load of watches whose objects to write
	Watches string `yaml:"watches,omitempty"`

	// Clients: number of clients of a history, each with at most one operation in flight; default 5
	Clients int `yaml:"clients,omitempty" zero:"5"`
	// Watchers: number of watches of a history, each on all its objects; default 3
	Watchers int `yaml:"watchers,omitempty" zero:"3"`

	Templates []Template `yaml:"templates,omitempty"` // templates of a load of objects
	// Iterations: how often all templates are rendered; {{.Iteration}} counts from 0; default: one for each namespace
	Iterations int `yaml:"iterations,omitempty" zero:"one for each namespace"`
	// FromIteration: first iteration to create; earlier iterations are skipped, not renumbered
	FromIteration int `yaml:"fromIteration,omitempty"`
	ToIteration   int `yaml:"toIteration,omitempty" zero:"all"` // create only the iterations before this one; default all
	// NamespaceGroup: namespace group in which to create the objects
	NamespaceGroup string `yaml:"namespaceGroup,omitempty"`
	// IterationsPerNamespace: number of iterations in each namespace; the last namespace may get fewer; sets
	// `namespaces`
	IterationsPerNamespace int            `yaml:"iterationsPerNamespace,omitempty" zero:"spread evenly; leave it out to use the default"`
	Vars                   map[string]any `yaml:"vars,omitempty"` // variables of the templates, as {{.NAME}}
	// Placement: "nodes" adds a node selector and tolerations for the simulated nodes to pods and pod templates (the
	// default with simulated nodes); "none" adds nothing
	Placement string `yaml:"placement,omitempty"`

	// Stream: kind of stream to open to the run's pods: "logs" (default), "exec" (a command that echoes its input),
	// "attach" or "portForward" (to a port that echoes its input)
	Stream string `yaml:"stream,omitempty"`
	// Follow: how long to read logs and attached output; default: logs only up to their current end
	Follow Duration `yaml:"follow,omitempty"`

	Replayed `yaml:",inline"`
}

// Operation is one kind of request.
type Operation struct {
	// Verb: "get", "list", "create", "update", "patch", "delete", "deletecollection" (of the load's objects in a
	// namespace) or "apply"
	Verb   string  `yaml:"verb,omitempty"`
	Weight float64 `yaml:"weight,omitempty" zero:"1"` // weight of the operation in the random choice, default 1
	// Resource: plural name and group of the resource, such as "deployments.apps"; default configmaps. A get can also
	// read a path: /apis (aggregated discovery), /openapi/v2, /openapi/v3 or a path below them
	Resource string `yaml:"resource,omitempty"`
	// ResourceVersion: which state a read returns: "" (the newest state), "0" (any cached state) or, for a list,
	// "exact" (the version of the load's first list)
	ResourceVersion string `yaml:"resourceVersion,omitempty"`
	// Limit: maximum number of objects in a page of a list or in a deletecollection, default unlimited
	Limit    int  `yaml:"limit,omitempty"`
	AllPages bool `yaml:"allPages,omitempty"` // read all pages and count them as one request
	// LabelSelector: label selector; for a list or watch, it replaces the selector for the load's own objects; for a
	// deletecollection, it applies in addition to that selector
	LabelSelector string `yaml:"labelSelector,omitempty"`
	// FieldSelector: field selector of a list, watch or deletecollection, such as "metadata.name=x"
	FieldSelector string `yaml:"fieldSelector,omitempty"`
	// Form: how responses represent objects: "object" (default), "metadata" (PartialObjectMetadata) or "table" (as for
	// kubectl get)
	Form string `yaml:"form,omitempty"`
	// Encoding: encoding of responses: "json" (default), "protobuf" (built-in resources) or "cbor" (with the feature gate
	// CBORServingAndStorage)
	Encoding string `yaml:"encoding,omitempty"`
	Scope    string `yaml:"scope,omitempty"` // scope of a list or watch: "namespace" (default) or "cluster"
	// Subresource: subresource, such as "status" or "scale"; a create, such as "eviction" of pods or "token" of
	// serviceaccounts, needs a `body`
	Subresource string `yaml:"subresource,omitempty"`
	PatchType   string `yaml:"patchType,omitempty"` // "merge" (default), "json" or "strategic"
	// Body: body of a patch (default: the payload) or of a subresource to create. Its strings are templates; {{.Turn}}
	// is a number that changes with each request
	Body any `yaml:"body,omitempty"`
}

// FullResource returns the resource with its subresource, such as "pods/status".
func (o Operation) FullResource() string {
	if o.Subresource == "" {
		return o.Resource
	}
	return o.Resource + "/" + o.Subresource
}

// Shape describes how a load's rate changes.
type Shape struct {
	// Kind: "ramp" (the rate changes to `to` within `over`), "step" (the rate changes to `to` in `steps` steps, each
	// `every` long), "burst" (`burst` extra requests at intervals of `every`), "sine" (the rate varies by `amplitude`
	// with the period `every`) or "replay" (requests at the times in `file`)
	Kind      string   `yaml:"kind,omitempty"`
	To        *Rate    `yaml:"to,omitempty"`        // final rate of a ramp or step
	Over      Duration `yaml:"over,omitempty"`      // length of a ramp
	Steps     int      `yaml:"steps,omitempty"`     // number of steps of the kind "step"
	Every     Duration `yaml:"every,omitempty"`     // length of a step or of a sine's period, or time between bursts
	Burst     int      `yaml:"burst,omitempty"`     // extra requests in each burst
	Amplitude float64  `yaml:"amplitude,omitempty"` // amplitude of a sine, as a fraction of the rate: over 0, at most 1
	// File: file with the requests' times in seconds since the start, one per line, ascending; relative to the scenario
	// file
	File  string  `yaml:"file,omitempty"`
	Speed float64 `yaml:"speed,omitempty" zero:"1"` // speed of a replay, default 1; 2 halves all times

	// Times are the arrival times of a replay in seconds, as read from File.
	Times []float64 `yaml:"-"`
}

// SizeShare is one size of a distribution of object sizes.
type SizeShare struct {
	Size   Bytes   `yaml:"size"`                      // size of an object, such as 1KiB
	Weight float64 `yaml:"weight,omitempty" zero:"1"` // weight of the size in the random choice, default 1
}

// Tenant is a user that a load impersonates.
type Tenant struct {
	Name   string   `yaml:"name"`                     // name of the tenant; its user is stormglass:tenant:NAME
	Groups []string `yaml:"groups,omitempty"`         // groups of the user, in addition to stormglass:tenants
	Share  float64  `yaml:"share,omitempty" zero:"1"` // weight in the random choice between tenants, default 1
}

// SlowWatches describes watches that read slowly: first `window` bytes at once, then only `bytesPerSecond`.
type SlowWatches struct {
	Fraction float64 `yaml:"fraction,omitempty"` // fraction of the load's watches, 0 to 1
	// BytesPerSecond: bytes per second that each watch reads after its window; 0: the watch stops reading
	BytesPerSecond Bytes `yaml:"bytesPerSecond,omitempty"`
	// Window: bytes that the server may send before the watch reads them (the stream window), default 64KiB
	Window Bytes `yaml:"window,omitempty" zero:"64KiB"`
}

// TenantsGroup is a group that contains all tenants.
const TenantsGroup = "stormglass:tenants"

// TenantUser returns the user name for requests of a tenant.
func TenantUser(name string) string { return "stormglass:tenant:" + name }

// NamespacesIn returns the namespaces of the load's objects: first the run's namespace, which has the largest share of
// the objects, then the load's additional namespaces. For a load with templates it returns only the run's namespace; see
// Scenario.BatchNamespaces.
func (l *Load) NamespacesIn(run string) []string {
	all := []string{run}
	if l.Batch().Has() {
		return all
	}
	for i := 1; i < max(l.Namespaces, l.recordingNamespaces()+1); i++ {
		all = append(all, fmt.Sprintf("%s-%s-%d", run, l.Name, i))
	}
	return all
}

// OwnObjects reports whether the load creates the objects that operation o reads or writes, instead of using existing
// objects. It returns true for all writes except a create without a subresource, which measures the creation itself.
// For a read, it returns true if the read has neither a selector nor scope "cluster", and if the load has an Object or
// its resource (not pods) has a built-in manifest.
func (l *Load) OwnObjects(o Operation) bool {
	switch o.Verb {
	case "create":
		return o.Subresource != "" // otherwise the load measures the creation itself
	case "update", "patch", "delete", "deletecollection", "apply":
		return true
	}
	if o.Scope == "cluster" || o.LabelSelector != "" || o.FieldSelector != "" {
		return false
	}
	return l.Object != nil || slices.Contains(Manifests, o.Resource) && o.Resource != "pods"
}
