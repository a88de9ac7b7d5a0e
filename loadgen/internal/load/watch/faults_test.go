package watch

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") == "true" }

func TestEndedWatchResumesWithNothingMissed(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	w, _ := flood(t, s, nil, func(*storm) {
		s.bookmark() // so that each watch has an event: a short watch without events counts as failed
		s.end(false)
		await(t, "all watches again", func() bool { return s.count(&s.watches) == 2*testWatches })
	})
	if w.Reconnects != testWatches || w.Relists != 0 || w.Lost+w.Duplicated+w.Reordered+w.Malformed != 0 {
		t.Errorf("%d reconnects, want %d and no fault: %+v", w.Reconnects, testWatches, w)
	}
}

// A stream that breaks within an event is resumed from the previous event.
func TestLostConnectionResumesWithNothingMissed(t *testing.T) {
	t.Parallel()
	for _, connect := range []string{"shared", "each"} {
		t.Run(connect, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, nil)
			w, _ := flood(t, s, func(l *scenario.Load) { l.Connect = connect }, func(*storm) {
				s.loseConnections()
				await(t, "all watches again", func() bool { return s.count(&s.watches) >= 2*testWatches })
			})
			if w.Reconnects != testWatches || w.Lost+w.Duplicated+w.Reordered+w.Malformed != 0 {
				t.Errorf("%d reconnects, want %d and no fault: %+v", w.Reconnects, testWatches, w)
			}
		})
	}
}

// On a connection that the server is closing, watches continue until they end, and are resumed over another connection. Go's
// server sends GOAWAY for this header.
func TestGoAwayResumesWithNothingMissed(t *testing.T) {
	t.Parallel()
	var told atomic.Bool
	s := newStub(t, nil)
	s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if isWatch(r) && !told.Swap(true) {
			w.Header().Set("Connection", "close")
		}
		return false
	}
	w, _ := flood(t, s, nil, func(*storm) {
		s.bookmark()
		s.end(false)
		await(t, "all watches again", func() bool { return s.count(&s.watches) >= 2*testWatches })
	})
	if w.Reconnects != testWatches || w.Lost+w.Duplicated+w.Reordered != 0 {
		t.Errorf("%d reconnects, want %d and no fault: %+v", w.Reconnects, testWatches, w)
	}
}

func TestGoneIsRelisted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		inBand bool
		start  string
	}{
		"status 410": {false, "list"}, "ERROR event": {true, "list"}, "with WatchList": {false, "watchList"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, func(s *stub) { s.inBand = c.inBand })
			lists := 0
			w, _ := flood(t, s, func(l *scenario.Load) { l.Start = c.start }, func(*storm) {
				lists = s.count(&s.lists)
				s.end(true)
				await(t, "all watches again", func() bool { return s.count(&s.watches) >= 3*testWatches })
			})
			resumed := int64(0)
			if c.inBand { // the server accepted the stream and then reported the error in it
				resumed = testWatches
			}
			if w.Relists != testWatches || w.Reconnects != resumed || w.Duplicated+w.Reordered != 0 {
				t.Errorf("%d relists and %d reconnects, want %d, and no false fault: %+v", w.Relists, w.Reconnects, testWatches, w)
			}
			if made := s.count(&s.lists) - lists; c.start == "list" && made != testWatches || c.start == "watchList" && made != 0 {
				t.Errorf("%d lists", made)
			}
		})
	}
}

// If a server does not support WatchList, every watch makes its own list.
func TestServerWithoutWatchListIsListed(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(s *stub) { s.noWatchList = true })
	w, _ := flood(t, s, func(l *scenario.Load) { l.Start = "watchList" }, nil)
	if lists := s.count(&s.lists); lists != testWatches || w.Failed+w.Lost+w.Relists+w.Reconnects != 0 {
		t.Errorf("%d lists, want %d and no fault: %+v", lists, testWatches, w)
	}
}

