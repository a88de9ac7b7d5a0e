// Package listwatch implements the common parts of clients that list objects and then watch them: which request to send
// next and how long to wait before it (Machine), the query of the request (AppendQuery), and the splitting of a body
// into events (Frames). It follows client-go's reflector (client-go/tools/cache/reflector.go).
//
// These parts start no goroutine and send nothing. Simulated nodes and the tens of thousands of watches of a load call
// them on the read loops of their connections. Package load/history calls them between its requests. Reflector sends
// the requests itself, for workloads and followed objects.
package listwatch

import (
	"errors"
	"strconv"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
)

const (
	// ShortestWatch is the minimum timeout of a watch. The maximum timeout is twice as long.
	ShortestWatch = 5 * time.Minute
	// TooShort is the minimum duration of a watch that delivers no events. If such a watch ends earlier, it counts as
	// failed.
	TooShort = time.Second
	// MaxEvent is the maximum size of a watch event in bytes, as in client-go (rest/watch, through serializer/streaming).
	MaxEvent = 16 << 20
)

// ErrMalformed means that a watch stream contains something other than valid events.
var ErrMalformed = errors.New("malformed stream")

// Backoff returns client-go's backoff after consecutive failures of a watch.
func Backoff() apiclient.Backoff {
	return apiclient.Backoff{First: 800 * time.Millisecond, Most: 30 * time.Second}
}

// Length returns a timeout for a watch, from `least` (if `random` is 0) to twice `least` (if `random` is 1).
func Length(least time.Duration, random float64) time.Duration {
	return least + time.Duration(random*float64(least))
}

// Question is a kind of request of a client that lists and then watches.
type Question uint8

const (
	// Watch requests the changes after a version.
	Watch Question = iota
	// WatchList requests the state as initial events, followed by the changes after it.
	WatchList
	// List requests the state from the server's cache, not older than the known version.
	List
	// FreshList requests the state with a consistent read.
	FreshList
)

// AppendQuery appends the query of a request. version is the newest known resourceVersion, or 0 if none is known.
// timeout is only for watches. selector holds further parameters, each preceded by "&".
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
