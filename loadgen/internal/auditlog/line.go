package auditlog

import (
	"bytes"
	"strconv"
	"time"

	"github.com/stormglass/stormglass/internal/jsonscan"
)

// line is the state of the scan of one record, which is normally one line of a log.
type line struct {
	// section is the JSON object that the Reader is reading. next is the section that starts if the next value is an
	// object.
	section, next section
	// into receives the next value as a string. If into is nil, value says how to process the next value.
	into  *[]byte
	value value
	layer string // layer of the API server to which the duration in the next value belongs
	// at is the number of bytes read of the record. bodyAt is the offset of the request body. inBody is true after the
	// key of the body until the reader knows whether the body is an object; bodyAt is then the offset after the key.
	at, bodyAt int
	inBody     bool
	// isEvent and isList report whether the record's kind is Event or EventList. known reports whether its apiVersion
	// is v1 or v1beta1, and beta whether it is v1beta1.
	isEvent, isList, known, beta bool
	body                         uint8 // bit 0: the request body has an apiVersion; bit 1: it has a kind
}

// section is a JSON object within an event.
type section uint8

const (
	ofEvent section = iota
	ofUser
	ofAs
	ofObject
	ofStatus
	ofBody
	ofAnnotations
)

// value says how to process the value of a JSON field that is not stored as a string.
type value uint8

const (
	ofNothing value = iota
	ofKind
	ofVersion
	ofStage
	ofReceived
	ofAt
	ofCode
	ofLayer
)

// layerPrefix is the prefix of annotations with durations that the API server measured
// (apiserver/pkg/endpoints/request/webhook_duration.go). The API server adds them only to requests that take more than
// 500 ms (endpoints/filters/audit.go).
const layerPrefix = "apiserver.latency.k8s.io/"

// feed scans r.rest, but not beyond the end of the record. done reports whether the record is complete.
func (r *Reader) feed() (done bool, err error) {
	l := &r.line
	for len(r.rest) > 0 {
		n, token, err := r.scan.Next(r.rest)
		if err != nil {
			return false, err
		}
		r.rest = r.rest[n:]
		l.at += n
		switch token {
		case jsonscan.Object:
			l.section = l.next
			if l.section == ofBody {
				l.bodyAt, l.inBody = l.at-1, false
			}
		case jsonscan.End:
			switch {
			case l.section == ofBody:
				r.event.Body.Size, r.event.Body.Typed = l.at-l.bodyAt, l.body == 3
			case l.inBody:
				r.endBody(l.at - 1)
			}
			if r.scan.Complete() {
				return true, nil
			}
			l.section = ofEvent
		case jsonscan.Key:
			text := r.scan.Text()
			if l.inBody {
				r.endBody(l.at - len(text) - len(`,""`))
			}
			r.key(text)
		case jsonscan.String, jsonscan.Number:
			r.take(r.scan.Text())
		}
	}
	return false, nil
}

// endBody records the size of a request body that is not a JSON object. end is the offset after the body.
func (r *Reader) endBody(end int) {
	l := &r.line
	l.inBody = false
	if size := end - l.bodyAt - len(":"); size > len("null") {
		r.event.Body.Size, r.event.Body.Array = size, true
	}
}

// key decides how to process the value of the field whose name is text.
func (r *Reader) key(text []byte) {
	l, e := &r.line, r.event
	l.into, l.value, l.next = nil, ofNothing, ofEvent
	switch l.section {
	case ofEvent:
		switch string(text) {
		case "kind":
			l.value = ofKind
		case "apiVersion":
			l.value = ofVersion
		case "auditID":
			l.into = &e.AuditID
		case "stage":
			l.value = ofStage
		case "requestURI":
			l.into = &e.URI
		case "verb":
			l.into = &e.Verb
		case "user":
			r.enter(ofUser)
		case "impersonatedUser":
			r.enter(ofAs)
		case "userAgent":
			l.into = &e.UserAgent
		case "objectRef":
			r.enter(ofObject)
		case "responseStatus":
			r.enter(ofStatus)
		case "requestObject":
			r.enter(ofBody)
			l.bodyAt, l.inBody = l.at, true
		case "annotations":
			r.enter(ofAnnotations)
		case "requestReceivedTimestamp":
			l.value = ofReceived
		case "stageTimestamp":
			l.value = ofAt
		}
	case ofUser:
		switch string(text) {
		case "username":
			l.into = &e.User
		case "uid":
			l.into = &e.UserUID
		}
	case ofAs:
		if string(text) == "username" {
			l.into = &e.As
		}
	case ofObject:
		switch string(text) {
		case "resource":
			l.into = &e.Object.Resource
		case "namespace":
			l.into = &e.Object.Namespace
		case "name":
			l.into = &e.Object.Name
		case "apiGroup":
			l.into = &e.Object.Group
		case "apiVersion":
			l.into = &e.Object.Version
		case "subresource":
			l.into = &e.Object.Subresource
		}
	case ofStatus:
		if string(text) == "code" {
			l.value = ofCode
		}
	case ofBody:
		switch string(text) {
		case "apiVersion":
			l.body |= 1
		case "kind":
			l.body |= 2
		}
	case ofAnnotations:
		if layer, ok := bytes.CutPrefix(text, []byte(layerPrefix)); ok {
			l.value, l.layer = ofLayer, string(layer)
		}
	}
	if l.into != nil || l.value != ofNothing {
		r.scan.Keep()
	}
}