// If the server cannot serve a state for the known version, the watch requests
// one without a version.
func TestExpiredStateIsReadAgain(t *testing.T) {
	t.Parallel()
	for start, failed := range map[string]int64{"list": testWatches, "watchList": 0} { // a watch's 410 is a relist
		t.Run(start, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, nil)
			s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
				query := r.URL.Query()
				states := r.Method == http.MethodGet && (!isWatch(r) || query.Get("sendInitialEvents") != "")
				if states && query.Get("resourceVersion") != "" {
					refuse(w, http.StatusGone, "too old resource version")
					return true
				}
				return false
			}
			w, _ := flood(t, s, func(l *scenario.Load) { l.Start = start }, func(*storm) {
				s.end(true)
				await(t, "all watches again", func() bool { return s.count(&s.watches) >= 3*testWatches })
			})
			if w.Relists != testWatches || w.Failed != failed || w.Reconnects != 0 {
				t.Errorf("%d relists, %d failed attempts, %d reconnects; want %d, %d, 0", w.Relists, w.Failed, w.Reconnects, testWatches, failed)
			}
		})
	}
}

// A slow consumer that reads nothing receives as much as its window holds; the rest counts as missing. It does not delay the
// other watches.
func TestSlowConsumersHoldTheServerBack(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(s *stub) {
		s.deliver = func(_ int, e stubEvent) []stubEvent {
			o := e.object.(*corev1.ConfigMap).DeepCopy()
			o.Data = map[string]string{"payload": strings.Repeat("x", 8<<10)}
			return []stubEvent{{e.kind, e.rv, o}}
		}
	})
	w, acknowledged := flood(t, s, func(l *scenario.Load) {
		l.Slow = scenario.SlowWatches{Fraction: 0.15, Window: 64 << 10}
	}, nil)
	if w.Slow != 1 || w.Lossy != 1 || w.Lost < acknowledged-8 || w.Lost > acknowledged {
		t.Errorf("%d slow watches, %d of them lost %d of %d writes; the window holds 8", w.Slow, w.Lossy, w.Lost, acknowledged)
	}
	if w.Delivery.Count != acknowledged*(testWatches-1) {
		t.Errorf("%d deliveries timed, want only deliveries to watches that are not slow: %d", w.Delivery.Count, acknowledged*(testWatches-1))
	}
}

// Run fails if it cannot list the state to start from.
func TestRefusedListIsAnError(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		refuse(w, http.StatusForbidden, "configmaps is forbidden")
		return true
	}
	w, err := New(s.target(), newLoad("watches", nil), pacer(t, 500), someObjects{3})
	must(t, err)
	must(t, w.Prepare(t.Context()))
	if err := w.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "list configmaps: 403: configmaps is forbidden (the user needs") {
		t.Errorf("the error: %v", err)
	}
}

// Not parallel: it counts goroutines.
func TestNothingIsLeftRunning(t *testing.T) {
	before := runtime.NumGoroutine()
	s := newStub(t, nil)
	st := startStorm(t, s, s.target(), nil)
	await(t, "writes", func() bool { return s.count(&s.patches) >= testWrites })
	st.finish(t)
	if n := len(st.watches.connections); runtime.NumGoroutine() > before+1000 || n != 2 {
		t.Errorf("got %d connections for %d watches", n, testWatches)
	}
	st.stopWatches()
	s.CloseClientConnections()
	s.Close()
	await(t, "all goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}

// A run ends whenever it is stopped.
func TestRunEndsWhenItIsStopped(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if isWatch(r) {
			refuse(w, http.StatusServiceUnavailable, "not now")
		}
		return isWatch(r)
	}
	w, err := New(s.target(), newLoad("watches", nil), pacer(t, 500), someObjects{3})
	must(t, err)
	must(t, w.Prepare(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	await(t, "refusals", func() bool {
		return len(locked(s, func() []string { return s.queries })) > testWatches/2
	})
	cancel()
	must(t, <-ended)
}
