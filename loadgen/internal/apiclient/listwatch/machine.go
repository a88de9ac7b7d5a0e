package listwatch

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
)

// Machine decides, after each request of one list-then-watch, which request is next. Only one goroutine at a time may use it.
type Machine struct {
	// Backoff is the wait after consecutive failures.
	Backoff apiclient.Backoff
	// State is the request that reads the state again after a 410.
	State Question
	// Next is the current request, or the next one. The caller sets it to Watch when the initial events of a WatchList have
	// ended.
	Next Question
	// WaitExpired adds a wait even after the first of consecutive 410s. Without it many watches would list at the same time.
	WaitExpired bool
	// WaitLost adds a wait after a watch that was lost instead of ending in order.
	WaitLost bool

	failures int // consecutive failures
}

// End is how a request ended.
type End struct {
	// Up means that a watch was answered with 200.
	Up bool
	// Events is the number of events and bookmarks of a watch, and Lived how long it lasted.
	Events int
	Lived  time.Duration
	// Err is nil if the request ended in order. It wraps a *Refusal or an apierrors.StatusError if the server refused the
	// request with a status or an ERROR event.
	Err error
}

// Refusal is an unsuccessful response or an ERROR event.
type Refusal struct {
	Status     int
	RetryAfter time.Duration
}

func (e *Refusal) Error() string {
	return fmt.Sprintf("the API server answers %d %s", e.Status, http.StatusText(e.Status))
}

// refusal extracts the Refusal from an error. Its status is 0 if there was no refusal.
func refusal(err error) Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return *r
	}
	var r Refusal
	if s, ok := errors.AsType[*apierrors.StatusError](err); ok {
		seconds, _ := apierrors.SuggestsClientDelay(err)
		r = Refusal{int(s.ErrStatus.Code), time.Duration(seconds) * time.Second}
	}
	return r
}

// Verdict is how a request's end is classified.
type Verdict uint8

const (
	// Failed: the same request is made again, or a FreshList if a List is not possible.
	Failed Verdict = iota
	// Resumed: the watch continues from the last version that it saw.
	Resumed
	// Listed: a watch follows the list.
	Listed
	// Expired: the state must be read again (410).
	Expired
	// NoWatchList: the server does not support WatchList, so from now on the state is listed first.
	NoWatchList
)

// Ended sets Next and returns the wait before it. random is from 0 to 1.
func (m *Machine) Ended(e End, random float64) (v Verdict, wait time.Duration) {
	watched, refused := m.Next <= WatchList, refusal(e.Err)
	expired := refused.Status == http.StatusGone
	goesOn := e.Err == nil || refused.Status == 0 && !m.WaitLost && !errors.Is(e.Err, ErrMalformed)
	if e.Up && e.Events > 0 {
		m.failures = 0
	}
	switch {
	case !watched && e.Err == nil:
		m.Next = Watch
		return Listed, 0
	case m.Next == List && (expired || refused.Status == http.StatusGatewayTimeout):
		m.Next = FreshList // the version is too old to list, or newer than the server has
	case m.Next == WatchList && expired:
		v, m.Next = Expired, FreshList // the same request would fail again
	case watched && expired:
		v, m.Next = Expired, m.State
	case m.Next == WatchList && (refused.Status == http.StatusUnprocessableEntity || refused.Status == http.StatusBadRequest):
		m.State, m.Next = List, List
		return NoWatchList, 0
	case e.Up && goesOn && (e.Events > 0 || e.Lived >= TooShort):
		m.failures = 0
		return Resumed, 0
	}
	m.failures++
	// With a GOAWAY, the server has not begun to process the request.
	unsent := !e.Up && errors.Is(e.Err, h2conn.ErrGoAway)
	if m.failures == 1 && (unsent || v == Expired && !m.WaitExpired) {
		return v, 0
	}
	return v, max(m.Backoff.Wait(m.failures, random), refused.RetryAfter)
}
