package judge

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

const judgedScenario = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: slow-path
phases:
  - {name: calm, for: 2m}
`

// judgedDir records a run of two minutes, in which an etcd member has 42 open
// descriptors, and returns its directory.
func judgedDir(t *testing.T) string {
	t.Helper()
	l := archivetest.New(t, scrape.Options{}, "etcd-0")
	p := result.Phase{Name: "calm", Start: l.Boundary(time.Second)}
	for range 24 {
		p.End = l.Boundary(5 * time.Second)
	}
	return l.RunDir(judgedScenario, result.Run{ID: "ab12", Scenario: "slow-path", Started: p.Start, Ended: p.End}, result.Measurements{Phases: []result.Phase{p}},
		result.Event{Time: p.Start, Kind: "phase-start", Name: "calm"}, result.Event{Time: p.End, Kind: "phase-end", Name: "calm"})
}

func written(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A run that did not pass says why it has no diagnosis. A run that passed needs none.
func TestMissingDiagnosisIsNoted(t *testing.T) {
	dir := judgedDir(t) // without an API server
	for most, want := range map[int]result.Verdict{41: result.Fail, 42: result.Pass} {
		res, err := By(t.Context(), dir, []string{written(t, "gates.yaml", fmt.Sprintf("gates:\n  - {name: open, expr: 'max(process_open_fds)', max: %d}\n", most))})
		if err != nil {
			t.Fatal(err)
		}
		noted := slices.ContainsFunc(res.Notes, func(note string) bool { return strings.HasPrefix(note, "no diagnosis: ") })
		if res.Verdict != want || res.Diagnosis != nil || noted != (want != result.Pass) {
			t.Errorf("at most %d: %s, notes %q", most, res.Verdict, res.Notes)
		}
	}
}

// The diagnosis of a run states as a fact that a component ended without a fault and was restarted. A fault explains
// the exit of its component.
func TestDiagnosisStatesUnexpectedExits(t *testing.T) {
	l := archivetest.New(t, scrape.Options{}, "kube-apiserver-0", "kube-scheduler-0")
	p := result.Phase{Name: "calm", Start: l.Boundary(time.Second)}
	for range 24 {
		p.End = l.Boundary(5 * time.Second)
	}
	at := p.Start.Add(61 * time.Second)
	exit := func(name string) []result.Event {
		return []result.Event{
			{Time: at, Kind: result.EventExit, Name: name, Detail: "exited with code 1; from its log, a.log:\n  leaderelection lost"},
			{Time: at.Add(time.Second), Kind: result.EventStart, Name: name}, {Time: at.Add(2500 * time.Millisecond), Kind: result.EventReady, Name: name},
		}
	}
	events := slices.Concat([]result.Event{
		{Time: p.Start, Kind: result.EventPhaseStart, Name: "calm"}, {Time: p.End, Kind: result.EventPhaseEnd, Name: "calm"},
		{Time: at.Add(-time.Second), Kind: result.EventFaultBegin, Name: "kill", Fault: "1", On: []string{"kube-scheduler-1"}},
	}, exit("kube-scheduler-0"), exit("kube-scheduler-1"))
	dir := l.RunDir(judgedScenario, result.Run{ID: "ab12", Scenario: "slow-path", Started: p.Start, Ended: p.End}, result.Measurements{Phases: []result.Phase{p}}, events...)
	res, err := By(t.Context(), dir, []string{written(t, "gates.yaml", "gates:\n  - {name: open, expr: 'max(process_open_fds)', max: 50}\n")})
	if err != nil {
		t.Fatal(err)
	}
	want := "kube-scheduler-0 exited with code 1 at " + at.UTC().Format(time.TimeOnly) + ", and its next process was ready 2.5 s later"
	if d := res.Diagnosis; d == nil || !slices.Equal(d.Exits, []string{want}) || len(d.Causes) != 0 {
		t.Errorf("%+v, notes %q, want %q", d, res.Notes, want)
	}
}

// A run can be judged by gates and rules written after it. Without a file of gates, every alert of the rules must be
// silent. Otherwise only the alerts that gates name affect the verdict.
func TestJudgeBy(t *testing.T) {
	dir := judgedDir(t)
	rules := written(t, "rules.yaml", `
