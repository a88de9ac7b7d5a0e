package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/scrapeconfig"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/observe"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/internal/scrape/promimport"
)

// quiet is a Progress that keeps the steps and prints nothing.
type quiet struct{ steps []string }

func (q *quiet) Step(line string) { q.steps = append(q.steps, line) }
func (q *quiet) Live(Snapshot)    {}

const onePhase = "phases: [{name: a, for: 1s}]"

// TestRunObserved checks that a run with Options.Observe serves what it records and its own metrics. The server ends
// with the run, and the archive is complete.
func TestRunObserved(t *testing.T) {
	q, registry, dir := &quiet{}, prometheus.NewRegistry(), t.TempDir()
	made := prometheus.NewGauge(prometheus.GaugeOpts{Name: "stormglass_test"})
	made.Set(7)
	registry.MustRegister(made)
	listener, err := listen(Options{Observe: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := openArchiver(archiverOptions{
		console: console{Progress: q}, dir: dir, plan: plan.Of(parse(t, onePhase)), listener: listener, registry: registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.ScrapeNow(t.Context()); err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	if v := value(t, url, `stormglass_test{job="loadgen"}`); v != 7 {
		t.Errorf("the generator reports %v", v)
	}
	if said := strings.Join(q.steps, "\n"); !strings.Contains(said, url) {
		t.Errorf("no step contains %s: %s", url, said)
	}
	config := filepath.Join(dir, scrapeconfig.Dir)
	if text, err := os.ReadFile(filepath.Join(config, "targets", "loadgen.json")); err != nil || !strings.Contains(string(text), listener.Addr().String()) {
		t.Errorf("the target file of the generator: %s (%v)", text, err)
	}
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(config); !os.IsNotExist(err) {
		t.Errorf("the scrape configuration still exists after the run: %v", err)
	}
	a, err := archive.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
}

// TestRunReadsPrometheus: with a Prometheus server, the run scrapes nothing and uses the server's interval, and the
// notes before the start say what the user has to know.
func TestRunReadsPrometheus(t *testing.T) {
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

	p, target := plan.Of(parse(t, onePhase)), &cluster.Target{}
	source, err := findPrometheus(t.Context(), &promimport.Config{URL: server.URL()}, target, p)
	if err != nil {
		t.Fatal(err)
	}
	if jobs := source.Jobs(); strings.Join(jobs, " ") != "etcd kube-apiserver" {
		t.Errorf("jobs %v", jobs)
	}
	if p.Record.Interval.D() != 30*time.Second {
		t.Errorf("the run's interval is %v, want 30s", p.Record.Interval)
	}
	if c := target.Cluster; c.Prometheus != server.URL() || strings.Join(c.Targets, " ") != "kube-etcd-0 apiserver-0" {
		t.Errorf("the record of the cluster is %+v", c)
	}
	notes := strings.Join(target.Notes, "\n")
	for _, want := range []string{"this run reads the metrics of etcd, kube-apiserver from " + server.URL(), "every 30s", "the clock of the Prometheus server is "} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
	r, err := openArchiver(archiverOptions{
		console: console{Progress: &quiet{}}, dir: t.TempDir(), plan: p, source: source, registry: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	if _, ok := r.recorder.(*promimport.Recorder); !ok {
		t.Errorf("the recorder is a %T", r.recorder)
	}

	_, err = findPrometheus(t.Context(), &promimport.Config{URL: "http://127.0.0.1:1"}, target, p)
	if exitcode.Of(err) != exitcode.Environment || !strings.HasPrefix(err.Error(), "--prometheus: http://127.0.0.1:1: ") {
		t.Errorf("error for an unreachable Prometheus server: %v", err)
	}
	if _, err = findPrometheus(t.Context(), &promimport.Config{URL: "here"}, target, p); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("error for an invalid URL: %v", err)
	}
}
