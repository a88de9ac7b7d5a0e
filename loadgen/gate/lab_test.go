package gate

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/record"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// lab is a recorded run over components whose every number the test knows.
type lab struct {
	t        *testing.T
	dir      string
	recorder *record.Recorder
	parts    map[string]*component

	mu  sync.Mutex
	now time.Time
}

// component exposes counters, histograms' buckets among them, by their series.
type component struct {
	mu      sync.Mutex
	started int
	down    bool
	values  map[string]float64
}

// add adds to a cumulative series.
func (c *component) add(series string, v float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values[series] += v
}

// observe adds n observations of v seconds to a classic histogram.
func (c *component) observe(name, labels string, edges []float64, v float64, n float64) {
	sep := ""
	if labels != "" {
		sep = ","
	}
	for _, e := range edges {
		hit := 0.0
		if v <= e {
			hit = n
		}
		c.add(fmt.Sprintf(`%s_bucket{%s%sle="%g"}`, name, labels, sep, e), hit)
	}
	c.add(fmt.Sprintf(`%s_bucket{%s%sle="+Inf"}`, name, labels, sep), n)
	c.add(fmt.Sprintf(`%s_count{%s}`, name, labels), n)
	c.add(fmt.Sprintf(`%s_sum{%s}`, name, labels), n*v)
}

// restart makes it another process, with its counters at zero.
func (c *component) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started += 1000
	clear(c.values)
}

func (c *component) setDown(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
}

func (c *component) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	typed := ""
	var all []string
	for s := range c.values {
		all = append(all, s)
	}
	slices.Sort(all)
	for _, s := range all {
		family, _, _ := strings.Cut(s, "{")
		kind := "counter"
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			if f, ok := strings.CutSuffix(family, suffix); ok {
				family, kind = f, "histogram"
			}
		}
		if family != typed {
			typed = family
			fmt.Fprintf(w, "# TYPE %s %s\n", family, kind)
		}
		fmt.Fprintf(w, "%s %g\n", s, c.values[s])
	}
	fmt.Fprintf(w, "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %d\n", c.started)
	fmt.Fprint(w, "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes 3e8\n# TYPE process_open_fds gauge\nprocess_open_fds 42\n")
}

// newLab starts one component of each kind, a second etcd member, and one
// that plays the generator.
func newLab(t *testing.T, o record.Options) *lab {
	t.Helper()
	l := &lab{t: t, dir: t.TempDir(), parts: map[string]*component{}, now: time.UnixMilli(1_800_000_000_000)}
	var targets []control.ScrapeTarget
	for _, name := range []string{"etcd-0", "etcd-1", "kube-apiserver-0", "kube-scheduler-0", "kube-controller-manager-0", "loadgen"} {
		c := &component{started: 1000, values: map[string]float64{}}
		server := httptest.NewServer(c)
		t.Cleanup(server.Close)
		l.parts[name] = c
		job := strings.TrimRight(name, "-01")
		targets = append(targets, control.ScrapeTarget{Job: job, Instance: name, URL: server.URL})
	}
	o.Now = func() time.Time {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.now
	}
	var err error
	if l.recorder, err = record.Open(l.dir, targets, o); err != nil {
		t.Fatal(err)
	}
	l.boundary(0)
	return l
}

func (l *lab) boundary(after time.Duration) time.Time {
	l.t.Helper()
	l.mu.Lock()
	l.now = l.now.Add(after)
	l.mu.Unlock()
	at, err := l.recorder.ScrapeNow(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	return at
}

// phase stamps one phase with a scrape in its middle; storm is what happens in it.
func (l *lab) phase(name string, storm func()) result.Phase {
	l.t.Helper()
	p := result.Phase{Name: name, Start: l.boundary(time.Second)}
	if storm != nil {
		storm()
	}
	l.boundary(30 * time.Second)
	p.End = l.boundary(30 * time.Second)
	return p
}

// archive closes the recorder and opens what it wrote.
func (l *lab) archive() *record.Archive {
	l.t.Helper()
	if err := l.recorder.Close(); err != nil {
		l.t.Fatal(err)
	}
	a, err := record.OpenArchive(l.dir)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if err := a.Close(); err != nil {
			l.t.Error(err)
		}
	})
	return a
}

// base is a scenario with the phases and loads that tests speak of.
const base = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: lab
nodes: {count: 10}
background:
  - {name: patch, kind: requests, verb: patch, rate: 5/s}
phases:
  - {name: calm, for: 30s}
  - name: storm
    faults: [{kind: nodeFailure, fraction: 0.3}]
    until: nodesNotReady
    within: 2m
    load:
      - {name: crowd, kind: watches, count: 100, rate: 10/s, hold: true}
      - {name: news, kind: changes, watches: crowd, rate: 5/s}
  - {name: recovery, until: podsReady, within: 5m}
gates:
`

// parse reads the base scenario with gates.
func parse(t *testing.T, gates ...string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("lab.yaml", []byte(base+"  - "+strings.Join(gates, "\n  - ")+"\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func compiled(t *testing.T, gates ...string) []Compiled {
	t.Helper()
	all, err := Compile(parse(t, gates...))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// judged judges one gate.
func judged(t *testing.T, gate string, a *record.Archive, m result.Measurements) result.Gate {
	t.Helper()
	res, err := Judge(context.Background(), compiled(t, gate), a, Recorded{Measurements: m})
	if err != nil {
		t.Fatal(err)
	}
	return res.Gates[0]
}

// expect compares a verdict, and a value where one is wanted.
func expect(t *testing.T, what string, g result.Gate, verdict result.Verdict, value float64, detail string) {
	t.Helper()
	if g.Verdict != verdict || !strings.Contains(g.Detail, detail) {
		t.Errorf("%s: %s, %q; want %s, %q", what, g.Verdict, g.Detail, verdict, detail)
		return
	}
	switch {
	case verdict == result.NoData && g.Value != nil:
		t.Errorf("%s: a value %v without data", what, *g.Value)
	case verdict != result.NoData && (g.Value == nil || !near(*g.Value, value)):
		t.Errorf("%s: value %v, want %v", what, *g.Value, value)
	}
}

func near(a, b float64) bool {
	d := a - b
	return d < 1e-4*max(1, b) && d > -1e-4*max(1, b)
}
