package run

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/util/compression"

	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/observe"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/remotewrite"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/internal/scrape/promimport"
)

// taker is a remote-write receiver.
type taker struct {
	url  string
	sent chan struct{} // receives a value after each request, if there is room

	mu     sync.Mutex
	series map[string]int // samples by series
}

func newTaker(t *testing.T) *taker {
	x := &taker{series: map[string]int{}, sent: make(chan struct{}, 1)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			body, err = compression.Decode(compression.Snappy, body, nil)
		}
		var all prompb.WriteRequest
		if err == nil {
			err = all.Unmarshal(body)
		}
		if err != nil {
			t.Error(err)
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, s := range all.Timeseries {
			b := labels.NewScratchBuilder(0)
			x.series[s.ToLabels(&b, nil).String()] += len(s.Samples)
		}
		select {
		case x.sent <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(server.Close)
	x.url = server.URL
	return x
}

func (x *taker) client(t *testing.T) *remotewrite.Client {
	t.Helper()
	c, err := receiver(remotewrite.Config{URL: x.url})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A run sends what it scrapes and its own metrics with its name as a label, and counts the samples.
func TestRunSends(t *testing.T) {
	x, registry, q := newTaker(t), prometheus.NewRegistry(), &quiet{}
	phase := prometheus.NewGauge(prometheus.GaugeOpts{Name: "stormglass_test"})
	registry.MustRegister(phase)
	r, err := openArchiver(archiverOptions{
		console: console{Progress: q}, dir: t.TempDir(), plan: plan.Of(parse(t, onePhase)), registry: registry, receiver: x.client(t), name: "mine",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	for range 3 {
		if _, err := r.ScrapeNow(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := x.series[`{__name__="stormglass_test", instance="loadgen", job="loadgen", run="mine"}`]; n < 3 {
		t.Errorf("the receiver got %d samples of the generator's own metric, want at least 3: %v", n, x.series)
	}
	var all int64
	for _, n := range x.series {
		all += int64(n)
	}
	if got := r.sent(); got == nil || got.Sent != all || got.Unsent+got.Refused != 0 {
		t.Errorf("sent() = %+v, but the receiver got %d samples", got, all)
	}
}

// A run that copies from a Prometheus server sends only the generator's metrics.
func TestRunOnPrometheusSendsItsOwn(t *testing.T) {
	lab := archivetest.New(t, scrape.Options{}, "apiserver-0", "kube-etcd-0")
	for range 5 {
		lab.Boundary(30 * time.Second)
	}
	listener, err := observe.Listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	server, err := observe.Start(listener, observe.Config{Recorder: lab.Recorder(), Now: lab.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	source, err := promimport.New(promimport.Config{URL: server.URL(), Now: lab.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := source.Find(t.Context()); err != nil {
		t.Fatal(err)
	}
	x, registry := newTaker(t), prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "stormglass_test"}))
	r, err := openArchiver(archiverOptions{
		console: console{Progress: &quiet{}}, dir: t.TempDir(), plan: plan.Of(parse(t, onePhase)), source: source, registry: registry, receiver: x.client(t), name: "mine",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	<-x.sent // the first periodic scrape of the generator
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for series := range x.series {
		if !strings.Contains(series, `job="loadgen"`) {
			t.Errorf("the run sent %s", series)
		}
	}
}

// Observe sends the samples of a control plane with the name of its directory as the label `run`.
func TestObserveSends(t *testing.T) {
	dir, _, stop := etcdOnly(t)
	x := newTaker(t)
	done := make(chan error, 1)
	go func() {
		done <- Observe(t.Context(), ObserveOptions{
			Dir: dir, Addr: "127.0.0.1:0", Interval: 50 * time.Millisecond, Retention: time.Hour, RemoteWrite: remotewrite.Config{URL: x.url},
			Log: t.Logf, Ready: func(string, string) {},
		})
	}()
	<-x.sent
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	want := `{__name__="etcd_server_has_leader", instance="etcd-0", job="etcd", run="` + filepath.Base(dir) + `"}`
	if x.series[want] == 0 {
		t.Errorf("no samples of %s: %v", want, x.series)
	}
}
