package capacity

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/series"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const text = `apiVersion: stormglass/v1alpha1
kind: Scenario
name: known
phases: [{name: hold, for: 1s}]
background: [{name: writes, kind: requests, verb: get, rate: 10/s}]
capacity: {field: background.writes.rate, from: 10/s, to: 5000/s}
gates: [{name: latency, objective: request-latency, max: 1s}]
`

type quiet struct{ t *testing.T }

func (q quiet) Step(line string)    { q.t.Log(line) }
func (q quiet) Live(_ run.Snapshot) {}

// plane simulates trials, which are good at loads below the plane's capacity. The capacity varies between trials by
// spread.
type plane struct {
	capacity, spread float64
	saturatedFrom    float64
	weakerAfter      int // number of trials after which the capacity falls to 80%; 0 means never
	fails            func(trial int) error
	rng              *rand.Rand
	loads            []float64
}

func (p *plane) trial(_ context.Context, o run.Options) (result.Result, error) {
	load := float64(o.Scenario.Loads()[0].Rate)
	p.loads = append(p.loads, load)
	if p.fails != nil {
		if err := p.fails(len(p.loads)); err != nil {
			return result.Result{}, err
		}
	}
	if err := os.MkdirAll(o.Out, 0o700); err != nil {
		return result.Result{}, err
	}
	capacity := p.capacity
	if p.weakerAfter > 0 && len(p.loads) > p.weakerAfter {
		capacity *= 0.8
	}
	r := result.Result{Verdict: result.Pass, Gates: []result.Gate{{Name: "latency", Verdict: result.Pass}}}
	switch {
	case p.saturatedFrom > 0 && load >= p.saturatedFrom:
		r.Verdict, r.Measurements.Generator.Saturated = result.NoData, []string{"generator saturated: it was late"}
	case load > capacity*math.Exp(p.spread*p.rng.NormFloat64()):
		r.Verdict, r.Gates[0].Verdict = result.Fail, result.Fail
	}
	return r, nil
}

func newSession(t *testing.T, p *plane) session {
	t.Helper()
	t.Log("seed 1")
	p.rng = rand.New(rand.NewPCG(1, 1))
	read := func(sets []string) (*scenario.Scenario, error) {
		return scenario.Parse("known.yaml", []byte(text), sets)
	}
	s, err := read(nil)
	if err != nil {
		t.Fatal(err)
	}
	o := RunOptions{Read: read, Width: 0.15, Most: 40}
	o.Scenario, o.Out, o.Progress = s, filepath.Join(t.TempDir(), "search"), quiet{t}
	uses := func(context.Context, string, result.Phase) ([]result.Use, map[string]float64, error) {
		return []result.Use{{Resource: "machine", Share: 0.97}}, map[string]float64{"kube-apiserver-0": 1}, nil
	}
	return session{o: o, Series: series.Series{Member: p.trial, OtherGenerator: func(result.Host, string) string { return "" }}, uses: uses}
}

// failsOver makes the trials of a session with more than 300 requests per second return err. The function `change`
// modifies their results.
func failsOver(s *session, change func(*result.Result), err error) {
	plane := s.Member
	s.Member = func(ctx context.Context, o run.Options) (result.Result, error) {
		res, failed := plane(ctx, o)
		if o.Scenario.Loads()[0].Rate > 300 {
			change(&res)
			failed = err
		}
		return res, failed
	}
}

func TestSearchOnKnownPlanes(t *testing.T) {
	for name, c := range map[string]struct {
		plane  plane
		answer Answer
		code   int
		next   string // part of the notes: the next step
	}{
		"a knee at 700":         {plane{capacity: 700, spread: 0.03}, Found, exitcode.Pass, ""},
		"holds all":             {plane{capacity: 1e9}, AboveRange, exitcode.NoData, "`--set capacity.to=20000/s`"},
		"holds nothing":         {plane{capacity: 1}, BelowRange, exitcode.NoData, "`--set capacity.from=1/s`"},
		"gets weaker":           {plane{capacity: 350, spread: 0.03, weakerAfter: 13}, Unconfirmed, exitcode.NoData, "`--set capacity.from="},
		"a generator up to 300": {plane{capacity: 700, saturatedFrom: 300}, GeneratorFirst, exitcode.NoData, "`--resume "},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, &c.plane)
			got, dir, err := s.run(t.Context())
			if err != nil || got.Answer != string(c.answer) || got.ExitCode != c.code {
				t.Fatalf("answer %q, exit code %d (%v); want %q, %d", got.Answer, got.ExitCode, err, c.answer, c.code)
			}
			if notes := strings.Join(got.Notes, "\n"); !strings.Contains(notes, c.next) || c.next == "" && notes != "" {
				t.Errorf("notes = %q, want %q", notes, c.next)
			}
			if c.answer == Found && (got.Confirmed == nil || got.Confirmed.Good != confirmed || got.Confirmed.Load > 700) {
				t.Errorf("Confirmed = %+v, want %d good trials at no more than 700", got.Confirmed, confirmed)
			}
			if c.answer == Found && (*got.Low > 700 || *got.High < 700 || got.GaveWay[0].Gate != "latency" || got.Bottleneck == nil || got.Bottleneck.Resource != "machine") {
				t.Errorf("interval %v to %v, GaveWay %v, bottleneck %v; want an interval around 700, latency, machine", *got.Low, *got.High, got.GaveWay, got.Bottleneck)
			}
			if read, err := Read(dir); err != nil || len(read.Trials) != len(got.Trials) {
				t.Errorf("Read returned %d trials, want %d: %v", len(read.Trials), len(got.Trials), err)
			}
			if page, err := os.ReadFile(filepath.Join(dir, result.CapacityHTMLFile)); err != nil || strings.Count(string(page), "/report.html") != len(got.Trials) {
				t.Errorf("the page does not link to every trial: %v", err)
			}
		})
	}
}

