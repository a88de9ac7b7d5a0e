package observe_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/observe"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
)

// down is a recorder in which one of two members is down, from two minutes before the test to long after it, because rules
// are evaluated by the wall clock.
type down struct{ scrape.Storage }

func newDown(t *testing.T) down {
	t.Helper()
	db, err := archive.OpenStore(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	app := db.AppenderV2(t.Context())
	begin := time.Now().Add(-2 * time.Minute)
	for at := begin; at.Before(begin.Add(15 * time.Minute)); at = at.Add(5 * time.Second) {
		for instance, v := range map[string]float64{"etcd-0": 1, "etcd-1": 0} {
			l := labels.FromStrings("__name__", "up", "job", "etcd", "instance", instance)
			if _, err := app.Append(0, l, 0, at.UnixMilli(), v, nil, nil, storage.AOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	return down{db}
}

func (d down) Live() scrape.Storage               { return d.Storage }
func (d down) Targets() []scrape.TargetState      { return nil }
func (d down) Types() map[string]model.MetricType { return nil }
func (d down) Interval() time.Duration            { return 5 * time.Second }

var quick = fstest.MapFS{"etcd.yaml": {Data: []byte(`
groups:
  - name: records
    interval: 100ms
    rules:
      - {record: 'job:up:ratio', expr: avg by (job) (up), labels: {made: here}}
  - name: alerts
    interval: 100ms
    rules:
      - {alert: Half, expr: 'job:up:ratio < 0.6', labels: {severity: warning}, annotations: {summary: '{{ $labels.job }} is {{ $value | humanizePercentage }} there'}}
      - {alert: Later, expr: up == 0, for: 1h}
      - {alert: Never, expr: up == 2}
`)}}

// TestRules: rules are evaluated over the recorded samples and over the results of other rules.
// Their states, ALERTS and records can be queried. None of them is written into
// the archive. Nothing is left behind, not even by an earlier process that was killed.
func TestRules(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if err := os.Mkdir(filepath.Join(os.Getenv("TMPDIR"), "stormglass-rules-killed"), 0o700); err != nil {
		t.Fatal(err)
	}
	recorder := newDown(t)
	s, err := observe.Start(listen(t), observe.Config{Recorder: recorder, Rules: quick})
	if err != nil {
		t.Fatal(err)
	}
	ask, ctx := client(t, s), t.Context()
	var half v1.Alert
	await(t, "fired", func() bool {
		found, err := ask.Alerts(ctx)
		if err != nil {
			t.Fatal(err)
		}
		states := map[string]v1.AlertState{}
		for _, a := range found.Alerts {
			states[string(a.Labels["alertname"])] = a.State
			if a.Labels["alertname"] == "Half" {
				half = a
			}
		}
		return states["Half"] == v1.AlertStateFiring && states["Later"] == v1.AlertStatePending
	})
	if half.Annotations["summary"] != "etcd is 50% there" || half.Labels["severity"] != "warning" || half.Value != "5e-01" {
		t.Errorf("the alert reads %+v", half)
	}
	await(t, "could be queried", func() bool {
		found := must[model.Value](t)(ask.Query(ctx, `ALERTS{alertstate="firing"} and on(job) job:up:ratio{made="here"} == 0.5`, time.Now())).(model.Vector)
		return len(found) == 1 && found[0].Metric["alertname"] == "Half"
	})
	listed, err := ask.Rules(ctx, nil)
	if err != nil || len(listed.Groups) != 2 {
		t.Fatal(listed, err)
	}
	states := map[string]string{}
	for _, g := range listed.Groups {
		for _, r := range g.Rules {
			switch r := r.(type) {
			case v1.AlertingRule:
				states[r.Name] = r.State + " " + string(r.Health)
			case v1.RecordingRule:
				states[r.Name] = string(r.Health)
			}
		}
	}
	for name, want := range map[string]string{"job:up:ratio": "ok", "Half": "firing ok", "Later": "pending ok", "Never": "inactive ok"} {
		if states[name] != want {
			t.Errorf("rule %s is %q, want %q", name, states[name], want)
		}
	}
	q, err := recorder.Querier(0, time.Now().Add(time.Hour).UnixMilli())
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if names, _, err := q.LabelValues(ctx, "__name__", nil); err != nil || strings.Join(names, " ") != "up" {
		t.Errorf("the archive holds %v (%v), want up alone", names, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "stormglass-rules-*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestShippedRules: every group of package alerts is loaded.
func TestShippedRules(t *testing.T) {
	loaded, err := alerts.Load()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for _, g := range loaded {
		want[g.Name] = len(g.Rules)
	}
	listed, err := client(t, start(t, observe.Config{Recorder: newDown(t), Rules: alerts.Files()})).Rules(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range listed.Groups {
		if len(g.Rules) != want[g.Name] {
			t.Errorf("group %s has %d rules, its file %d", g.Name, len(g.Rules), want[g.Name])
		}
		delete(want, g.Name)
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
}

// TestBadRules: a rule that cannot be evaluated is an error with its file name,
// and nothing is left behind.
func TestBadRules(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	bad := fstest.MapFS{"mine.yaml": {Data: []byte("groups: [{name: g, rules: [{record: a, expr: 'sum('}]}]")}}
	_, err := observe.Start(listen(t), observe.Config{Recorder: newDown(t), Rules: bad})
	if err == nil || !strings.Contains(err.Error(), "mine.yaml") {
		t.Errorf("got %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "stormglass-rules-*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
