// Package auditlog reads the audit logs of kube-apiserver: JSON events of audit.k8s.io. Its memory use is constant,
// even for very long lines.
package auditlog

import (
	"bytes"
	"slices"
	"time"
)

// Stage is the stage of a request at which the API server generated an event.
type Stage uint8

// Stages in the order in which a request reaches them.
const (
	RequestReceived Stage = iota + 1
	ResponseStarted
	ResponseComplete
	Panic
)

func stageOf(text []byte) Stage {
	return Stage(1 + slices.Index([]string{"RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"}, string(text)))
}

// Ended reports whether the request has ended at this stage.
func (s Stage) Ended() bool { return s >= ResponseComplete }

// Event is an audit event. Its byte slices are valid until the next event is read.
type Event struct {
	AuditID []byte
	Stage   Stage
	Verb    []byte
	// URI is the path and query of the request.
	URI []byte
	// User is the user that sent the request. UserUID is the UID of a service account. As is the impersonated user.
	User, UserUID, As []byte
	UserAgent         []byte
	// Object is the object of the request. Its Resource is empty if the request is not for a resource.
	Object Object
	// Code is the HTTP status of the response, or 0 before the response.
	Code int
	// Received is the time when the API server received the request. At is the time of the stage. Both are in
	// microseconds since 1970. OneTime reports whether the event has only one of them; the fields are then equal.
	Received, At int64
	OneTime      bool
	// Body describes the request body. An event contains the body if its audit level is Request or higher.
	Body Body
	// Layers holds durations that the API server measured in its layers, such as etcd and admission webhooks. An event
	// contains them only if the request took more than 500 ms; otherwise Layers is nil.
	Layers map[string]time.Duration
}

// Object identifies the object or the collection in a request.
type Object struct {
	Resource, Namespace, Name, Group, Version, Subresource []byte
}

// Body describes the object in the body of a request.
type Body struct {
	// Size is the size of the object as JSON, in bytes. 0 means that the event has no object.
	Size int
	// Array reports whether the object is a JSON array, such as a JSON patch.
	Array bool
	// Typed reports whether the object has both apiVersion and kind.
	Typed bool
}

// Query returns the query of the URI, without the question mark.
func (e *Event) Query() []byte {
	_, query, _ := bytes.Cut(e.URI, []byte("?"))
	return query
}

// reset clears the event but keeps the memory of its fields.
func (e *Event) reset() {
	o := &e.Object
	*e = Event{
		AuditID: e.AuditID[:0], Verb: e.Verb[:0], URI: e.URI[:0], User: e.User[:0], UserUID: e.UserUID[:0], As: e.As[:0], UserAgent: e.UserAgent[:0],
		Object: Object{o.Resource[:0], o.Namespace[:0], o.Name[:0], o.Group[:0], o.Version[:0], o.Subresource[:0]},
	}
}
