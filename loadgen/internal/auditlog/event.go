// Package auditlog reads the audit logs of kube-apiserver: events of audit.k8s.io as JSON, one
// to a line, in constant memory however long a line is.
package auditlog

import (
	"bytes"
	"time"
)

// Stage is that of a request when its event was made.
type Stage uint8

// The stages, in the order in which a request goes through them.
const (
	RequestReceived Stage = iota + 1
	ResponseStarted
	ResponseComplete
	Panic
)

func stageOf(text []byte) Stage {
	switch string(text) {
	case "RequestReceived":
		return RequestReceived
	case "ResponseStarted":
		return ResponseStarted
	case "ResponseComplete":
		return ResponseComplete
	case "Panic":
		return Panic
	}
	return 0
}

// Ended reports whether the request has ended at this stage.
func (s Stage) Ended() bool { return s >= ResponseComplete }

// Event is an event of a request. Its bytes are valid until the next one is read.
type Event struct {
	AuditID []byte
	Stage   Stage
	Verb    []byte
	// URI is the path and query of the request.
	URI []byte
	// User made the request; UserUID is the uid of a service account. As is the user that
	// it impersonated.
	User, UserUID, As []byte
	UserAgent         []byte
	// Object is what it is about; its Resource is empty in a request for no resource.
	Object Object
	// Code is the status of the answer; zero: there is none yet.
	Code int
	// Received and At are the times of the request and of the stage, in microseconds since
	// 1970.
	Received, At int64
	// Body is the request's object at level Request.
	Body Body
	// Layers are the server's own timings of a request that took more than 500 ms, by layer;
	// nil: there are none.
	Layers map[string]time.Duration
}

// Object names the object or the collection of a request.
type Object struct {
	Resource, Namespace, Name, Group, Version, Subresource []byte
}

// Body describes the object that came with a request.
type Body struct {
	// Size is that of its JSON in bytes; zero: there is none.
	Size int
	// Array: it is a list, as a JSON patch is.
	Array bool
	// Typed: it is an object with apiVersion and kind.
	Typed bool
}

// Query is the part of the URI after the question mark.
func (e *Event) Query() []byte {
	_, query, _ := bytes.Cut(e.URI, []byte("?"))
	return query
}

// reset empties the event and keeps its memory.
func (e *Event) reset() {
	o := &e.Object
	*e = Event{
		AuditID: e.AuditID[:0], Verb: e.Verb[:0], URI: e.URI[:0], User: e.User[:0], UserUID: e.UserUID[:0], As: e.As[:0], UserAgent: e.UserAgent[:0],
		Object: Object{o.Resource[:0], o.Namespace[:0], o.Name[:0], o.Group[:0], o.Version[:0], o.Subresource[:0]},
	}
}