// A trial fails if a phase does not meet its condition in time, with or without gates.
func TestUnmetConditionIsBad(t *testing.T) {
	var trial result.Trial
	take(&trial, result.Result{Verdict: result.NoData, Measurements: result.Measurements{Phases: []result.Phase{{Name: "open", Until: "watchesOpen"}}}})
	if trial.Outcome != "bad" || !strings.Contains(trial.Why, "watchesOpen") {
		t.Errorf("unmet condition: outcome %q, reason %q; want bad, watchesOpen", trial.Outcome, trial.Why)
	}
	take(&trial, result.Result{Verdict: result.Fail, Measurements: result.Measurements{Phases: []result.Phase{{Name: "open", Until: "watchesOpen"}}}})
	if !strings.Contains(trial.Why, "watchesOpen") {
		t.Errorf("unmet condition without a failed gate: reason %q, want watchesOpen", trial.Why)
	}
	take(&trial, result.Result{Verdict: result.NoData, Reasons: []string{"a scrape was lost"}})
	if trial.Outcome != "no data" {
		t.Errorf("lost scrape: outcome %q, reason %q; want no data", trial.Outcome, trial.Why)
	}
}

// On a busy machine, a trial with an unmet condition has no data. A trial with a failed gate is bad, and a note
// describes the machine.
func TestTrialOnABusyMachine(t *testing.T) {
	const why = "other programs used 1.0 of 2 processors"
	late := result.Measurements{Phases: []result.Phase{{Name: "open", Until: "watchesOpen", Machine: &result.Machine{Busy: why}}}}
	var unmet, failed result.Trial
	take(&unmet, result.Result{Verdict: result.NoData, Reasons: []string{"not met, measured on a busy machine"}, Measurements: late, BusyMachine: []string{why + " in phase open"}})
	if unmet.Outcome != "no data" || unmet.Machine[0] != why+" in phase open" {
		t.Errorf("unmet condition: outcome %q, reason %q, machine %q; want no data", unmet.Outcome, unmet.Why, unmet.Machine)
	}
	take(&failed, result.Result{Verdict: result.Fail, Gates: []result.Gate{{Name: "achieved", Verdict: result.Fail}}, BusyMachine: []string{why + " in phase hold"}})
	if failed.Outcome != "bad" || failed.Why != "achieved" {
		t.Errorf("failed gate: outcome %q, reason %q; want bad, achieved", failed.Outcome, failed.Why)
	}
	failed.Number = 3
	if note := busyTrials([]result.Trial{{}, unmet, failed}); note != "machine: 2 of 3 trials ran on a busy machine; reason for the last one: "+why+" in phase hold of trial 3 (on an idle machine the capacity may be higher)" {
		t.Errorf("note of two busy trials = %q", note)
	}
	if note := busyTrials([]result.Trial{{}}); note != "" {
		t.Error(note)
	}
}

