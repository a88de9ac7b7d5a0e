package watch

import (
	"cmp"
	"errors"
	"net/url"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// Time limits for a response of the server, and for the end of a watch after its timeout. client-go has none.
const (
	answerTimeout = time.Minute
	endGrace      = time.Minute
)

var errOverdue = errors.New("the API server did not answer in time, or did not end the watch after the requested timeout")

// requests contains the common fields of all requests that the watches send.
type requests struct {
	path      string // path of the collection, including a gateway's prefix
	selector  string // "&labelSelector=...", or empty
	watchType string // Accept header of watches
	listType  string
	encoding  string // the load's field Encoding; empty means JSON
}

// scanner returns a scanner for events (levelEvent), or for objects and lists (levelObject).
func (r *requests) scanner(sink eventSink, root level) scanner {
	switch r.encoding {
	case "protobuf":
		return newProto(sink, root)
	case "cbor":
		return newCBOR(sink, root)
	}
	return newJSON(sink, root)
}

func newRequests(prefix string, w *Watches) requests {
	l, o := w.load, w.objects
	query := ""
	label := l.LabelSelector
	if label == "" && l.FieldSelector == "" && o.Len() > 0 {
		label = load.LoadLabel + "=" + l.Name
	}
	if label != "" {
		query += "&labelSelector=" + url.QueryEscape(label)
	}
	if l.FieldSelector != "" {
		query += "&fieldSelector=" + url.QueryEscape(l.FieldSelector)
	}
	r := requests{path: prefix + o.Collection(), selector: query, encoding: l.Encoding}
	r.watchType, r.listType = accept(l.Encoding, l.Form)
	return r
}

// accept returns the Accept headers for watches and lists, as in client-go's typed clients or, if form is "metadata",
// its metadata client. Unlike in client-go, each header names only one encoding, so that the server cannot use another
// encoding unnoticed.
func accept(encoding, form string) (watch, list string) {
	as := func(kind string) string {
		if form != "metadata" {
			return ""
		}
		return ";as=" + kind + ";g=meta.k8s.io;v=v1"
	}
	if encoding == "protobuf" {
		return protobuf.ContentType + as("PartialObjectMetadata") + ";stream=watch", protobuf.ContentType + as("PartialObjectMetadataList")
	}
	// In CBOR, a watch requests the media type of a single object, and the server responds with application/cbor-seq.
	// The server refuses a request for application/cbor-seq (apiserver, endpoints/handlers/watch.go).
	media := "application/" + cmp.Or(encoding, "json")
	return media + as("PartialObjectMetadata"), media + as("PartialObjectMetadataList")
}

// appendPath appends the path and query of a request. rv is the newest known version, or 0 if none is known.
func (r *requests) appendPath(b []byte, q listwatch.Question, rv uint64, timeout time.Duration) []byte {
	return listwatch.AppendQuery(append(b, r.path...), q, rv, timeout, r.selector)
}
