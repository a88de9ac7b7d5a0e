package promimport

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
)

func scraped(now time.Time, ago time.Duration, more model.Metric) history {
	h := history{labels: model.Metric{"job": "kube-etcd", "instance": "a"}}
	for name, v := range more {
		h.labels[name] = v
	}
	for at := now.Add(-ago - 5*time.Minute); !at.After(now.Add(-ago)); at = at.Add(30 * time.Second) {
		h.ticks = append(h.ticks, tick{at: at.UnixMilli(), up: true})
	}
	return h
}

// TestCurrent: a target that is gone does not count. If a target exists twice, as from two replicas of a Prometheus
// server, the user must choose one.
func TestCurrent(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	k := key{"kube-etcd", "a"}
	one, gone := scraped(now, time.Second, model.Metric{"pod": "etcd-2"}), scraped(now, 2*time.Minute, model.Metric{"pod": "etcd-1"})
	found := map[key][]history{k: {gone, one}, {"kube-etcd", "b"}: {gone}}
	if err := current(found, now); err != nil || len(found) != 1 || found[k][0].labels["pod"] != "etcd-2" {
		t.Errorf("left are %v (%v)", found, err)
	}
	twice := map[key][]history{k: {
		scraped(now, time.Second, model.Metric{"prometheus_replica": "p-0"}), scraped(now, 2*time.Second, model.Metric{"prometheus_replica": "p-1"}),
	}}
	want := `a of job kube-etcd exists 2 times: prometheus_replica="p-0" and prometheus_replica="p-1" (select one with --prometheus-match)`
	if err := current(twice, now); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// A pod that was restarted under another name on the same address is the same target as before.
func TestRestartedPodIsOneTarget(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	k := key{"kube-etcd", "a"}
	for what, c := range map[string]struct {
		ended   time.Duration // ago
		scrapes int           // since then
	}{"it follows the one before": {time.Minute, 1}, "it meets the one before": {15 * time.Second, 2}} {
		old, fresh := scraped(now, c.ended, model.Metric{"pod": "etcd-1"}), scraped(now, time.Second, model.Metric{"pod": "etcd-2"})
		fresh.ticks = fresh.ticks[len(fresh.ticks)-c.scrapes:]
		found := map[key][]history{k: {fresh, old}}
		if err := current(found, now); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		s := Source{jobs: map[string]string{"kube-etcd": "etcd"}}
		if targets := s.name(found); len(targets) != 1 || targets[0].Interval != 30*time.Second {
			t.Errorf("%s: %v", what, targets)
		}
	}
}

// TestOneCluster: metrics of several clusters must not be added up unnoticed.
func TestOneCluster(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	of := func(cluster model.LabelValue) []history {
		return []history{scraped(now, 0, model.Metric{"cluster": cluster})}
	}
	if err := oneCluster(map[key][]history{{"kube-etcd", "a"}: of("prod-1"), {"kube-etcd", "b"}: of("prod-1"), {"kube-etcd", "c"}: of("")}); err != nil {
		t.Error(err)
	}
	err := oneCluster(map[key][]history{{"kube-etcd", "a"}: of("prod-2"), {"kube-etcd", "b"}: of("prod-1")})
	if want := `this Prometheus server has 2 clusters: cluster="prod-1", cluster="prod-2" (select one with --prometheus-match)`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestNames: instances are unique in the archive, because gates identify a target by its instance alone.
func TestNames(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	h := []history{scraped(now, 0, nil)}
	s := Source{jobs: map[string]string{"kube-etcd": "etcd", "apiserver": "kube-apiserver"}}
	var got []string
	for _, target := range s.name(map[key][]history{{"kube-etcd", "cp-1"}: h, {"apiserver", "cp-1"}: h, {"apiserver", "cp-2"}: h}) {
		got = append(got, target.Job+"="+target.Instance+" every "+target.Interval.String())
	}
	want := "etcd=etcd/cp-1 every 30s, kube-apiserver=cp-2 every 30s, kube-apiserver=kube-apiserver/cp-1 every 30s"
	if g := strings.Join(got, ", "); g != want {
		t.Errorf("got  %s\nwant %s", g, want)
	}
}

// A Prometheus server whose jobs have our own names needs no --prometheus-job; jobs named by the user stay.
func TestJobsWithOurNames(t *testing.T) {
	ours := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status": "success", "data": ["etcd", "kube-apiserver", "kube-scheduler"]}`)
	}))
	t.Cleanup(ours.Close)
	for _, c := range []struct {
		named map[string]string
		want  map[string]string // ours by theirs
	}{
		{nil, map[string]string{"kube-apiserver": "kube-apiserver", "etcd": "etcd", "kube-scheduler": "kube-scheduler", "kube-controller-manager": "kube-controller-manager"}},
		{map[string]string{"etcd": "db"}, map[string]string{"kube-apiserver": "kube-apiserver", "db": "etcd", "kube-scheduler": "kube-scheduler", "kube-controller-manager": "kube-controller-manager"}},
	} {
		s, err := New(Config{URL: ours.URL, Jobs: c.named})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.NameJobs(t.Context()); err != nil || !maps.Equal(s.jobs, c.want) {
			t.Errorf("%v named: %v, want %v", c.named, s.jobs, c.want)
		}
	}
}

// A Prometheus server that does not answer is asked once.
func TestNamesOfASilentPrometheus(t *testing.T) {
	silent := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-silent }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(silent) })
	s, err := New(Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := s.NameJobs(ctx); err == nil || !strings.HasPrefix(err.Error(), "no response within") {
		t.Errorf("error %v", err)
	}
}