// take reads the measurements of a trial from its longest phase with requests, not from the phase with the highest
// rate.
func TestFiguresOfTheLongestPhase(t *testing.T) {
	phase := func(name string, from, seconds int, rate float64) result.Phase {
		start := time.Unix(int64(from), 0)
		p := result.Phase{Name: name, Start: start, End: start.Add(time.Duration(seconds) * time.Second)}
		p.Requests = []result.Requests{{Load: "writes", OfferedRate: rate, AchievedRate: rate}}
		return p
	}
	var trial result.Trial
	held := take(&trial, result.Result{Verdict: result.Pass, Measurements: result.Measurements{Phases: []result.Phase{phase("settle", 0, 5, 104), phase("hold", 5, 20, 100)}}})
	if held.Name != "hold" || trial.Offered != 100 {
		t.Errorf("offered %v in %s", trial.Offered, held.Name)
	}
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	p := plane{capacity: 700, fails: func(n int) error {
		if n == 3 {
			cancel(errors.New("interrupted"))
		}
		return nil
	}}
	s := newSession(t, &p)
	c, _, err := s.run(ctx)
	if c.Median != nil {
		t.Errorf("median = %v before a trial was bad, want null", *c.Median)
	}
	if err != nil || len(c.Trials) != 2 || c.Answer != string(Unfinished) || c.ExitCode != exitcode.NoData {
		t.Errorf("%d trials, answer %q, exit code %d (%v); want 2, unfinished, %d", len(c.Trials), c.Answer, c.ExitCode, err, exitcode.NoData)
	}
}

// Run refuses invalid options with an error that begins with the flag.
func TestBadFlags(t *testing.T) {
	for flag, change := range map[string]func(*RunOptions){
		"--trials 2": func(o *RunOptions) { o.Most = 2 },
		"--width 0%": func(o *RunOptions) { o.Width = 0 },
	} {
		s := newSession(t, &plane{capacity: 700})
		change(&s.o)
		if _, _, err := s.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.HasPrefix(err.Error(), flag+":") {
			t.Errorf("%s: error %v, want a usage error that begins with the flag", flag, err)
		}
	}
}

