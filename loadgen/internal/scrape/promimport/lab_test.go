package promimport

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/observe"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	etcdHere  = "kube-etcd-0"
	etcdThere = "kube-etcd-1"
	apiserver = "apiserver-0"
)

// lab is a Prometheus server as set up by kube-prometheus-stack, over components with known numbers. It scrapes when it
// is queried about its scrapes, so that no test waits.
type lab struct {
	*archivetest.Lab
	url string
	// every is the time between its scrapes, skew how far its clock is ahead.
	every, skew time.Duration
	// stopped: it no longer scrapes.
	stopped atomic.Bool
	// refuse, if set, reports which queries fail.
	refuse func(query string) bool
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{
		Lab:   archivetest.New(t, scrape.Options{Interval: 30 * time.Second}, etcdHere, etcdThere, apiserver),
		every: 30 * time.Second, skew: 7 * time.Second, refuse: func(string) bool { return false },
	}
	for _, c := range l.Parts {
		c.Add("process_cpu_seconds_total", 100)
		c.Add("etcd_server_leader_changes_seen_total", 4)
	}
	listener, err := observe.Listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	server, err := observe.Start(listener, observe.Config{Recorder: l.Recorder(), Now: l.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	at, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(at)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := r.FormValue("query")
		if strings.Contains(body, `__name__="up"`) && !l.stopped.Load() {
			l.Boundary(l.every)
		}
		if l.refuse(body) {
			http.Error(w, `{"status":"error","errorType":"timeout","error":"too busy"}`, http.StatusServiceUnavailable)
			return
		}
		form := strings.NewReader(r.Form.Encode()) // it was read
		again := r.Clone(r.Context())
		again.Body, again.ContentLength = http.NoBody, 0
		if r.Method == http.MethodPost {
			again.Body, again.ContentLength = readCloser{form}, int64(form.Len())
		}
		proxy.ServeHTTP(w, again)
	}))
	t.Cleanup(front.Close)
	l.url = front.URL
	for range 5 {
		l.Boundary(l.every)
	}
	return l
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// ours returns the recording side's clock.
func (l *lab) ours() time.Time { return l.Now().Add(-l.skew) }

// found returns a source that has found the lab's targets.
func (l *lab) found(t *testing.T, c Config) *Source {
	t.Helper()
	c.URL, c.Now = l.url, l.ours
	s, err := New(c)
	if err == nil {
		err = s.Find(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// recording is a run that is recorded from a lab.
type recording struct {
	*Recorder
	t    *testing.T
	dir  string
	end  context.CancelFunc
	done chan error
	said []string // by the recorder; read it after archive
}

func (l *lab) record(t *testing.T, s *Source, o scrape.Options) *recording {
	t.Helper()
	r := &recording{t: t, dir: t.TempDir(), done: make(chan error, 1)}
	o.Now, o.Registry, o.Interval = l.ours, prometheus.NewRegistry(), time.Hour
	o.Log = func(format string, _ ...any) { r.said = append(r.said, format) }
	var err error
	if r.Recorder, err = s.Record(r.dir, o); err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, r.end = context.WithCancel(context.Background())
	go func() { r.done <- r.Run(ctx) }()
	t.Cleanup(r.end)
	return r
}

func (r *recording) boundary() time.Time {
	r.t.Helper()
	at, err := r.ScrapeNow(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return at
}

// archive ends the recording and opens it.
func (r *recording) archive() (*archive.Archive, result.Scrapes) {
	r.t.Helper()
	r.end()
	if err := <-r.done; err != nil {
		r.t.Fatal(err)
	}
	scrapes := r.Scrapes()
	if err := r.Close(); err != nil {
		r.t.Fatal(err)
	}
	a, err := archive.Open(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := a.Close(); err != nil {
			r.t.Error(err)
		}
	})
	return a, scrapes
}
