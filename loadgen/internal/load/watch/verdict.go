package watch

import (
	"errors"
	"net/http"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// End is the end of the stream, or of the attempt to open one.
func (v *watcher) End(err error) {
	w := v.set
	v.deadline.Store(0)
	if v.lane != nil {
		v.lane.full.Store(false)
	}
	up := v.up
	if up {
		v.up = false
		w.open.Add(-1)
	}
	if w.closing.Load() {
		return
	}
	if v.failed != nil {
		err = v.failed
	} else if err == nil && !v.scan.idle() {
		err = malformed("a stream that ends within an event")
	}
	delay := v.verdict(err, up)
	if delay == 0 {
		w.queue.push(v)
		return
	}
	w.pushLater(v, delay)
}

// verdict decides what the watch asks next, and after what wait.
func (v *watcher) verdict(err error, up bool) time.Duration {
	w, stats := v.set, v.set.phases.Now()
	var refused *refusal
	errors.As(err, &refused)
	lived := w.now() - v.began
	if up && (err != nil || lived < apiclient.ShortestWatch) {
		w.samples.Broke()
	}
	if up && v.events > 0 {
		v.tries = 0
	}
	switch {
	case v.asked >= askList && err == nil && v.rv > 0:
		w.see(v.rv)
		v.countRelist()
		v.next = askWatch // relisting stays: what follows is no reconnection
		return 0
	case v.asked == askList && refused != nil && (refused.status == http.StatusGone || refused.status == http.StatusGatewayTimeout):
		// The version is too old to list, or newer than the server has.
		v.next = askFreshList
	case refused != nil && refused.status == http.StatusGone && v.asked < askList:
		v.relisting = true
		if v.next = w.first(); v.asked == askWatchList {
			v.next = askFreshList // asked for again, it would say the same
		}
		return v.fail(0)
	case v.asked == askWatchList && refused != nil && (refused.status == http.StatusUnprocessableEntity || refused.status == http.StatusBadRequest):
		// As client-go does, for good: the server has no WatchList.
		w.listFirst.Store(true)
		v.next = w.first()
		return 0
	case errors.Is(err, errMalformed):
		stats.malformed.Add(1)
		w.all.malformed.Add(1)
		return v.fail(0)
	case up && refused == nil && (v.events > 0 || lived >= apiclient.TooShort):
		// The server ended it, or the connection was lost: resumed at once.
		v.tries = 0
		return 0
	case !up && errors.Is(err, h2conn.ErrGoAway) && v.tries == 0:
		stats.fail(load.GoAway)
		v.tries++
		return 0 // refused by a connection that goes away, and never begun
	}
	if refused != nil {
		stats.fail(load.Outcome(refused.status))
		return v.fail(refused.retryAfter)
	}
	stats.fail(outcomeOf(err))
	return v.fail(0)
}

// outcomeOf is the kind of failure of an attempt that got no refusal.
func outcomeOf(err error) load.Outcome {
	switch {
	case err == nil:
		return load.Truncated // ended in order, before it was a watch
	case errors.Is(err, errOverdue):
		return load.TimedOut
	}
	return load.OutcomeOf(err)
}

// fail is the wait after a failure, at least as long as the server asks.
func (v *watcher) fail(retryAfter time.Duration) time.Duration {
	v.tries++
	return max(apiclient.WatchBackoff(v.tries, v.set.random()), retryAfter)
}