// enter selects s as the section of the next value, if this value is an object.
func (r *Reader) enter(s section) {
	r.line.next = s
	r.scan.Enter()
}

// take processes the value of a field. The method key has decided how.
func (r *Reader) take(text []byte) {
	l, e := &r.line, r.event
	if l.into != nil {
		*l.into = append((*l.into)[:0], text...)
		return
	}
	switch l.value {
	case ofKind:
		l.isEvent, l.isList = string(text) == "Event", string(text) == "EventList"
	case ofVersion:
		l.beta = string(text) == "audit.k8s.io/v1beta1"
		l.known = l.beta || string(text) == "audit.k8s.io/v1"
	case ofStage:
		e.Stage = stageOf(text)
	case ofReceived:
		e.Received = micros(text)
	case ofAt:
		e.At = micros(text)
	case ofCode:
		e.Code, _ = strconv.Atoi(string(text))
	case ofLayer:
		if d, err := time.ParseDuration(string(text)); err == nil {
			if e.Layers == nil {
				e.Layers = map[string]time.Duration{}
			}
			e.Layers[l.layer] = d
		}
	}
}

// micros returns an RFC 3339 time in microseconds since 1970, or 0 if text is not a time.
func micros(text []byte) int64 {
	t, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return 0
	}
	return t.UnixMicro()
}

// complete checks the event and derives a missing time or object from the other fields.
func (r *Reader) complete() Reason {
	l, e := &r.line, r.event
	switch {
	case l.isList && l.known:
		return EventList
	case !l.isEvent || !l.known:
		return NoEvent
	case e.Stage == 0 || len(e.AuditID) == 0 || len(e.Verb) == 0:
		return Incomplete
	case e.Received <= 0 && e.At <= 0:
		return NoTime
	}
	if l.beta {
		r.Beta++
	}
	if e.OneTime = e.Received <= 0 || e.At <= 0; e.OneTime {
		e.Received = max(e.Received, e.At)
		e.At = e.Received
		r.OneTime++
	}
	if len(e.Object.Resource) == 0 {
		e.setObject()
	}
	return valid
}

// setObject sets Object from the path of the URI, for events without objectRef. The path is
// [/api|/apis/GROUP]/VERSION[/watch][/namespaces/NAMESPACE]/RESOURCE[/NAME[/SUBRESOURCE]].
func (e *Event) setObject() {
	o := &e.Object
	path, _, _ := bytes.Cut(e.URI, []byte("?"))
	next := func(into *[]byte) (part []byte) {
		part, path, _ = bytes.Cut(path, []byte("/"))
		if into != nil {
			*into = append((*into)[:0], part...)
		}
		return part
	}
	next(nil) // before the first slash
	switch string(next(nil)) {
	case "api":
	case "apis":
		next(&o.Group)
	default:
		return
	}
	next(&o.Version)
	path = bytes.TrimPrefix(path, []byte("watch/"))
	if string(next(&o.Resource)) == "namespaces" {
		namespace, rest := next(&o.Namespace), path
		switch resource := next(&o.Resource); string(resource) {
		case "", "status", "finalize": // the object is the namespace
			o.Resource = append(o.Resource[:0], "namespaces"...)
			o.Name, path = append(o.Name[:0], namespace...), rest
			next(&o.Subresource)
			return
		}
	}
	next(&o.Name)
	next(&o.Subresource)
}
