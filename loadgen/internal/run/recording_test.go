package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/observe"
	"github.com/stormglass/stormglass/loadgen/internal/record"
	"github.com/stormglass/stormglass/loadgen/internal/record/promimport"
	"github.com/stormglass/stormglass/loadgen/internal/scrapeconfig"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// quiet discards all output.
type quiet struct{ steps []string }

func (q *quiet) Step(line string) { q.steps = append(q.steps, line) }
func (q *quiet) Live(Snapshot)    {}

func recorded(t *testing.T, o Options) (*run, *quiet) {
	t.Helper()
	s, err := scenario.Parse("lab.yaml", []byte("apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: lab\nphases: [{name: a, for: 1s}]\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	q := &quiet{}
	o.Scenario, o.Progress = s, q
	r := &run{Options: o, scenario: s, dir: t.TempDir(), registry: prometheus.NewRegistry(), target: &cluster.Target{}}
	t.Cleanup(func() {
		if err := r.closeRecorder(); err != nil {
			t.Error(err)
		}
	})
	return r, q
}

// TestRunObserved: a run that is to be observed serves what it records and its
// own metrics; when it ends, so does that, and the archive is whole.
func TestRunObserved(t *testing.T) {
	r, q := recorded(t, Options{Observe: "127.0.0.1:0"})
	made := prometheus.NewGauge(prometheus.GaugeOpts{Name: "stormglass_test"})
	made.Set(7)
	r.registry.MustRegister(made)
	if err := r.listen(); err != nil {
		t.Fatal(err)
	}
	if err := r.openRecorder(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.recorder.ScrapeNow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := value(t, r.observer.URL(), `stormglass_test{job="loadgen"}`); v != 7 {
		t.Errorf("the generator says %v", v)
	}
	if said := strings.Join(q.steps, "\n"); !strings.Contains(said, r.observer.URL()) {
		t.Errorf("nobody is told of %s: %s", r.observer.URL(), said)
	}
	config := filepath.Join(r.dir, scrapeconfig.Dir)
	if text, err := os.ReadFile(filepath.Join(config, "targets", "loadgen.json")); err != nil || !strings.Contains(string(text), strings.TrimPrefix(r.observer.URL(), "http://")) {
		t.Errorf("the generator's own target: %s, %v", text, err)
	}
	if err := r.closeRecorder(); err != nil {
		t.Fatal(err)
	}
	r.recorder = nil
	if _, err := os.Stat(config); !os.IsNotExist(err) {
		t.Errorf("what names this run's addresses is still there: %v", err)
	}
	a, err := archive.Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
}

// TestRunReadsPrometheus: with a Prometheus nothing is scraped, its interval is
// the run's, and what a person has to know is in the notes before the start.
func TestRunReadsPrometheus(t *testing.T) {
	lab := archivetest.New(t, record.Options{}, "apiserver-0", "kube-etcd-0")
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

	r, _ := recorded(t, Options{Prometheus: &promimport.Config{URL: server.URL()}})
	if err := r.findPrometheus(t.Context()); err != nil {
		t.Fatal(err)
	}
	if jobs, _ := r.jobs(); strings.Join(jobs, " ") != "etcd kube-apiserver" {
		t.Errorf("jobs %v", jobs)
	}
	if r.scenario.Record.Interval.D() != 30*time.Second {
		t.Errorf("the run's interval is %v", r.scenario.Record.Interval)
	}
	if c := r.target.Cluster; c.Prometheus != server.URL() || strings.Join(c.Targets, " ") != "kube-etcd-0 apiserver-0" {
		t.Errorf("recorded of the cluster: %+v", c)
	}
	notes := strings.Join(r.target.Notes, "\n")
	for _, want := range []string{"nothing is scraped: the metrics of etcd, kube-apiserver are read from " + server.URL(), "every 30s", "its clock is "} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
	if err := r.openRecorder(); err != nil {
		t.Fatal(err)
	}
	if _, ok := r.recorder.(*promimport.Recorder); !ok {
		t.Errorf("recorded by a %T", r.recorder)
	}

	r, _ = recorded(t, Options{Prometheus: &promimport.Config{URL: "http://127.0.0.1:1"}})
	if err := r.findPrometheus(t.Context()); exitcode.Of(err) != exitcode.Environment || !strings.HasPrefix(err.Error(), "--prometheus: http://127.0.0.1:1: ") {
		t.Errorf("a Prometheus that is not there: %v", err)
	}
	r, _ = recorded(t, Options{Prometheus: &promimport.Config{URL: "here"}})
	if err := r.findPrometheus(t.Context()); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("what is no URL: %v", err)
	}
}
