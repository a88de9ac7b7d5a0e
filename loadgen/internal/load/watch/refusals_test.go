package watch

import (
	"bytes"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	var first, again atomic.Int64
	s := newStub(t, nil)
	s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if !isWatch(r) {
			return false
		}
		now := time.Now().UnixNano()
		if first.CompareAndSwap(0, now) {
			w.Header().Set("Retry-After", "3")
			refuse(w, http.StatusTooManyRequests, "slow down")
			return true
		}
		again.Store(now)
		return false
	}
	w, _ := flood(t, s, nil, nil)
	if waited := time.Duration(again.Load() - first.Load()); waited < 2900*time.Millisecond || w.Failed != 1 {
		t.Errorf("repeated after %v, %d failures; want 3 s and 1", waited, w.Failed)
	}
}

// A malformed stream is counted, and the watch is opened again. None of its events count.
func TestMalformedStreams(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"json", "protobuf"} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			whole := stubEvent{"ADDED", 9999, version(9999, nil)}.encode(t, encoding == "protobuf")
			flawed := bytes.Clone(whole)
			flawed[6] = 0xff
			bodies := [][]byte{
				[]byte("<html>bad gateway</html>"), whole[:len(whole)/2], flawed,
				stubEvent{"NEW", 9999, version(9999, nil)}.encode(t, encoding == "protobuf"),
				stubEvent{"ADDED", 0, &corev1.ConfigMap{}}.encode(t, encoding == "protobuf"),
			}
			var broken atomic.Int64
			s := newStub(t, nil)
			s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
				if !isWatch(r) {
					return false
				}
				n := int(broken.Add(1)) - 1
				if n < len(bodies) {
					_, _ = w.Write(bodies[n])
				}
				return n < len(bodies)
			}
			w, _ := flood(t, s, func(l *scenario.Load) { l.Encoding = encoding }, nil)
			if w.Malformed != int64(len(bodies)) || w.Lost+w.Duplicated+w.Reordered+w.Failed != 0 {
				t.Errorf("%d malformed, want %d and no other fault: %+v", w.Malformed, len(bodies), w)
			}
		})
	}
}

// Refusals of all kinds, some with endless bodies, are counted as failed attempts.
func TestRefusals(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := newStub(t, nil)
	s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if !isWatch(r) || n.Load() == 5 {
			return false
		}
		switch n.Add(1) {
		case 1:
			refuse(w, http.StatusInternalServerError, "no")
		case 2: // an endless one
			w.WriteHeader(http.StatusBadGateway)
			for r.Context().Err() == nil {
				if _, err := w.Write(bytes.Repeat([]byte("x"), 1000)); err != nil {
					break
				}
			}
		case 3:
			panic(http.ErrAbortHandler) // a reset
		case 4: // a stream that ends immediately
		case 5: // an ERROR event
			_, _ = w.Write([]byte(`{"type":"ERROR","object":{"kind":"Status","code":500}}`))
		}
		return true
	}
	w, _ := flood(t, s, nil, nil)
	// On a slow machine, the stream that ends immediately may last the second from which it counts as a watch.
	short := w.Failures[load.Truncated.String()]
	if w.Failed != 4+short || short > 1 || w.Lost+w.Duplicated+w.Reordered+w.Malformed != 0 {
		t.Errorf("%d failed attempts, want 5 and no other fault: %+v", w.Failed, w)
	}
}

// A watch is given up if the server never responds to its request, or does not end the watch in time.
func TestSilentServerIsGivenUp(t *testing.T) {
	t.Parallel()
	var silent atomic.Bool
	s := newStub(t, nil)
	s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if isWatch(r) && !silent.Swap(true) {
			<-r.Context().Done()
			return true
		}
		return false
	}
	w, err := New(s.target(), newLoad("watches", nil), pacer(t, 500), someObjects{3})
	must(t, err)
	must(t, w.Prepare(t.Context()))
	w.BeginPhase("storm", time.Now())
	start(t, w)
	await(t, "all watches but one", func() bool { return w.Open() == testWatches-1 })
	w.overdue(w.now() + h2conn.DialTimeout + answerTimeout + time.Second)
	await(t, "all watches", func() bool { return w.Open() == testWatches })
	if got := w.Results()["storm"]; got.Failed != 1 || got.Reconnects != 0 {
		t.Errorf("%d failed, %d reconnects; want 1 and 0", got.Failed, got.Reconnects)
	}
	s.bookmark()
	await(t, "bookmarks", func() bool { return w.Results()["storm"].Bookmarks == testWatches })
	w.overdue(w.now() + 2*listwatch.ShortestWatch + endGrace + time.Second)
	await(t, "all watches again", func() bool { return w.Results()["storm"].Reconnects == testWatches && w.Open() == testWatches })
}

// A storage that is being recreated, for example after a change of its CRD, refuses requests with 429. The watch waits
// for the given time and continues. The refusal is counted with the server's reason.
func TestRefusalsHaveTheServersReason(t *testing.T) {
	t.Parallel()
	var refused atomic.Int64
	s := newStub(t, nil)
	s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if !isWatch(r) || refused.Add(1) > 2 {
			return false
		}
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, "storage is (re)initializing")
		return true
	}
	w, _ := flood(t, s, nil, nil)
	if w.Failed != 2 || w.Failures["429"] != 2 || w.Refusals["429 storage is (re)initializing"] != 2 || w.Lost != 0 {
		t.Errorf("%d failed, %v, refusals %v, %d lost", w.Failed, w.Failures, w.Refusals, w.Lost)
	}
}

// A result holds only a limited number of different refusal messages.
func TestRefusalsAreFew(t *testing.T) {
	s := newWatchStats()
	for i := range 1000 {
		s.fail(load.Outcome(429), fmt.Sprintf("429 request %d", i))
	}
	if _, _, refusals := s.failed(); len(refusals) != maxRefusals+1 || refusals["other messages"] != 1000-maxRefusals {
		t.Errorf("%d messages: %v", len(refusals), refusals)
	}
}
