package run

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/profile"
	"github.com/stormglass/stormglass/loadgen/result"
)

// sampling serves profiles without a network. It serves a CPU profile at the end of its duration, and other profiles
// immediately.
type sampling struct {
	t    *testing.T
	data []byte
}

func (s sampling) RoundTrip(r *http.Request) (*http.Response, error) {
	if seconds := r.URL.Query().Get("seconds"); seconds != "" {
		d, err := time.ParseDuration(seconds + "s")
		if err != nil {
			s.t.Error(err)
		}
		select {
		case <-time.After(d):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	status := http.StatusOK
	if strings.HasPrefix(r.URL.Host, "kube-scheduler") {
		status = http.StatusForbidden
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Body: io.NopCloser(bytes.NewReader(s.data)), Request: r}, nil
}

func (s sampling) sources(components map[string]string) func() ([]profile.Source, error) {
	return func() (all []profile.Source, err error) {
		for name, kind := range components {
			all = append(all, profile.Remote(name, kind, "http://"+name+"/debug/pprof", &http.Client{Transport: s}))
		}
		return all, nil
	}
}

// profiled runs the phases of a run. It returns the profiles, the run's directory and the time of the start.
func profiled(t *testing.T, body string, open func() ([]profile.Source, error)) (all []result.Profile, dir string, began time.Time) {
	t.Helper()
	r := underway(t, parse(t, body))
	synctest.Test(t, func(t *testing.T) {
		r.phases.profiler.open = open
		began = time.Now()
		for i := range r.o.Scenario.Phases {
			p := &r.o.Scenario.Phases[i]
			profiles := r.phases.profiler.start(t.Context(), p, time.Now())
			if _, err := r.phases.through(t.Context(), p, time.Now()); err != nil {
				t.Error(err)
			}
			profiles.stop()
			profiles.wait()
		}
	})
	return r.phases.profiler.all(), r.dir.Path, began
}

func goroutines(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 0); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestProfilesAreKeptWithTheRun(t *testing.T) {
	s := sampling{t, goroutines(t)}
	all, dir, began := profiled(t, `controlPlane: {apiServer: {replicas: 2}}
phases:
  - name: storm
    for: 30s
    profiles:
      - {component: kube-apiserver, kind: cpu, after: 5s, for: 25s}
      - {component: etcd-0, kind: heap}
      - {component: etcd-0, kind: heap, after: 20s}
      - {component: loadgen, kind: goroutine, after: 10s}
`, s.sources(map[string]string{"kube-apiserver-0": "kube-apiserver", "kube-apiserver-1": "kube-apiserver", "etcd-0": "etcd"}))
	want := []result.Profile{
		{Component: "etcd-0", Kind: "heap", File: "profiles/storm-etcd-0-heap.pb.gz"},
		{Component: "kube-apiserver-0", Kind: "cpu", Seconds: 25, File: "profiles/storm-kube-apiserver-0-cpu.pb.gz"},
		{Component: "kube-apiserver-1", Kind: "cpu", Seconds: 25, File: "profiles/storm-kube-apiserver-1-cpu.pb.gz"},
		{Component: "loadgen", Kind: "goroutine", File: "profiles/storm-loadgen-goroutine.pb.gz"},
		{Component: "etcd-0", Kind: "heap", File: "profiles/storm-etcd-0-heap-2.pb.gz"},
	}
	after := []time.Duration{0, 5 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second}
	if len(all) != len(want) {
		t.Fatalf("%+v", all)
	}
	for i, got := range all {
		data, err := os.ReadFile(filepath.Join(dir, got.File))
		if err != nil || int64(len(data)) != got.Bytes || got.Bytes == 0 {
			t.Errorf("%s has %d bytes: %v", got.File, len(data), err)
		}
		if d := got.Began.Sub(began); d != after[i] || got.Phase != "storm" {
			t.Errorf("%s began after %s in phase %s, want %s in phase storm", got.File, d, got.Phase, after[i])
		}
		got.Phase, got.Began, got.Bytes = "", time.Time{}, 0
		if got != want[i] {
			t.Errorf("%+v, want %+v", got, want[i])
		}
	}
}

func TestLostProfilesSayWhy(t *testing.T) {
	s := sampling{t, goroutines(t)}
	open := s.sources(map[string]string{"kube-scheduler-0": "kube-scheduler", "etcd-0": "etcd"})
	body := `phases:
  - name: fill
    for: 1m
    profiles: [{component: etcd, kind: cpu, after: 5s, for: 30s}, {component: etcd, kind: heap, after: 40s}, {component: kube-scheduler, kind: heap}, {component: kube-controller-manager, kind: heap}]
`
	r := underway(t, parse(t, body))
	synctest.Test(t, func(t *testing.T) {
		r.phases.profiler.open = open
		profiles := r.phases.profiler.start(t.Context(), &r.o.Scenario.Phases[0], time.Now())
		time.Sleep(20 * time.Second)
		profiles.stop() // as if the condition of the phase held
		profiles.wait()
	})
	want := map[string]string{
		"etcd-0 cpu":                   "the phase ended before the profile was complete",
		"etcd-0 heap":                  "the phase ended before the profile began",
		"kube-scheduler-0 heap":        "Forbidden: the user is not permitted to get the URL /debug/pprof/heap",
		"kube-controller-manager heap": "its address is unknown (known components: ",
	}
	all := r.phases.profiler.all()
	for _, got := range all {
		if why := want[got.Component+" "+got.Kind]; why == "" || !strings.HasPrefix(got.Lost, why) || got.File != "" {
			t.Errorf("%+v, want %s", got, why)
		}
	}
	if len(all) != len(want) {
		t.Errorf("%+v", all)
	}
}

// If no address of a component is known, the run takes only the profiles of the generator itself.
func TestProfilesWithoutComponents(t *testing.T) {
	all, _, _ := profiled(t, `phases: [{name: a, for: 10s, profiles: [{component: etcd, kind: heap}, {component: loadgen, kind: allocs}]}]
`, func() ([]profile.Source, error) { return nil, errors.New("no certificate") })
	if len(all) != 2 || all[0].Lost != "no certificate" || all[1].File == "" {
		t.Errorf("%+v", all)
	}
}
