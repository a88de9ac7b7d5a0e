package traffic

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	testWatches = 7
	testWrites  = 60
)

// flood opens watches on a stub, makes writes, and gives what was seen. during
// is called when the watches are open and some writes are acknowledged.
func flood(t *testing.T, s *stub, during func(w *Watches)) (result.Watches, result.Changes) {
	t.Helper()
	w, c, _, stopChanges := startFlood(t, s, s.target())
	await(t, "some writes", func() bool { return s.count(&s.patches) >= testWrites/3 })
	if during != nil {
		during(w)
	}
	enough := s.count(&s.patches) + testWrites
	await(t, "all writes", func() bool { return s.count(&s.patches) >= enough })
	stopChanges()
	if _, err := w.Drain(context.Background(), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	return w.Results()["storm"], c.Results()["storm"]
}

func startFlood(t *testing.T, s *stub, target Target) (w *Watches, c *Changes, stopWatches, stopChanges func()) {
	t.Helper()
	w, err := NewWatches(target, load("watches", func(l *scenario.Load) { l.Count = testWatches }))
	must(t, err)
	c, err = NewChanges(target, load("changes", func(l *scenario.Load) { l.Rate, l.Watches = 300, "watches" }), w)
	must(t, err)
	for _, l := range []Load{w, c} {
		must(t, l.Prepare(context.Background()))
		l.BeginPhase("storm", time.Now())
	}
	stopWatches = start(t, w)
	<-w.AllOpen()
	return w, c, stopWatches, start(t, c)
}

// checkAccount checks what must hold whatever happened.
func checkAccount(t *testing.T, w result.Watches, c result.Changes) {
	t.Helper()
	if want := c.Acknowledged * testWatches; w.Expected != want || want == 0 {
		t.Errorf("expected %d deliveries, want %d writes x %d watches", w.Expected, c.Acknowledged, testWatches)
	}
	if w.Lost != w.Expected-w.Delivered {
		t.Errorf("lost %d, but %d of %d delivered", w.Lost, w.Delivered, w.Expected)
	}
	if w.Wanted != testWatches || w.Open != testWatches || w.OpenLatency.Count != testWatches {
		t.Errorf("%d of %d watches open, %d openings timed; want all %d", w.Open, w.Wanted, w.OpenLatency.Count, testWatches)
	}
}

func TestAFaithfulServerLosesNothing(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	target := s.target()
	registry := prometheus.NewRegistry()
	target.Registerer = registry
	w, c, _, stopChanges := startFlood(t, s, target)
	await(t, "writes", func() bool { return s.count(&s.patches) >= testWrites })
	s.bookmark()
	stopChanges()
	lost, err := w.Drain(context.Background(), 2*time.Second)
	must(t, err)
	await(t, "bookmarks", func() bool { return w.Results()["storm"].Bookmarks == testWatches })
	got, changes := w.Results()["storm"], c.Results()["storm"]
	checkAccount(t, got, changes)
	if lost+got.Lost+got.Duplicated+got.Reordered+got.Late+got.Failed+got.Reconnects+got.Relists != 0 {
		t.Errorf("faults of a faithful server: %+v", got)
	}
	if got.Events != got.Delivered+testWatches {
		t.Errorf("%d events, want %d deliveries and %d bookmarks", got.Events, got.Delivered, testWatches)
	}
	if got.Delivery.Count != got.Delivered || got.Delivery.Max > 10 {
		t.Errorf("%d deliveries timed up to %v s, want %d under 10 s", got.Delivery.Count, got.Delivery.Max, got.Delivered)
	}
	if live := w.Live(); live.Open != testWatches || live.Delivered != got.Delivered {
		t.Errorf("live: %+v", live)
	}
	if n, err := testutil.GatherAndCount(registry, "stormglass_watch_delivery_seconds", "stormglass_watches_open", "stormglass_requests_total"); err != nil || n != 3 {
		t.Errorf("%d of 3 series, error %v", n, err)
	}
	if got := testutil.ToFloat64(w.metrics.delivered); int64(got) != w.Results()["storm"].Delivered {
		t.Errorf("stormglass_watch_delivered_total is %v", got)
	}
}

func TestDroppedEventsAreLost(t *testing.T) {
	t.Parallel()
	var dropped atomic.Int64
	s := newStub(t, func(s *stub) {
		s.deliver = func(n int, e stubEvent) []stubEvent {
			if n == 2 && e.kind == "MODIFIED" && e.rv%5 == 0 {
				dropped.Add(1)
				return nil
			}
			return []stubEvent{e}
		}
	})
	w, c := flood(t, s, nil)
	checkAccount(t, w, c)
	if w.Lost != dropped.Load() || w.Lost == 0 || w.Duplicated+w.Reordered != 0 {
		t.Errorf("lost %d, duplicated %d, reordered %d; want %d, 0, 0", w.Lost, w.Duplicated, w.Reordered, dropped.Load())
	}
}

func TestDoubledEventsAreDuplicates(t *testing.T) {
	t.Parallel()
	var doubled atomic.Int64
	s := newStub(t, func(s *stub) {
		s.deliver = func(n int, e stubEvent) []stubEvent {
			if n != 3 || e.kind != "MODIFIED" || e.rv%4 != 0 {
				return []stubEvent{e}
			}
			doubled.Add(1)
			return []stubEvent{e, e}
		}
	})
	w, c := flood(t, s, nil)
	checkAccount(t, w, c)
	if w.Duplicated != doubled.Load() || w.Duplicated == 0 || w.Lost+w.Reordered != 0 {
		t.Errorf("lost %d, duplicated %d, reordered %d; want 0, %d, 0", w.Lost, w.Duplicated, w.Reordered, doubled.Load())
	}
}

func TestSwappedEventsAreReordered(t *testing.T) {
	t.Parallel()
	var swapped atomic.Int64
	var held stubEvent // by watch 1 alone
	s := newStub(t, func(s *stub) {
		s.deliver = func(n int, e stubEvent) []stubEvent {
			switch {
			case n != 1 || e.kind != "MODIFIED":
			case held.kind != "":
				older := held
				held = stubEvent{}
				swapped.Add(1)
				return []stubEvent{e, older}
			case e.rv%7 == 0:
				held = e
				return nil
			}
			return []stubEvent{e}
		}
	})
	w, c := flood(t, s, nil)
	checkAccount(t, w, c)
	// The last one held back may have had no successor to be swapped with.
	if w.Reordered != swapped.Load() || w.Reordered == 0 || w.Duplicated != 0 || w.Lost > 1 {
		t.Errorf("lost %d, duplicated %d, reordered %d; want at most 1, 0, %d", w.Lost, w.Duplicated, w.Reordered, swapped.Load())
	}
}

func TestAnEndedWatchResumesWithNothingMissed(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	w, c := flood(t, s, func(w *Watches) {
		s.end(false)
		await(t, "all watches again", func() bool { return s.count(&s.watches) == 2*testWatches })
	})
	checkAccount(t, w, c)
	if w.Reconnects != testWatches || w.Relists != 0 || w.Lost+w.Duplicated+w.Reordered != 0 {
		t.Errorf("%d reconnects, want %d and no fault: %+v", w.Reconnects, testWatches, w)
	}
}

// A stream that breaks within an event is resumed from the event before.
func TestALostConnectionResumesWithNothingMissed(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	w, c := flood(t, s, func(*Watches) {
		s.CloseClientConnections()
		await(t, "all watches again", func() bool { return s.count(&s.watches) >= 2*testWatches })
	})
	checkAccount(t, w, c)
	if w.Reconnects != testWatches || w.Lost+w.Duplicated+w.Reordered != 0 {
		t.Errorf("%d reconnects, want %d and no fault: %+v", w.Reconnects, testWatches, w)
	}
}

func TestGoneIsRelisted(t *testing.T) {
	t.Parallel()
	for name, inBand := range map[string]bool{"status 410": false, "ERROR event": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, func(s *stub) { s.inBand = inBand })
			w, c := flood(t, s, func(*Watches) {
				s.end(true)
				await(t, "all watches again", func() bool { return s.count(&s.watches) >= 3*testWatches })
			})
			checkAccount(t, w, c)
			if w.Relists < testWatches || w.Duplicated+w.Reordered != 0 {
				t.Errorf("%d relists, want at least %d and no false fault: %+v", w.Relists, testWatches, w)
			}
		})
	}
}

