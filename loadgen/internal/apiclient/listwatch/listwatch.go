// Package listwatch is the common part of all clients that list and then watch: what to ask next, and after which
// wait (Machine), how to ask it (AppendQuery), and where one event ends and the next begins (Frames). It follows
// client-go's reflector (client-go/tools/cache/reflector.go).
//
// It has no goroutine and sends nothing. Simulated nodes and the watches of a load, tens of thousands of them, call
// it on the read loop of their connection; a workload and a history call it between requests.
package listwatch

import (
	"errors"
	"strconv"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
)

const (
	// ShortestWatch is the least time that a watch asks to last; the most is twice that.
	ShortestWatch = 5 * time.Minute
	// TooShort is the life of a watch without events that counts as failed.
	TooShort = time.Second
	// MostEvent bounds one watch event in bytes, as client-go does (rest/watch, through serializer/streaming).
	MostEvent = 16 << 20
)

// ErrMalformed is the error of a stream that contains anything other than events.
var ErrMalformed = errors.New("malformed stream")

// Backoff returns client-go's wait after consecutive failed watches.
func Backoff() apiclient.Backoff {
	return apiclient.Backoff{First: 800 * time.Millisecond, Most: 30 * time.Second}
}

// Length returns how long a watch asks to last, from one to two times least; random is from 0 to 1.
func Length(least time.Duration, random float64) time.Duration {
	return least + time.Duration(random*float64(least))
}

// Question is the kind of a request.
type Question uint8

const (
	// Watch asks for the changes after a version.
	Watch Question = iota
	// WatchList asks for the state as initial events, and for the changes after it.
	WatchList
	// List asks for the state from the server's cache, not older than the version known.
	List
	// FreshList asks for the state as a consistent read.
	FreshList
)

// AppendQuery appends the query of a question. version is the newest known resourceVersion, or 0; timeout applies to
// watches; selector holds further parameters, each preceded by an "&".
func AppendQuery(b []byte, q Question, version uint64, timeout time.Duration, selector string) []byte {
	switch {
	case q == FreshList && selector == "":
		return b
	case q == FreshList:
		return append(append(b, '?'), selector[1:]...)
	case q == List:
		b = append(b, "?resourceVersion="...)
	default:
		b = append(b, "?watch=true&allowWatchBookmarks=true&timeoutSeconds="...)
		b = strconv.AppendInt(b, int64(timeout/time.Second), 10)
		b = append(b, "&resourceVersion="...)
	}
	if q != WatchList || version > 0 {
		b = strconv.AppendUint(b, version, 10)
	}
	if q == WatchList {
		b = append(b, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"...)
	}
	return append(b, selector...)
}