// TestBadRanges checks that an invalid range is an error before the first trial.
func TestBadRanges(t *testing.T) {
	for name, c := range map[string]struct{ capacity, want string }{
		"an unknown load":     {"{field: background.reads.rate, from: 1/s, to: 5/s}", "reads"},
		"a rate for a number": {"{field: nodes.count, from: 1/s, to: 5/s}", "nodes.count"},
		"too many nodes":      {"{field: nodes.count, from: 1, to: 500000}", "nodes.count"},
		"no range":            {"null", "does not name the field that the search should raise"},
		"a range of one load": {"{field: background.writes.rate, from: 10.01/s, to: 10.02/s}", "rates to three digits"},
	} {
		p := plane{capacity: 1}
		s := newSession(t, &p)
		changed := strings.Replace(text, "{field: background.writes.rate, from: 10/s, to: 5000/s}", c.capacity, 1)
		s.o.Read = func(sets []string) (*scenario.Scenario, error) {
			return scenario.Parse("known.yaml", []byte(changed), sets)
		}
		var err error
		if s.o.Scenario, err = s.o.Read(nil); err == nil {
			_, _, err = s.run(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || len(p.loads) > 0 {
			t.Errorf("%s: error %v after %d trials, want %q before any", name, err, len(p.loads), c.want)
		}
	}
}

// A load counts as the cause only if the plane ended or never became ready. Any other failure ends the search again
// when it occurs a second time.
func TestEnvironmentIsNoLoad(t *testing.T) {
	s := newSession(t, &plane{capacity: 1e9})
	failsOver(&s, func(r *result.Result) {
		r.Run.Versions.Kubernetes, r.Measurements.Phases = "v1.37.1", []result.Phase{{Name: "hold"}}
	}, exitcode.Environmentf("no space left on device"))
	first := s
	got, dir, err := first.run(t.Context())
	if err != nil || len(got.EndedAt) > 0 {
		t.Fatalf("EndedAt = %v (%v), want none", got.EndedAt, err)
	}
	next := again(s, dir)
	if got, _, err = next.run(t.Context()); err != nil || got.ExitCode != exitcode.Environment {
		t.Errorf("resumed search: exit code %d (%v), want %d", got.ExitCode, err, exitcode.Environment)
	}
}

// TestPlaneEndsByTheLoad: if a control plane ends by itself, or does not become ready for its load, the search ends. If
// the same load ends a second control plane, the trial is bad, and GaveWay contains the reason.
func TestPlaneEndsByTheLoad(t *testing.T) {
	ended := exitcode.Environmentf("kube-apiserver-0 ended")
	noRun := func(r *result.Result) { *r = result.Result{} }
	for _, c := range []struct {
		gaveWay string
		change  func(*result.Result)
		err     error
	}{
		{"the control plane ended", func(r *result.Result) { r.Run.UnexpectedExits = []string{"kube-apiserver-0"} }, ended},
		{"the control plane ended", noRun, exitcode.Environmentf("%w: %w", run.ErrPlaneEnded, ended)},
		{"the objects of a load were not created", noRun, exitcode.Environmentf("%w writes (background[0]): 503", run.ErrPrepare)},
		{"the first phase did not begin", func(r *result.Result) { r.Run.Versions.Kubernetes = "v1.37.1" }, ended},
	} {
		s := newSession(t, &plane{capacity: 1e9})
		failsOver(&s, c.change, c.err)
		first := s
		got, dir, err := first.run(t.Context())
		if err != nil || got.ExitCode != exitcode.Environment || len(got.EndedAt) != 1 {
			t.Fatalf("answer %q, exit code %d, EndedAt %v (%v); want exit code %d and one load", got.Answer, got.ExitCode, got.EndedAt, err, exitcode.Environment)
		}
		for range 40 {
			next := again(s, dir)
			if got, _, err = next.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got.ExitCode != exitcode.Environment {
				break
			}
		}
		if got.Answer != string(Found) || *got.Low > 300 || *got.High < 290 || len(got.GaveWay) != 1 || got.GaveWay[0].Gate != c.gaveWay {
			t.Errorf("answer %q, interval %v to %v, GaveWay %v; want found, around 300, %q", got.Answer, got.Low, got.High, got.GaveWay, c.gaveWay)
		}
	}
}

// If the first load ends the control plane twice, the answer is "below the range". The result still contains the
// machine and the versions.
func TestPlaneEndsByTheFirstLoad(t *testing.T) {
	s := newSession(t, &plane{})
	s.Member = func(context.Context, run.Options) (r result.Result, err error) {
		r.Run.UnexpectedExits, r.Run.Versions.Kubernetes, r.Run.Host.CPUs = []string{"etcd-0"}, "v1.37.1", 2
		return r, exitcode.Environmentf("etcd-0 ended")
	}
	if _, _, err := s.run(t.Context()); exitcode.Of(err) != exitcode.Environment || !strings.Contains(err.Error(), "`--resume "+s.o.Out+"`") {
		t.Fatal(err)
	}
	next := again(s, s.o.Out)
	c, _, err := next.run(t.Context())
	if err != nil || c.Answer != string(BelowRange) || len(c.Trials) != 2 || c.Versions.Kubernetes != "v1.37.1" || c.Host.CPUs != 2 {
		t.Errorf("answer %q, trials %+v, host %+v, versions %+v (%v); want %q after two trials", c.Answer, c.Trials, c.Host, c.Versions, err, BelowRange)
	}
}

// Trials use rates with three digits, and whole numbers for other loads.
func TestRoundedLoads(t *testing.T) {
	for _, c := range []struct {
		unit scenario.Unit
		load float64
		want string
	}{
		{scenario.PerSec, 0.01234, "0.0123/s"}, {scenario.PerSec, 1.234, "1.23/s"}, {scenario.PerSec, 98.76, "98.8/s"}, {scenario.PerSec, 1234.5, "1235/s"},
		{scenario.Count, 3.4, "3"},
	} {
		s := session{c: result.Capacity{Unit: string(c.unit)}}
		if got := s.text(c.load); got != c.want {
			t.Errorf("text(%v) = %s, want %s", c.load, got, c.want)
		}
	}
}
