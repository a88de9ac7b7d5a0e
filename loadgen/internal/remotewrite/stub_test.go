package remotewrite_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/compression"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
)

// receiver is a stub of a receiver that stores the samples that it accepts.
type receiver struct {
	t   *testing.T
	url string
	// answer decides about a request. If it returns false, it has sent the response, and the samples are not stored. Nil
	// accepts all requests.
	answer atomic.Pointer[func(w http.ResponseWriter, r *http.Request) (took bool)]
	asked  chan struct{} // has a value for each request, unless it is full

	mu      sync.Mutex
	samples map[string][]promql.FPoint // by series
	headers http.Header                // of the last request
	changed *sync.Cond
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t, asked: make(chan struct{}, 1), samples: map[string][]promql.FPoint{}}
	r.changed = sync.NewCond(&r.mu)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL + "/api/v1/write"
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	select {
	case r.asked <- struct{}{}:
	default:
	}
	if answer := r.answer.Load(); answer != nil && !(*answer)(w, req) {
		return
	}
	if err == nil {
		body, err = compression.Decode(compression.Snappy, body, nil)
	}
	var decoded prompb.WriteRequest
	if err == nil {
		err = decoded.Unmarshal(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.headers = req.Header
	for _, s := range decoded.Timeseries {
		b := labels.NewScratchBuilder(len(s.Labels))
		name := s.ToLabels(&b, nil).String()
		for _, p := range s.Samples {
			if all := r.samples[name]; len(all) > 0 && all[len(all)-1].T >= p.Timestamp {
				r.t.Errorf("%s: a sample at %d after one at %d", name, p.Timestamp, all[len(all)-1].T)
			}
			r.samples[name] = append(r.samples[name], promql.FPoint{T: p.Timestamp, F: p.Value})
		}
	}
	r.changed.Broadcast()
	w.WriteHeader(http.StatusNoContent)
}

// answers sets the response to all later requests; nil accepts all samples.
func (r *receiver) answers(f func(http.ResponseWriter, *http.Request) bool) {
	if f == nil {
		r.answer.Store(nil)
		return
	}
	r.answer.Store(&f)
}

// await waits until it has a sample of a series at a time.
func (r *receiver) await(series string, at int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		for _, p := range r.samples[series] {
			if p.T == at {
				return
			}
		}
		r.changed.Wait()
	}
}

// recording is a recorder of one component, by a clock that the test moves.
type recording struct {
	*scrape.Recorder
	t    *testing.T
	etcd *archivetest.Component
	now  atomic.Int64 // ms
}

func record1(t *testing.T) *recording {
	t.Helper()
	r := &recording{t: t, etcd: archivetest.NewComponent()}
	r.now.Store(1_800_000_000_007)
	server := httptest.NewServer(r.etcd)
	t.Cleanup(server.Close)
	var err error
	r.Recorder, err = scrape.Open(t.TempDir(), []control.ScrapeTarget{{Job: "etcd", Instance: "etcd-0", URL: server.URL}}, scrape.Options{
		Now: func() time.Time { return time.UnixMilli(r.now.Load()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// pass advances the clock.
func (r *recording) pass(d time.Duration) { r.now.Add(d.Milliseconds()) }

func (r *recording) scrape() int64 {
	r.t.Helper()
	at, err := r.ScrapeNow(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return at.UnixMilli()
}

// contents are the samples that were recorded, with another label.
func (r *recording) contents(label, v string) (map[string][]promql.FPoint, int64) {
	r.t.Helper()
	all, n := map[string][]promql.FPoint{}, int64(0)
	err := archive.Stream(r.t.Context(), archive.WithLabels(r.Live(), map[string]string{label: v}), 0, 1<<50, func(l labels.Labels, points []promql.FPoint) error {
		all[l.String()] = append([]promql.FPoint{}, points...)
		n += int64(len(points))
		return nil
	}, archive.Named())
	if err != nil {
		r.t.Fatal(err)
	}
	return all, n
}

// bits writes samples so that staleness markers, which are NaN, can be compared.
func bits(all map[string][]promql.FPoint) map[string]string {
	out := map[string]string{}
	for name, points := range all {
		for _, p := range points {
			out[name] += fmt.Sprintf("%d:%x ", p.T, math.Float64bits(p.F))
		}
	}
	return out
}