groups:
  - name: mine
    interval: 15s
    rules:
      - {record: 'mine:fds', expr: 'process_open_fds{job="etcd"}'}
      - {alert: Many, expr: 'mine:fds > 40'}
      - {alert: TooMany, expr: 'mine:fds > 50'}
`)
	verdicts := func(files ...string) (map[string]result.Verdict, result.Result) {
		t.Helper()
		res, err := By(t.Context(), dir, files)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]result.Verdict{}
		for _, g := range res.Gates {
			all[g.Name] = g.Verdict
		}
		return all, res
	}
	got, res := verdicts(rules)
	if len(got) != 2 || got["Many"] != result.Fail || got["TooMany"] != result.Pass || res.ExitCode != 1 {
		t.Errorf("by rules: %v, exit code %d", got, res.ExitCode)
	}
	gates := written(t, "gates.yaml", `
gates:
  - {name: many, alert: Many, fires: true}
  - {name: open, expr: 'max(process_open_fds)', max: 42}
  - {name: quorum, alert: EtcdQuorumLost, fires: false}
`)
	got, res = verdicts(gates, rules)
	if len(got) != 3 || got["many"] != result.Pass || got["open"] != result.Pass || got["quorum"] != result.Pass || len(res.Alerts) != 2 || res.ExitCode != 0 {
		t.Errorf("by gates and rules: %v, exit code %d: %q", got, res.ExitCode, res.Reasons)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "result.json")); err != nil || len(left) > 0 {
		t.Errorf("the directory contains %v (%v)", left, err)
	}
	again := written(t, "again.yaml", "gates:\n  - {name: open, objective: generator-memory, max: 1GB}\n")
	if _, err := By(t.Context(), dir, []string{gates, again}); err == nil || !strings.Contains(err.Error(), `again.yaml:2: gates.open: another file also defines a gate "open"`) {
		t.Errorf("two gates of one name: %v", err)
	}
}

// otherRules are the rules of another project: objects of the Prometheus operator, with another job.
const otherRules = `
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: others}
spec:
  groups:
    - name: others
      interval: 15s
      rules:
        - {record: 'job:open_fds:max', expr: 'max by (job) (process_open_fds{job="etcd-cluster"})'}
        - {alert: Many, expr: 'job:open_fds:max{job="etcd-cluster"} > 40'}
        - {alert: ManyForLong, expr: 'process_open_fds{job=~"etcd-cluster|other"} > 40', for: 15m}
        - {alert: TooMany, expr: 'process_open_fds{job="etcd-cluster"} > 50', for: 15m}
        - {alert: NoPods, expr: 'absent(kube_pod_info{job="kube-state-metrics"})'}
        - {alert: Elsewhere, expr: 'process_open_fds{job="etcd-cluster", cluster="prod"} > 40'}
        - {alert: OfAlerts, expr: 'ALERTS{alertname="TooMany"} > 40'}
