package scenario

import (
	"fmt"
	"slices"
)

// Load is one stream of work during a phase, or through all of them.
type Load struct {
	// Name is unique in the run: it names the load's objects. Default: the kind.
	Name string `yaml:"name,omitempty"`
	// Kind: "requests", "watches", "changes", "history" (which is judged at the
	// run's end, also if it stands in one phase and only writes in that).
	Kind string `yaml:"kind"`

	// Rate of arrivals (requests, changes) or of opening (watches), as "50/s", "300/m".
	Rate Rate `yaml:"rate,omitempty"`
	// Arrival is how arrivals come at that rate: "constant" (evenly, the
	// default) or "poisson" (as many independent clients make them).
	Arrival string `yaml:"arrival,omitempty"`
	// Shape is how the rate changes with time. Left out: it does not.
	Shape Shape `yaml:"shape,omitempty"`
	// MaxInFlight bounds open requests; an arrival past it is counted as
	// unsent. Default 1000.
	MaxInFlight int `yaml:"maxInFlight,omitempty" zero:"1000"`
	// Timeout of one request. Default 60s, as kubectl's and the API server's.
	Timeout Duration `yaml:"timeout,omitempty" zero:"60s"`
	// Connections that requests and changes go round, each HTTP/2. Default 4.
	// A connection that is full to the server's limit makes another be opened.
	Connections int `yaml:"connections,omitempty" zero:"4"`

	// What each request asks, unless Mix says more; of watches, what is watched.
	Operation `yaml:",inline"`
	// Mix are the operations of requests of several kinds, drawn by weight.
	// Instead of verb.
	Mix []Operation `yaml:"mix,omitempty"`

	// Objects is how many objects of each resource the load works on, made
	// beforehand. Default 100 for requests, 1 for changes and watches.
	Objects int `yaml:"objects,omitempty" zero:"100 for requests, 5 for a history, else 1"`
	// Namespaces the objects are spread over: the run's own, and as many more
	// as needed, made for the load. Default 1.
	Namespaces int `yaml:"namespaces,omitempty" zero:"1"`
	// Spread of objects over namespaces: "even" (the default) or "zipf" (the
	// k-th namespace holds a share of 1/k, as clusters grow).
	Spread string `yaml:"spread,omitempty"`
	// Size of each object's payload in bytes, as "1KiB". Default 1KiB.
	Size Bytes `yaml:"size,omitempty" zero:"1KiB"`
	// Sizes are payload sizes drawn by weight, instead of Size.
	Sizes []SizeShare `yaml:"sizes,omitempty"`
	// Object is the manifest of the objects for resources that Stormglass has
	// none for, such as custom resources of yours. Name, namespace and labels
	// are put in; the payload goes into an annotation.
	Object any `yaml:"object,omitempty"`
	// Tenants are users the requests are made as, in turn by share, by
	// impersonation. Left out: the load's own identity.
	Tenants []Tenant `yaml:"tenants,omitempty"`

	// Count of watches, opened at Rate per second.
	Count int `yaml:"count,omitempty"`
	// Hold keeps the watches of this phase open to the end of the run.
	Hold bool `yaml:"hold,omitempty"`
	// Connect is how watches share connections: "shared" (each filled to the
	// server's limit of streams, commonly 100, as one Go client does; the
	// default) or "each" (a connection for every watch, as many clients do).
	Connect string `yaml:"connect,omitempty"`
	// Start is how a watch learns the state it starts from: "list" (one list
	// for all, then watches from its version; the default) or "watchList"
	// (each asks for the initial events, as client-go's informers do).
	Start string `yaml:"start,omitempty"`
	// Slow makes some of the watches slow consumers.
	Slow SlowWatches `yaml:"slow,omitempty"`

	// Watches that changes are for: the name of the load whose objects are written and
	// whose watches must deliver each write.
	Watches string `yaml:"watches,omitempty"`

	// Clients of a history: each writes and reads, one operation at a time.
	// Default 5. Its Objects are the registers they share, default 5; its Rate
	// is that of all clients, default 20/s.
	Clients int `yaml:"clients,omitempty" zero:"5"`
	// Watchers of a history: watches of all registers. Default 3.
	Watchers int `yaml:"watchers,omitempty" zero:"3"`
}

