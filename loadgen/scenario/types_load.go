package scenario

import (
	"fmt"
	"slices"
)

// Load is one stream of work during a phase, or through all of them.
type Load struct {
	Name string `yaml:"name,omitempty"` // unique in the run, default the kind
	// Kind: "requests", "watches", "changes", "history", "streams", "objects", "replay" or
	// "custom" (made by the Go program that runs the scenario)
	Kind string `yaml:"kind"`

	Rate Rate `yaml:"rate,omitempty"` // of arrivals, or of opening watches
	// Arrival: "constant" (the default) or "poisson" (as many independent clients)
	Arrival string `yaml:"arrival,omitempty"`
	Shape   Shape  `yaml:"shape,omitempty"` // how the rate changes; default: it does not
	// MinAchieved: in place of the scenario's
	MinAchieved *Bound `yaml:"minAchieved,omitempty"`
	// MaxInFlight: open requests; further arrivals are unsent; default 1000.
	MaxInFlight int      `yaml:"maxInFlight,omitempty" zero:"1000"`
	Timeout     Duration `yaml:"timeout,omitempty" zero:"60s"` // of a request, default 60s
	// Connections: HTTP/2, taken in turn, more when all are full; default 4
	Connections int `yaml:"connections,omitempty" zero:"4"`

	// What each request asks, unless Mix says more; of watches, what is watched.
	Operation `yaml:",inline"`
	Mix       []Operation `yaml:"mix,omitempty"` // drawn by weight, instead of Verb

	// Objects: of each resource, made beforehand; default 100 for requests, 5 for a
	// history, else 1.
	Objects int `yaml:"objects,omitempty" zero:"100 for requests, 5 for a history, else 1"`
	// Namespaces: of the objects, default 1; further ones are made
	Namespaces int `yaml:"namespaces,omitempty" zero:"1"`
	// Spread: of objects over namespaces: "even" (the default) or "zipf" (a share of
	// 1/k for the k-th)
	Spread string      `yaml:"spread,omitempty"`
	Size   Bytes       `yaml:"size,omitempty" zero:"1KiB"` // of each object's payload, default 1KiB
	Sizes  []SizeShare `yaml:"sizes,omitempty"`            // drawn by weight, instead of Size
	// Object: manifest of other resources; name, namespace and labels are put in, the payload
	// into an annotation
	Object any `yaml:"object,omitempty"`
	// Tenants: impersonated in turn by share; default: the load's own identity.
	Tenants []Tenant `yaml:"tenants,omitempty"`

	Count int  `yaml:"count,omitempty"` // of watches, opened at Rate
	Hold  bool `yaml:"hold,omitempty"`  // keep the watches open to the end of the run
	// Connect: "shared" (connections filled to the server's limit of streams; the default)
	// or "each" (one for every watch)
	Connect string `yaml:"connect,omitempty"`
	// Start: "list" (one list for all watches; the default) or "watchList" (each asks
	// for the initial events, as informers do)
	Start string      `yaml:"start,omitempty"`
	Slow  SlowWatches `yaml:"slow,omitempty"` // slow consumers among the watches

	// Watches: the load whose objects are written and whose watches must deliver each write
	Watches string `yaml:"watches,omitempty"`

	// Clients: of a history, each with one operation at a time; default 5, together 20/s
	Clients  int `yaml:"clients,omitempty" zero:"5"`
	Watchers int `yaml:"watchers,omitempty" zero:"3"` // of a history, each of all registers; default 3

	// Templates: of a load of objects, which creates each once, as a Batch has them
	Templates []Template `yaml:"templates,omitempty"`
	// Iterations: of all templates; default one for each namespace
	Iterations int `yaml:"iterations,omitempty" zero:"one for each namespace"`
	// FromIteration: the first of them that is made, as of a Batch
	FromIteration int `yaml:"fromIteration,omitempty"`
	// ToIteration: only those before it are made, as of a Batch; default all
	ToIteration int `yaml:"toIteration,omitempty" zero:"all"`
	// Vars: values by name, {{.NAME}} in templates
	Vars map[string]any `yaml:"vars,omitempty"`
	// Placement: "nodes" (the default) or "none", as of a Batch
	Placement string `yaml:"placement,omitempty"`

	// Stream: to pods of the run: "logs" (the default), "exec" (a command that sends back its
	// input), "attach" or "portForward" (to a port that does so)
	Stream string `yaml:"stream,omitempty"`
	// Follow: how long logs and attached output are read; default: logs to their end so far
	Follow Duration `yaml:"follow,omitempty"`

	Replayed `yaml:",inline"`
}

