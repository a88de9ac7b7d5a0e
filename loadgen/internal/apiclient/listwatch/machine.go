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

// Machine decides which request follows when a client lists and then watches. It is not safe for concurrent use.
type Machine struct {
	// Backoff computes the waits after consecutive failures.
	Backoff apiclient.Backoff
	// State is the kind of request with which the client reads the current state again after a 410.
	State Question
	// Next is the kind of the request in progress, or of the next request if no request is in progress. When the
	// initial events of a WatchList have ended, the caller must set Next to Watch.
	Next Question
	// WaitExpired makes the client wait even after the first of consecutive 410s, so that many watches do not list at
	// the same time.
	WaitExpired bool
	// WaitLost makes the client wait after a watch that ended with an error.
	WaitLost bool

	failures int // number of consecutive failures
}

// End describes how a request ended.
type End struct {
	// Up means that the request was a watch and the response had the status 200.
	Up bool
	// Events is the number of events of a watch, including bookmarks. Lived is how long the watch lasted.
	Events int
	Lived  time.Duration
	// Err is nil if the request succeeded or the watch ended normally. If the server refused the request with a status
	// or an ERROR event, Err wraps a *Refusal or an apierrors.StatusError.
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

// refusal returns the Refusal or apierrors.StatusError that err wraps. Without one, the result has the status 0.
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

// Verdict classifies the end of a request.
type Verdict uint8

const (
	// Failed means that the client must repeat the request, or send a FreshList if the server cannot serve a List.
	Failed Verdict = iota
	// Resumed means that a watch ended normally, and that the next one continues from the newest version seen.
	Resumed
	// Listed means that a list succeeded. A watch follows.
	Listed
	// Expired means that the server answered a watch with 410. The client must read the state again.
	Expired
	// NoWatchList means that the server does not support WatchList. The client must then read the state with a List.
	NoWatchList
)

// Ended records the end of the request Next, and sets Next to the request that follows. It returns the wait before that
// request. `random`, from 0 to 1, lengthens the wait (see Backoff.Wait).
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
		m.Next = FreshList // the server no longer has this version, or does not have it yet
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
	// After GOAWAY, the server has not processed the request.
	unsent := !e.Up && errors.Is(e.Err, h2conn.ErrGoAway)
	if m.failures == 1 && (unsent || v == Expired && !m.WaitExpired) {
		return v, 0
	}
	return v, max(m.Backoff.Wait(m.failures, random), refused.RetryAfter)
}