// Operation is one kind of request.
type Operation struct {
	// Verb of requests: "get", "list", "create", "update", "patch", "delete", "apply".
	Verb string `yaml:"verb,omitempty"`
	// Weight of the operation in a mix. Default 1.
	Weight float64 `yaml:"weight,omitempty" zero:"1"`
	// Resource, as "configmaps" or "deployments.apps". Default configmaps.
	// Objects are made for configmaps, secrets, services, serviceaccounts,
	// leases.coordination.k8s.io, pods and widgets.load.stormglass.dev (a custom resource that
	// is made for the run); for others that are written, give an object.
	Resource string `yaml:"resource,omitempty"`
	// ResourceVersion of a get or list: "" (a consistent read, from etcd or a
	// cache known to be current), "0" (any cached state), or of a list "exact"
	// (the version of the load's first list, resourceVersionMatch=Exact).
	ResourceVersion string `yaml:"resourceVersion,omitempty"`
	// Limit of a list's page. Zero means none.
	Limit int `yaml:"limit,omitempty"`
	// AllPages makes a list with a limit go on to its last page; its latency is
	// that of all pages.
	AllPages bool `yaml:"allPages,omitempty"`
	// LabelSelector of a list or watch, in place of the load's own label.
	LabelSelector string `yaml:"labelSelector,omitempty"`
	// FieldSelector of a list or watch, as "metadata.name=x".
	FieldSelector string `yaml:"fieldSelector,omitempty"`
	// Form of the answer to get, list and watch: "object" (the default),
	// "metadata" (PartialObjectMetadata) or "table" (as kubectl get asks).
	Form string `yaml:"form,omitempty"`
	// Encoding of answers: "json" (the default) or "protobuf" (built-in
	// resources only).
	Encoding string `yaml:"encoding,omitempty"`
	// Scope of a list or watch: "namespace" (the load's; the default) or "cluster".
	Scope string `yaml:"scope,omitempty"`
}

// Shape is how a rate changes with time, from the start of the load. Rates go
// from Load.Rate to To where a shape has two.
type Shape struct {
	// Kind: "ramp" (evenly to To within Over, then To), "step" (to To in Steps
	// equal steps, one each Every), "burst" (Load.Rate, and Burst further
	// arrivals at once each Every), "sine" (around Load.Rate by Amplitude, a
	// period each Every) or "replay" (the arrivals of a file).
	Kind string `yaml:"kind,omitempty"`
	To   *Rate  `yaml:"to,omitempty"` // the rate that a ramp or step ends with
	// Over is a ramp's length.
	Over  Duration `yaml:"over,omitempty"`
	Steps int      `yaml:"steps,omitempty"` // of a step shape
	Every Duration `yaml:"every,omitempty"` // length of a step, of a sine's period, or between bursts
	Burst int      `yaml:"burst,omitempty"` // arrivals of each burst
	// Amplitude of a sine as a fraction of the rate, over 0 and at most 1.
	Amplitude float64 `yaml:"amplitude,omitempty"`
	// File of a replay: lines of seconds since the start, in order, such as
	// 0.125; # begins a comment. Beside the scenario file, or absolute.
	File string `yaml:"file,omitempty"`
	// Speed of a replay: 2 halves all times. Default 1.
	Speed float64 `yaml:"speed,omitempty" zero:"1"`

	// Times of a replay, in seconds, as read from File.
	Times []float64 `yaml:"-"`
}

// SizeShare is one size of a distribution.
type SizeShare struct {
	Size   Bytes   `yaml:"size"`                      // of the payload, as 1KiB
	Weight float64 `yaml:"weight,omitempty" zero:"1"` // among the sizes. Default 1
}

// Tenant is a user that requests are made as.
type Tenant struct {
	// Name of the tenant, in results; the user is stormglass:tenant:NAME.
	Name string `yaml:"name"`
	// Groups of the user, beside stormglass:tenants.
	Groups []string `yaml:"groups,omitempty"`
	// Share of the arrivals. Default 1.
	Share float64 `yaml:"share,omitempty" zero:"1"`
}

// SlowWatches are watches that do not keep up, as a client does whose handler
// is slow: they take in a stream's window of data, then so much per second.
type SlowWatches struct {
	// Fraction of the load's watches, 0 to 1. They have connections of their own.
	Fraction float64 `yaml:"fraction,omitempty"`
	// BytesPerSecond that each takes in. Zero means nothing at all.
	BytesPerSecond Bytes `yaml:"bytesPerSecond,omitempty"`
	// Window that the server may send ahead. Default 64KiB, HTTP/2's own.
	Window Bytes `yaml:"window,omitempty" zero:"64KiB"`
}

// TenantsGroup is a group that all tenants are in.
const TenantsGroup = "stormglass:tenants"

// TenantUser is the user that a tenant's requests are made as.
func TenantUser(name string) string { return "stormglass:tenant:" + name }

// NamespacesIn are the namespaces of a load's objects, in the order of their
// shares: the run's own and, where there are more, some of the load's.
func (l *Load) NamespacesIn(run string) []string {
	all := []string{run}
	for i := 1; i < l.Namespaces; i++ {
		all = append(all, fmt.Sprintf("%s-%s-%d", run, l.Name, i))
	}
	return all
}

// OwnObjects reports whether a load makes the objects that an operation of its
// works on: where it writes, and of a resource that Stormglass has a manifest
// for or was given one for. Else gets, lists and watches are of whatever is
// there. Pods that are only read are whatever is there too.
func (l *Load) OwnObjects(o Operation) bool {
	switch o.Verb {
	case "create":
		return false // the creation itself is measured
	case "update", "patch", "delete", "apply":
		return true
	}
	if o.Scope == "cluster" || o.LabelSelector != "" || o.FieldSelector != "" {
		return false
	}
	return l.Object != nil || slices.Contains(Manifests, o.Resource) && o.Resource != "pods"
}
