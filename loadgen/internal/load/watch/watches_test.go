package watch

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func TestFaithfulServerLosesNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*scenario.Load){
		"json":               nil,
		"protobuf":           func(l *scenario.Load) { l.Encoding = "protobuf" },
		"metadata":           func(l *scenario.Load) { l.Form = "metadata" },
		"a connection each":  func(l *scenario.Load) { l.Connect = "each" },
		"WatchList":          func(l *scenario.Load) { l.Start = "watchList" },
		"WatchList protobuf": func(l *scenario.Load) { l.Start, l.Encoding = "watchList", "protobuf" },
		"slow": func(l *scenario.Load) {
			l.Slow = scenario.SlowWatches{Fraction: 0.5, BytesPerSecond: 1 << 20, Window: 64 << 10}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, nil)
			target := s.target()
			registry := prometheus.NewRegistry()
			target.Registerer = registry
			for i := range 3 {
				s.change("flood-"+string(rune('0'+i)), "ADDED", nil)
			}
			st := startStorm(t, s, target, change)
			await(t, "writes", func() bool { return s.count(&s.patches) >= testWrites })
			s.bookmark()
			st.finish(t)
			l := st.watches.load
			initial := int64(0)
			bookmarks := int64(testWatches)
			if l.Start == "watchList" {
				initial = 4 * testWatches // three objects and the bookmark
				bookmarks += testWatches
			}
			await(t, "bookmarks", func() bool { return st.watches.Results()["storm"].Bookmarks == bookmarks })
			got := st.watches.Results()["storm"]
			if got.Lost+got.Duplicated+got.Reordered+got.Late+got.Failed+got.Reconnects+got.Relists+got.Malformed != 0 {
				t.Errorf("faults of a faithful server: %+v", got)
			}
			if got.Events != got.Delivered+testWatches+initial || got.Bytes < 50*got.Events {
				t.Errorf("%d events, want %d deliveries, %d bookmarks and %d of the beginning; %d bytes", got.Events, got.Delivered, testWatches, initial, got.Bytes)
			}
			timed := got.Delivered / testWatches * int64(testWatches-got.Slow)
			if got.Delivery.Count != timed || got.SlowestPerWatch.Count != int64(testWatches-got.Slow) || got.SlowestPerWatch.Max != got.Delivery.Max {
				t.Errorf("%d deliveries of %d timed, of %d watches", got.Delivery.Count, timed, got.SlowestPerWatch.Count)
			}
			if got.Slow != int(testWatches*l.Slow.Fraction) {
				t.Errorf("got %d slow watches", got.Slow)
			}
			if live := st.watches.Live(); live.Open != testWatches || live.Delivered != got.Delivered {
				t.Errorf("live: %+v", live)
			}
			checkMetrics(t, registry, got)
			checkAsked(t, st)
		})
	}
}

// checkAsked checks the requests with which the watches were opened.
func checkAsked(t *testing.T, st *storm) {
	t.Helper()
	st.mu.Lock()
	defer st.mu.Unlock()
	l := st.watches.load
	want := 2 // 7 watches, 5 streams each
	if l.Connect == "each" {
		want = testWatches
	}
	if len(st.conns) != want {
		t.Errorf("watches on %d connections, want %d: %v", len(st.conns), want, st.conns)
	}
	if got := strings.HasPrefix(st.accepted, protobuf.WatchType); got != (l.Encoding == "protobuf") {
		t.Errorf("encoding %s, but Accept: %s", l.Encoding, st.accepted)
	}
	if got := strings.Contains(st.accepted, "as=PartialObjectMetadata;"); got != (l.Form == "metadata") {
		t.Errorf("form %s, but Accept: %s", l.Form, st.accepted)
	}
	if l.Start == "list" && st.lists != 1 || l.Start == "watchList" && st.lists != 0 {
		t.Errorf("%d lists", st.lists)
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
	w, _ := flood(t, s, nil, nil)
	if w.Lost != dropped.Load() || w.Lost == 0 || w.Duplicated+w.Reordered != 0 || w.Lossy != 1 || w.WorstLost != w.Lost {
		t.Errorf("lost %d by %d watches, duplicated %d, reordered %d; want %d by 1, 0, 0", w.Lost, w.Lossy, w.Duplicated, w.Reordered, dropped.Load())
	}
}

// Bookmarks, which an API server sends forever, do not prolong a drain: they do not show that lost events will arrive.
func TestDrainEndsBesideBookmarks(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(s *stub) {
		s.deliver = func(n int, e stubEvent) []stubEvent {
			if n == 2 && e.kind == "MODIFIED" && e.rv%5 == 0 {
				return nil
			}
			return []stubEvent{e}
		}
	})
	st := startStorm(t, s, s.target(), nil)
	await(t, "some writes", func() bool { return s.count(&s.patches) >= testWrites })
	st.stopWrites()
	within, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var bookmarks sync.WaitGroup
	bookmarks.Go(func() {
		every := time.NewTicker(10 * time.Millisecond)
		defer every.Stop()
		for within.Err() == nil {
			s.bookmark()
			<-every.C
		}
	})
	defer bookmarks.Wait()
	defer cancel()
	if lost, err := st.watches.Drain(within, 250*time.Millisecond); err != nil || lost == 0 {
		t.Errorf("%d lost, %v", lost, err)
	}
	if lost, err := st.watches.Drain(within, time.Hour); err != nil || lost == 0 {
		t.Errorf("what was given up is waited for again: %d lost, %v", lost, err)
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
	w, _ := flood(t, s, nil, nil)
	if w.Duplicated != doubled.Load() || w.Duplicated == 0 || w.Lost+w.Reordered != 0 {
		t.Errorf("lost %d, duplicated %d, reordered %d; want 0, %d, 0", w.Lost, w.Duplicated, w.Reordered, doubled.Load())
	}
}

func TestSwappedEventsAreReordered(t *testing.T) {
	t.Parallel()
	var swapped atomic.Int64
	var held stubEvent // an event that is held back from watch 1
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
	w, _ := flood(t, s, nil, nil)
	// The last event that was held back may have had no successor to be swapped with.
	if w.Reordered != swapped.Load() || w.Reordered == 0 || w.Duplicated != 0 || w.Lost > 1 {
		t.Errorf("lost %d, duplicated %d, reordered %d; want at most 1, 0, %d", w.Lost, w.Duplicated, w.Reordered, swapped.Load())
	}
}

// Events of other clients' writes are checked too, as far as a single watch can judge them.
func TestForeignEventsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(s *stub) {
		s.deliver = func(n int, e stubEvent) []stubEvent {
			older := stubEvent{"MODIFIED", e.rv, version(e.rv-1, nil)}
			switch {
			case n == 0 && e.kind == "DELETED":
				return []stubEvent{e, e}
			case n == 1 && e.kind == "DELETED":
				return []stubEvent{e, older}
			case n == 2 && e.kind == "DELETED": // two objects that etcd deleted with one lease
				other := version(e.rv, nil)
				other.Name = "other"
				return []stubEvent{e, {"DELETED", e.rv, other}}
			}
			return []stubEvent{e}
		}
	})
	w, _ := flood(t, s, nil, func(*storm) { s.change("theirs", "DELETED", nil) })
	if w.Duplicated != 1 || w.Reordered != 1 || w.Lost != 0 {
		t.Errorf("lost %d, duplicated %d, reordered %d; want 0, 1, 1", w.Lost, w.Duplicated, w.Reordered)
	}
}