`

// The result says what each alert of other rules did. The job that was recorded under another name is mapped, and the
// result says so.
func TestAlertsOfOtherProjects(t *testing.T) {
	dir := judgedDir(t)
	rules := written(t, "others.yaml", otherRules)
	gates := written(t, "gates.yaml", "gates:\n  - {name: few, alert: TooMany, fires: false}\n  - {name: open, expr: 'max(process_open_fds)', max: 42}\n")
	judged := func(mapped ...string) (all map[string]string, res result.Result) {
		t.Helper()
		res, err := Criteria{Files: []string{rules, gates}, Map: mapped, AllowNoData: []string{"few"}}.Judge(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		all = map[string]string{}
		for _, a := range res.Alerts {
			all[a.Name] = a.Outcome + ": " + a.Detail
			if a.Verdict != "" {
				t.Errorf("%s affects the verdict", a.Name)
			}
		}
		return all, res
	}
	got, res := judged()
	for name, want := range map[string]string{
		"Many":        "fired: fired 0 s after the start of calm, and was still firing at the end of the run, 2m0s later",
		"ManyForLong": "pending: active for the last 2m0s of the run, shorter than the alert's `for: 15m0s`",
		"TooMany":     "silent: did not fire",
		"NoPods":      "no data: active, but perhaps only because of missing data: kube-state-metrics was not scraped",
		"Elsewhere":   "no data: no series of process_open_fds has a label cluster",
		"OfAlerts":    "silent: did not fire",
	} {
		if !strings.HasPrefix(got[name], want) {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	note := "job etcd-cluster of the rules is mapped to job etcd, the only job with these metrics (1 of the 1 metrics that the rules select were recorded; --map job=etcd-cluster:JOB overrides this)"
	if res.Verdict != result.Pass || !slices.Equal(res.Notes, []string{note}) {
		t.Errorf("%s %q, notes %q", res.Verdict, res.Reasons, res.Notes)
	}
	if got, _ = judged("cluster=prod:"); !strings.HasPrefix(got["Elsewhere"], "fired: ") {
		t.Errorf("without the label cluster: %q", got["Elsewhere"])
	}
	if got, res = judged("job=etcd-cluster:elsewhere"); got["Many"] != "no data: elsewhere was not scraped" || len(res.Notes) != 0 {
		t.Errorf("mapped by the user: %q, notes %q", got["Many"], res.Notes)
	}
}

// A mapping that cannot have an effect is an error.
func TestMappingsAreChecked(t *testing.T) {
	dir, rules := judgedDir(t), written(t, "others.yaml", otherRules)
	for _, c := range []struct{ mapped, want string }{
		{"job=etcd-clustr:etcd", `--map job=etcd-clustr:etcd: no rule selects job="etcd-clustr" (did you mean "etcd-cluster"?)`},
		{"job=etcd", `--map "job=etcd": expected LABEL=FROM:TO (for example job=apiserver:kube-apiserver)`},
		{"__name__=up:down", `--map "__name__=up:down": expected LABEL=FROM:TO (for example job=apiserver:kube-apiserver)`},
	} {
		_, err := Criteria{Files: []string{rules}, Map: []string{c.mapped}}.Judge(t.Context(), dir)
		if exitcode.Of(err) != exitcode.Usage || err.Error() != c.want {
			t.Errorf("%s: %v", c.mapped, err)
		}
	}
	if _, err := (Criteria{Files: []string{rules}, Map: []string{"job=other:a", "job=other:b"}}).Judge(t.Context(), dir); err == nil || err.Error() != "--map job=other:b: job=other is mapped twice" {
		t.Errorf("one value twice: %v", err)
	}
}

// The timeline contains the exits of processes. Without a timeline they are unknown, and a truncated timeline has only
// some of them.
func TestNoPassWithoutATimeline(t *testing.T) {
	dir := judgedDir(t)
	forget(t, dir) // otherwise a digest shows it
	gates := written(t, "gates.yaml", "gates:\n  - {name: open, expr: 'max(process_open_fds)', max: 42}\n")
	verdict := func(judge func() (result.Result, error)) string {
		t.Helper()
		res, err := judge()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(res.Verdict, " ", res.ExitCode, " ", res.Reasons)
	}
	by := func() (result.Result, error) { return By(t.Context(), dir, []string{gates}) }
	if got := verdict(by); got != "pass 0 []" {
		t.Fatal(got)
	}
	file := filepath.Join(dir, result.TimelineFile)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const want = "no data 3 [timeline.jsonl is damaged: the start of phase calm is missing]"
	for what, c := range map[string]struct {
		left int
		want string
	}{"cut in its last line": {len(text) - 5, strings.Replace(want, "start", "end", 1)}, "empty": {0, want}} {
		if err := os.WriteFile(file, text[:c.left], 0o600); err != nil {
			t.Fatal(err)
		}
		if got := verdict(by); got != c.want {
			t.Errorf("%s: %s", what, got)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := verdict(by); got != want {
		t.Errorf("gone: %s", got)
	}
	if got := verdict(func() (result.Result, error) { return Judge(t.Context(), dir) }); !strings.Contains(got, "timeline.jsonl is damaged") {
		t.Errorf("by its own gates: %s", got)
	}
}
