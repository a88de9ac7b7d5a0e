package watch

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// A server that does not answer, or does not end a watch when it should, must
// not make a watch hang. client-go would wait for ever.
const (
	answerTimeout = time.Minute
	endGrace      = time.Minute
)

var errOverdue = errors.New("the API server did not answer, or did not end the watch, when it should have")

// refusal is an answer that is no success, or an ERROR event.
type refusal struct {
	status     int
	retryAfter time.Duration
}

func (e *refusal) Error() string {
	return fmt.Sprintf("the API server answers %d %s", e.status, http.StatusText(e.status))
}

// question is the kind of a watch's next request.
type question uint8

const (
	askWatch     question = iota // from a version
	askWatchList                 // the initial events, and on from them
	askList                      // the version to watch from
	askFreshList                 // the same, when a list of that version cannot be had
)

// requests are the fixed parts of what watches ask.
type requests struct {
	path      string // of the collection, with its prefix
	selector  string // "&labelSelector=...", or empty
	watchType string // Accept headers
	listType  string
	protobuf  bool
}

// newEvents makes the scanner of a watch's stream.
func (r *requests) newEvents(sink eventSink) scanner {
	if r.protobuf {
		return newProtoEvents(sink)
	}
	return newJSONEvents(sink)
}

// newList makes the scanner of a list.
func (r *requests) newList(sink eventSink) scanner {
	if r.protobuf {
		return newProtoList(sink)
	}
	return newJSONObjects(sink)
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
	r := requests{path: prefix + o.Collection(), selector: query}
	r.watchType, r.listType, r.protobuf = accept(l.Encoding, l.Form)
	return r
}

// accept returns the Accept headers of client-go's typed and metadata clients, without the
// second choice they have: an answer in another encoding than the one that is
// to be measured would not be noticed.
func accept(encoding, form string) (watch, list string, binary bool) {
	as := func(kind string) string {
		if form != "metadata" {
			return ""
		}
		return ";as=" + kind + ";g=meta.k8s.io;v=v1"
	}
	if encoding == "protobuf" {
		return protobuf.ContentType + as("PartialObjectMetadata") + ";stream=watch", protobuf.ContentType + as("PartialObjectMetadataList"), true
	}
	const json = "application/json"
	return json + as("PartialObjectMetadata"), json + as("PartialObjectMetadataList"), false
}

// appendPath appends the path of a question. rv is the version known, 0 for
// none yet; timeout that of a watch.
func (r *requests) appendPath(b []byte, q question, rv uint64, timeout time.Duration) []byte {
	b = append(b, r.path...)
	switch q {
	case askList:
		// As a reflector: from the server's cache, but not older than what is
		// known already.
		b = strconv.AppendUint(append(b, "?resourceVersion="...), rv, 10)
		return append(b, r.selector...)
	case askFreshList:
		if r.selector == "" {
			return b
		}
		return append(append(b, '?'), r.selector[1:]...)
	}
	b = append(b, "?watch=1&allowWatchBookmarks=true&timeoutSeconds="...)
	b = strconv.AppendInt(b, int64(timeout/time.Second), 10)
	b = append(b, "&resourceVersion="...)
	if q == askWatch || rv > 0 {
		b = strconv.AppendUint(b, rv, 10)
	}
	if q == askWatchList {
		b = append(b, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"...)
	}
	return append(b, r.selector...)
}