// Writes that were rejected, or whose answer was lost, are owed by nobody; if
// they happened all the same their delivery is no fault.
func TestWritesWithoutAcknowledgementAreNotExpected(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := newStub(t, nil)
	s.mu.Lock()
	s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch {
			return false
		}
		switch n.Add(1) % 4 {
		case 0: // rejected
			answer(w, http.StatusTooManyRequests, status(http.StatusTooManyRequests, "slow down"))
			return true
		case 1: // done, and the answer lost
			s.applyUnanswered(r)
			panic(http.ErrAbortHandler)
		case 2: // done, and answered with an error
			s.applyUnanswered(r)
			answer(w, http.StatusInternalServerError, status(http.StatusInternalServerError, "etcd timed out"))
			return true
		}
		return false
	}
	s.mu.Unlock()
	w, c := flood(t, s, nil)
	checkAccount(t, w, c)
	if c.Outcomes["429"] == 0 || c.Outcomes["500"] == 0 || c.Outcomes["reset"] == 0 || c.Acknowledged != c.Outcomes["200"] {
		t.Errorf("outcomes %v, acknowledged %d", c.Outcomes, c.Acknowledged)
	}
	if w.Lost+w.Duplicated+w.Reordered != 0 {
		t.Errorf("faults: %+v", w)
	}
	if w.Events <= w.Delivered {
		t.Errorf("%d events and %d deliveries; the unacknowledged writes were told too", w.Events, w.Delivered)
	}
}

// A stream that is no JSON, or ends within a document, is a failure, not a
// crash, and no event of it is taken.
func TestBrokenStreams(t *testing.T) {
	t.Parallel()
	var broken atomic.Int64
	s := newStub(t, nil)
	s.mu.Lock()
	s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") != "1" || broken.Add(1) > testWatches {
			return false
		}
		line := stubEvent{kind: "ADDED", object: stubObject{Metadata: stubMetadata{ResourceVersion: "9999"}}}.line()
		switch broken.Load() % 3 {
		case 0:
			_, _ = w.Write([]byte("<html>bad gateway</html>"))
		case 1:
			_, _ = w.Write(line[:len(line)/2])
		case 2:
			answer(w, http.StatusInternalServerError, status(http.StatusInternalServerError, "no"))
		}
		return true
	}
	s.mu.Unlock()
	w, c := flood(t, s, nil)
	if w.Lost+w.Duplicated+w.Reordered != 0 || w.Open != testWatches || c.Acknowledged == 0 {
		t.Errorf("after broken streams: %+v", w)
	}
	if w.Failed < testWatches/3 {
		t.Errorf("%d failures counted of %d broken streams", w.Failed, testWatches)
	}
}
