// Package recording reads and writes recordings. A recording lists the requests that clients sent to a cluster's API
// servers. Loads of kind "replay" send them again.
//
// A recording file is JSON with one value per line: the Header, then the Requests ordered by At. A file whose name ends
// in .gz is compressed with gzip.
package recording

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Version is the version of the recording format.
const Version = 1

// Longest is the maximum duration of a recording.
const Longest = 31 * 24 * time.Hour

// Header is the first line of a recording.
type Header struct {
	// Format is the version of the format. In files of earlier releases, Trace contains it; Reader copies Trace to
	// Format.
	Format int `json:"recording,omitempty"`
	Trace  int `json:"trace,omitempty"`
	// Start is the time at which the recording begins. Length is its duration.
	Start  time.Time `json:"start"`
	Length Micros    `json:"length"`
	// Requests is the number of requests.
	Requests int64 `json:"requests"`
	// Actors are the clients. Requests refer to them by index.
	Actors []Actor `json:"actors"`
	// Dropped holds the number of requests that the recording excludes, by reason.
	Dropped map[string]int64 `json:"dropped,omitempty"`
	// Source describes the source of the requests.
	Source string `json:"source"`
	// Hashed reports whether the recording has hashes instead of the names of users, namespaces and objects.
	Hashed bool `json:"hashed"`
	// Notes lists damaged or missing parts of the source and other remarks, one line each.
	Notes []string `json:"notes,omitempty"`
	// Snapshot counts the objects of the cluster at the start of the recording. It is nil if unknown.
	Snapshot *Snapshot `json:"snapshot,omitempty"`
}

// Actor is one client: a user and its user agent.
type Actor struct {
	Name      string `json:"name"`
	UserAgent string `json:"userAgent,omitempty"`
	// As is the user that the actor impersonates.
	As string `json:"as,omitempty"`
}

// String returns the user, the impersonated user and the program, for summaries.
func (a Actor) String() string {
	name := a.Name
	if a.As != "" {
		name += " as " + a.As
	}
	if program, _, _ := strings.Cut(a.UserAgent, " "); program != "" {
		name += " (" + program + ")"
	}
	return name
}

// Request is one request of a recording.
type Request struct {
	// At is the time at which the API server received the request, relative to Header.Start.
	At    Micros `json:"at"`
	Actor int    `json:"actor"`
	// Verb is "get", "list", "watch", "create", "update", "patch", "delete" or "deletecollection".
	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Version     string `json:"version"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	// LabelSelector, FieldSelector, Limit and ResourceVersion are query parameters. Paged reports whether the request has
	// a continue token, which requests a further page of a list.
	LabelSelector   string `json:"labelSelector,omitempty"`
	FieldSelector   string `json:"fieldSelector,omitempty"`
	Limit           int64  `json:"limit,omitempty"`
	Paged           bool   `json:"paged,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// InitialEvents reports whether a watch has the parameter sendInitialEvents.
	InitialEvents bool `json:"initialEvents,omitempty"`
	// Took is the duration of the request. For a watch, it is the time for which the watch was open. Zero means unknown.
	Took Micros `json:"took,omitempty"`
	// Code is the HTTP status of the response. Zero means unknown.
	Code int `json:"code,omitempty"`
	// PatchType is the content type of a patch, if known.
	PatchType string `json:"patchType,omitempty"`
	// Size is the size of the request body in bytes, or 0 if the source does not contain request bodies.
	Size int `json:"size,omitempty"`
	// DryRun reports whether the request was a dry run, which does not change objects.
	DryRun bool `json:"dryRun,omitempty"`
}

// Object returns the resource with its group and subresource, as in "deployments.apps/scale".
func (r *Request) Object() string { return objectName(r.Group, r.Resource, r.Subresource) }

func objectName(group, resource, subresource string) string {
	if group != "" {
		resource += "." + group
	}
	if subresource != "" {
		resource += "/" + subresource
	}
	return resource
}

// LongRunning reports whether kube-apiserver treats requests with this verb and subresource as long-running. Such
// requests are watches and streams of pods. They stay open until the client or a timeout ends them.
func LongRunning(verb, subresource string) bool {
	switch subresource {
	case "exec", "attach", "portforward", "proxy", "log":
		return true
	}
	return verb == "watch"
}