// Operation is one kind of request.
type Operation struct {
	// Verb: "get", "list", "create", "update", "patch", "delete", "deletecollection" (of the load's
	// objects in a namespace) or "apply"
	Verb   string  `yaml:"verb,omitempty"`
	Weight float64 `yaml:"weight,omitempty" zero:"1"` // in a mix, default 1
	// Resource: as "deployments.apps", default configmaps. Written are configmaps, secrets,
	// services, serviceaccounts, leases.coordination.k8s.io, pods,
	// widgets.load.stormglass.dev (a custom resource made for the run); others need an
	// Object. Or a document that is got: /apis (discovery, aggregated), /openapi/v2,
	// /openapi/v3 or one below
	Resource string `yaml:"resource,omitempty"`
	// ResourceVersion: "" (consistent), "0" (any cached state), of a list also "exact" (the version of
	// the load's first list)
	ResourceVersion string `yaml:"resourceVersion,omitempty"`
	Limit           int    `yaml:"limit,omitempty"`    // of a list's page or of a deletecollection, default none
	AllPages        bool   `yaml:"allPages,omitempty"` // read all pages, as one request
	// LabelSelector: of a list or watch, in place of the load's own label; of a deletecollection, beside it
	LabelSelector string `yaml:"labelSelector,omitempty"`
	// FieldSelector: of a list, watch or deletecollection, as "metadata.name=x"
	FieldSelector string `yaml:"fieldSelector,omitempty"`
	// Form: of answers: "object" (the default), "metadata" (PartialObjectMetadata) or
	// "table" (as kubectl get asks)
	Form string `yaml:"form,omitempty"`
	// Encoding: of answers: "json" (the default), "protobuf" (built-in resources) or "cbor" (with the
	// feature gate CBORServingAndStorage)
	Encoding string `yaml:"encoding,omitempty"`
	Scope    string `yaml:"scope,omitempty"` // of a list or watch: "namespace" (the default) or "cluster"
	// Subresource: of the objects, as "status" or "scale", that is read or written; one that is
	// created needs a Body, as "eviction" of pods or "token" of serviceaccounts
	Subresource string `yaml:"subresource,omitempty"`
	PatchType   string `yaml:"patchType,omitempty"` // of a patch: "merge" (the default), "json" or "strategic"
	// Body: of a patch, default the payload; of what is created in a subresource. Its texts are
	// templates, with {{.Turn}}, a number that changes with each request
	Body any `yaml:"body,omitempty"`
}

// FullResource is the resource with its subresource, as "pods/status".
func (o Operation) FullResource() string {
	if o.Subresource == "" {
		return o.Resource
	}
	return o.Resource + "/" + o.Subresource
}

// Shape changes a load's rate with time.
type Shape struct {
	// Kind: "ramp" (to To within Over), "step" (to To in Steps, one each Every),
	// "burst" (Burst further arrivals each Every), "sine" (by Amplitude, a period each
	// Every) or "replay" (of File)
	Kind      string   `yaml:"kind,omitempty"`
	To        *Rate    `yaml:"to,omitempty"`        // final rate
	Over      Duration `yaml:"over,omitempty"`      // length of a ramp
	Steps     int      `yaml:"steps,omitempty"`     // of a step
	Every     Duration `yaml:"every,omitempty"`     // step, period, or time between bursts
	Burst     int      `yaml:"burst,omitempty"`     // arrivals of each
	Amplitude float64  `yaml:"amplitude,omitempty"` // of the rate, over 0, at most 1
	// File: lines of seconds since the start, in order; beside the scenario file, or absolute
	File  string  `yaml:"file,omitempty"`
	Speed float64 `yaml:"speed,omitempty" zero:"1"` // of a replay, default 1; 2 halves all times

	// Times of a replay, in seconds, as read from File.
	Times []float64 `yaml:"-"`
}

// SizeShare is one size of a distribution.
type SizeShare struct {
	Size   Bytes   `yaml:"size"`                      // as 1KiB
	Weight float64 `yaml:"weight,omitempty" zero:"1"` // default 1
}

// Tenant is a user that requests are made as.
type Tenant struct {
	Name   string   `yaml:"name"`                     // the user is stormglass:tenant:NAME
	Groups []string `yaml:"groups,omitempty"`         // beside stormglass:tenants
	Share  float64  `yaml:"share,omitempty" zero:"1"` // of arrivals, default 1
}

// SlowWatches read a stream's window of data, then so much per second.
type SlowWatches struct {
	Fraction       float64 `yaml:"fraction,omitempty"`            // of the load's watches, 0 to 1
	BytesPerSecond Bytes   `yaml:"bytesPerSecond,omitempty"`      // of each; 0: none
	Window         Bytes   `yaml:"window,omitempty" zero:"64KiB"` // that the server may send ahead, default 64KiB
}

// TenantsGroup is a group that all tenants are in.
const TenantsGroup = "stormglass:tenants"

// TenantUser is the user that a tenant's requests are made as.
func TenantUser(name string) string { return "stormglass:tenant:" + name }

// NamespacesIn are the namespaces of a load's objects, in the order of their
// shares: the run's own and, where there are more, some of the load's. Those of a
// batch are BatchNamespaces.
func (l *Load) NamespacesIn(run string) []string {
	all := []string{run}
	if l.Batch().Has() {
		return all
	}
	for i := 1; i < max(l.Namespaces, l.traceNamespaces()+1); i++ {
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
		return o.Subresource != "" // else the creation itself is measured
	case "update", "patch", "delete", "deletecollection", "apply":
		return true
	}
	if o.Scope == "cluster" || o.LabelSelector != "" || o.FieldSelector != "" {
		return false
	}
	return l.Object != nil || slices.Contains(Manifests, o.Resource) && o.Resource != "pods"
}