// Delivery of writes that were rejected, or whose response was lost, is not expected. If they happened anyway, their
// delivery is not a fault.
func TestWritesWithoutAcknowledgementAreNotExpected(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := newStub(t, nil)
	s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch {
			return false
		}
		switch n.Add(1) % 5 {
		case 0: // rejected
			refuse(w, http.StatusTooManyRequests, "slow down")
			return true
		case 1: // done, and the response lost
			s.serveUnanswered(t, r)
			panic(http.ErrAbortHandler)
		case 2: // executed, but the response is an error
			s.serveUnanswered(t, r)
			refuse(w, http.StatusInternalServerError, "etcd timed out")
			return true
		case 3: // executed, but the response is invalid
			s.serveUnanswered(t, r)
			_, _ = w.Write([]byte(`{"metadata":{"resourceVersion":"12`))
			return true
		}
		return false
	}
	w, acknowledged := flood(t, s, nil, nil)
	if acknowledged == 0 || w.Lost+w.Duplicated+w.Reordered != 0 {
		t.Errorf("%d acknowledged, faults: %+v", acknowledged, w)
	}
	if w.Events <= w.Delivered {
		t.Errorf("%d events and %d deliveries; unacknowledged writes have events too", w.Events, w.Delivered)
	}
}

// Deliveries belong to the phase of their write, other events to the phase in which they arrived.
func TestPhasesAreKeptApart(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	st := startStorm(t, s, s.target(), nil)
	await(t, "some writes", func() bool { return s.count(&s.patches) >= testWrites })
	got, acknowledged := st.finish(t)
	st.watches.BeginPhase("rest", time.Now())
	s.bookmark()
	await(t, "bookmarks", func() bool { return st.watches.Results()["rest"].Bookmarks == testWatches })
	rest, after := st.watches.Results()["rest"], st.watches.Results()["storm"]
	if rest.Expected != 0 || rest.Events != testWatches || rest.Open != testWatches {
		t.Errorf("the phase after: %+v", rest)
	}
	if after.Expected != acknowledged*testWatches || after.Delivered != got.Delivered || after.Open != testWatches || after.Bookmarks != 0 {
		t.Errorf("the phase of the writes: %+v, want %+v", after, got)
	}
	st.stopWatches()
	if end := st.watches.Results(); end["rest"].Open != testWatches || end["storm"].Delivered != got.Delivered {
		t.Errorf("after the end: %+v", end)
	}
	if st.watches.Open() != 0 || st.watches.Backlog() != 0 {
		t.Errorf("%d watches were open at the end", st.watches.Open())
	}
}

// The external latency leaves out the time in which the generator was stopped.
func TestExternalDeliveryLeavesOutStall(t *testing.T) {
	t.Parallel()
	for name, stopped := range map[string]bool{"run on time": false, "stopped": true} {
		s := newStub(t, nil)
		target := s.target()
		if stopped { // its first tick is due and never comes
			target.Stalls = &stall.Meter{}
			target.Stalls.Ticked(time.Now(), time.Now(), time.Now())
		}
		st := startStorm(t, s, target, nil)
		await(t, "some writes", func() bool { return s.count(&s.patches) >= testWrites })
		got, _ := st.finish(t)
		switch external := got.External; {
		case external.Count != got.Delivery.Count || got.Delivery.Max == 0:
			t.Errorf("%s: %d deliveries, %d external, the slowest after %v s", name, got.Delivery.Count, external.Count, got.Delivery.Max)
		case stopped && external.Max > 0, !stopped && external.Max != got.Delivery.Max:
			t.Errorf("%s: of at most %v s %v were external", name, got.Delivery.Max, external.Max)
		}
	}
}
