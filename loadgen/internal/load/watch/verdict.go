package watch

import (
	"errors"
	"fmt"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"
	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// End handles the end of the stream, or a failed attempt to open the stream. It schedules the next attempt.
func (v *watcher) End(err error) {
	w := v.set
	v.deadline.Store(0)
	if v.connection != nil {
		v.connection.full.Store(false)
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
	} else if v.refusal != nil {
		err = v.refusal
	} else if err == nil && !v.scan.idle() {
		err = malformed("the stream ends within an event")
	}
	delay := v.verdict(err, up)
	if delay == 0 {
		w.queue <- v
		return
	}
	v.timer.Store(time.AfterFunc(delay, func() { w.queue <- v }))
}

// verdict counts how an attempt ended, and returns the wait before the next attempt. `up` means that the watch was
// established.
func (v *watcher) verdict(err error, up bool) time.Duration {
	w, stats := v.set, v.set.phases.Now()
	end := listwatch.End{Up: up, Events: v.events, Lived: w.now() - v.began, Err: err}
	if v.asked >= listwatch.List && err == nil && v.rv == 0 {
		end.Err = h2conn.ErrTruncated
	}
	if up && (err != nil || end.Lived < listwatch.ShortestWatch) {
		w.samples.Broke()
	}
	v.machine.State = w.state()
	verdict, wait := v.machine.Ended(end, w.random())
	switch {
	case verdict == listwatch.Listed:
		w.see(v.rv)
		v.countRelist() // relisting stays true, so that the next watch does not count as a reconnection
	case verdict == listwatch.Expired:
		v.relisting = true
	case verdict == listwatch.NoWatchList:
		w.listFirst.Store(true) // permanently, as in client-go
	case verdict == listwatch.Resumed:
	case errors.Is(err, listwatch.ErrMalformed):
		stats.malformed.Add(1)
		w.all.malformed.Add(1)
	default:
		stats.fail(outcomeOf(err), v.message())
	}
	return wait
}

// message returns the status and the server's message of a refusal, or "" if there was no refusal or the refusal had no
// body.
func (v *watcher) message() string {
	if v.refusal == nil || len(v.refused) == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", v.refusal.Status, load.Message(v.refusal.Status, v.refused))
}

func outcomeOf(err error) load.Outcome {
	refused, ok := errors.AsType[*listwatch.Refusal](err)
	switch {
	case ok:
		return load.Outcome(refused.Status)
	case err == nil:
		return load.Truncated // the stream ended without an error before the watch was established
	case errors.Is(err, errOverdue):
		return load.TimedOut
	}
	return load.OutcomeOf(err)
}
