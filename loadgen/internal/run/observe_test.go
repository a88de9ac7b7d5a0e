package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/scrapeconfig"
	"github.com/stormglass/stormglass/loadgen/internal/judge/diagnosis"
	"github.com/stormglass/stormglass/loadgen/result"
)

// etcdOnly returns the directory of a control plane with one component. It runs until stop is called. While away is
// true, the component closes each connection without a response.
func etcdOnly(t *testing.T) (dir string, away *atomic.Bool, stop func()) {
	t.Helper()
	away = new(atomic.Bool)
	component := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, "# TYPE etcd_server_has_leader gauge\netcd_server_has_leader 1\n")
	}))
	t.Cleanup(component.Close)
	dir = t.TempDir()
	text, err := json.Marshal(control.Cluster{Schema: control.ClusterSchema, Dir: dir, Components: []control.Component{{
		Name: "etcd-0", Kind: control.KindEtcd,
		Scrape: control.ScrapeTarget{Job: control.KindEtcd, Instance: "etcd-0", URL: component.URL + "/metrics"},
	}}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, control.ClusterFile), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	lock, err := control.LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	return dir, away, func() { lock.Close() }
}

// value queries the Prometheus API at url until an expression has a value.
func value(t *testing.T, url, expr string) model.SampleValue {
	t.Helper()
	client, err := api.NewClient(api.Config{Address: url})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		v, _, err := v1.NewAPI(client).Query(ctx, expr, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if vector := v.(model.Vector); len(vector) == 1 {
			return vector[0].Value
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s had no value before the time limit", expr)
		}
	}
}

// TestObserve checks that Observe serves queries for a running control plane, writes a configuration for another
// Prometheus server, and continues while the component does not respond. Observe ends with the control plane and leaves
// nothing behind.
func TestObserve(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for name, end := range map[string]func(cancel, stop func()){
		"the plane stops": func(_, stop func()) { stop() },
		"an interrupt":    func(cancel, _ func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			dir, away, stop := etcdOnly(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			type ready struct{ url, config string }
			told, done := make(chan ready, 1), make(chan error, 1)
			go func() {
				done <- Observe(ctx, ObserveOptions{
					Dir: dir, Addr: "127.0.0.1:0", Interval: 50 * time.Millisecond, Retention: time.Hour,
					Log: t.Logf, Ready: func(url, config string) { told <- ready{url, config} },
				})
			}()
			r := <-told
			if v := value(t, r.url, `etcd_server_has_leader{job="etcd",instance="etcd-0"}`); v != 1 {
				t.Errorf("etcd_server_has_leader is %v, want 1", v)
			}
			if _, err := os.Stat(filepath.Join(dir, scrapeconfig.Dir, scrapeconfig.ServerFile)); err != nil || r.config != filepath.Join(dir, scrapeconfig.Dir) {
				t.Errorf("Ready reports the configuration directory %s; stat: %v", r.config, err)
			}
			for _, up := range []model.SampleValue{0, 1} {
				away.Store(up == 0)
				value(t, r.url, fmt.Sprintf(`up{instance="etcd-0"} == %v`, up))
			}
			end(cancel, stop)
			if err := <-done; err != nil {
				t.Error(err)
			}
			if conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://")); err == nil {
				conn.Close()
				t.Error("the port is still open after Observe returned")
			}
			if left, err := filepath.Glob(filepath.Join(temp, "stormglass-*")); err != nil || len(left) > 0 {
				t.Errorf("directories left behind: %v (%v)", left, err)
			}
		})
	}
}

// TestObserveRefused checks that Observe returns an error of one line, with the right exit code, for a control plane
// that it cannot observe.
func TestObserveRefused(t *testing.T) {
	running, _, _ := etcdOnly(t)
	stopped, _, stop := etcdOnly(t)
	stop()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for want, o := range map[string]ObserveOptions{
		"2 nowhere: there is no control plane in this directory (start one with `controlplane up --dir nowhere`)": {Dir: "nowhere", Addr: "127.0.0.1:0", Retention: time.Hour},
		"4 " + stopped + ": the control plane is stopped":                                                         {Dir: stopped, Addr: "127.0.0.1:0", Retention: time.Hour},
		"2 --listen: 0.0.0.0:0 is open to the network":                                                            {Dir: running, Addr: "0.0.0.0:0", Retention: time.Hour},
		"4 --listen: listen on " + taken.Addr().String() + ": address already in use":                             {Dir: running, Addr: taken.Addr().String(), Retention: time.Hour},
	} {
		err := Observe(t.Context(), o)
		if got := fmt.Sprintf("%d %v", exitcode.Of(err), err); !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// The observer logs the reason why there is no diagnosis once. Until it has recorded enough, it logs nothing. If the
// data of the comparison period is lost, it does not compare later diagnoses with that period.
func TestObserverForgetsACalmTimeWithoutData(t *testing.T) {
	start := time.Date(2026, 11, 25, 14, 0, 0, 0, time.UTC)
	var logged []string
	p := presentLog{live: diagnosis.Live{Since: start, Step: 5 * time.Second}, log: func(format string, args ...any) {
		logged = append(logged, fmt.Sprintf(format, args...))
	}}
	hang := []result.Cause{{Kind: "hang", Title: "a process hangs", Sentence: "etcd-0: scrapes hang"}}
	for _, c := range []struct {
		after  time.Duration
		causes []result.Cause
		err    error
		kept   bool // whether the diagnosis keeps the first comparison period
	}{
		{time.Minute, nil, diagnosis.Nothing, false},
		{time.Hour, hang, nil, false},
		{2 * time.Hour, nil, errors.New("query timed out"), true},
		{3 * time.Hour, nil, diagnosis.Nothing, true},
		{4 * time.Hour, nil, diagnosis.Nothing, false},
		{5 * time.Hour, hang, nil, false},
	} {
		o := p.live.Options(start.Add(c.after))
		if o.CalmByDefault == c.kept {
			t.Errorf("after %s, the comparison period is %s to %s", c.after, o.Calm.From, o.Calm.To)
		}
		d := result.Diagnosis{}
		if c.err == nil {
			d = result.Diagnosis{Answer: result.Diagnosed, Calm: o.Calm, Under: o.Under, Causes: c.causes}
		}
		p.take(o, d, c.err)
	}
	want := []string{
		"diagnosis: a process hangs: etcd-0: scrapes hang", "no diagnosis: query timed out", "no diagnosis: " + diagnosis.Nothing.Error(),
		"diagnosis: a process hangs: etcd-0: scrapes hang",
	}
	if !slices.Equal(logged, want) {
		t.Errorf("log:\n%s\nwant:\n%s", strings.Join(logged, "\n"), strings.Join(want, "\n"))
	}
}