// Micros is a number of microseconds.
type Micros int64

// D converts m to a time.Duration.
func (m Micros) D() time.Duration { return time.Duration(m) * time.Microsecond }

// Snapshot counts the objects of a cluster and describes their sizes.
type Snapshot struct {
	Nodes int64 `json:"nodes"`
	// PodsPerNode holds quantiles of the number of pods per node.
	PodsPerNode Quantiles `json:"podsPerNode"`
	// Resources are the resources that have objects, ordered by descending number of objects.
	Resources []ResourceCount `json:"resources"`
}

// ResourceCount counts the objects of a resource.
type ResourceCount struct {
	Group    string `json:"group,omitempty"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
	Objects  int64  `json:"objects"`
	// Namespaces is the number of namespaces that contain objects of the resource. It is 0 for a cluster-scoped
	// resource.
	Namespaces int64 `json:"namespaces,omitempty"`
	// PerNamespace holds quantiles of the number of objects of the resource in each of the Namespaces.
	PerNamespace Quantiles `json:"perNamespace,omitzero"`
	// Bytes holds quantiles of the size of objects as JSON, in bytes. Sampled is the number of objects that were
	// measured.
	Bytes   Quantiles `json:"bytes,omitzero"`
	Sampled int64     `json:"sampled,omitempty"`
}

// Quantiles are quantiles of integers.
type Quantiles struct {
	P50 int64 `json:"p50"`
	P90 int64 `json:"p90"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

// Check returns an error that names the first invalid field of the header.
func (h *Header) Check() error {
	switch {
	case h.Format != Version:
		return fmt.Errorf("recording: format %d is unknown (this program reads %d)", h.Format, Version)
	case h.Start.IsZero():
		return fmt.Errorf("start: the time is missing")
	case h.Length < 0 || h.Length > Micros(Longest/time.Microsecond): // D would overflow
		return fmt.Errorf("length: %d is out of bounds (from 0 to %d: 31 days)", h.Length, Longest/time.Microsecond)
	case h.Requests < 0:
		return fmt.Errorf("requests: %d is negative", h.Requests)
	case h.Requests > 0 && len(h.Actors) == 0:
		return fmt.Errorf("actors: missing for %d requests", h.Requests)
	}
	for i, a := range h.Actors {
		if a.Name == "" {
			return fmt.Errorf("actors[%d].name: it is empty", i)
		}
	}
	return nil
}

// Check returns an error that names the first invalid field of the request. after is the At of the previous request.
func (r *Request) Check(h *Header, after Micros) error {
	switch {
	case r.At < 0:
		return fmt.Errorf("at: %d is negative", r.At)
	case r.At < after:
		return fmt.Errorf("at: %d is before the previous request, at %d (requests must be in chronological order)", r.At, after)
	case r.Took < 0:
		return fmt.Errorf("took: %d is negative", r.Took)
	case r.At > h.Length || r.Took > h.Length-r.At:
		return fmt.Errorf("at: %d plus took %d exceeds the length of %d in line 1", r.At, r.Took, h.Length)
	case r.Actor < 0 || r.Actor >= len(h.Actors):
		return fmt.Errorf("actor: %d is out of bounds (line 1 lists %d actors, counted from 0)", r.Actor, len(h.Actors))
	case !slices.Contains(Verbs(), r.Verb):
		return fmt.Errorf("verb: %q is unknown (%s)", r.Verb, strings.Join(Verbs(), ", "))
	case r.Version == "":
		return fmt.Errorf("version: it is empty")
	case r.Resource == "":
		return fmt.Errorf("resource: it is empty")
	case r.Limit < 0:
		return fmt.Errorf("limit: %d is negative", r.Limit)
	case r.Size < 0:
		return fmt.Errorf("size: %d is negative", r.Size)
	case r.Code != 0 && (r.Code < 100 || r.Code > 599):
		return fmt.Errorf("code: %d is not an HTTP status", r.Code)
	}
	return nil
}

// Verbs returns all verbs that a request in a recording may have.
func Verbs() []string {
	return []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
}
