package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/bools"
	"github.com/stormglass/stormglass/loadgen/internal/judge"
	"github.com/stormglass/stormglass/loadgen/internal/judge/diagnosis"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/lab/calibrate/runner"
	"github.com/stormglass/stormglass/loadgen/result"
)

// trial is one phase with planted faults and the diagnosis of that phase. If healthy is set, the trial is a whole run
// without faults.
type trial struct {
	plan    plan
	planted planted
	healthy bool
	on      [][]string  // for each case, the components that its fault affected, from the timeline
	began   []time.Time // for each case, the start of its fault
	said    result.Diagnosis
	failed  []string // for a healthy run, its failed gates
}

// after is how long the time span to diagnose continues after the end of a phase with faults.
const after = 10 * time.Second

// judge diagnoses each phase with faults from the recorded metrics. It takes the actual start and components of the
// faults from the timeline.
func (p plan) judge(ctx context.Context, dir string) (trials []trial, err error) {
	if p.scenario != "" {
		d, failed, err := diagnosed(ctx, dir)
		return []trial{{plan: p, healthy: true, said: d, failed: failed}}, err
	}
	rec, err := rundir.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	if rec.Archive == nil {
		return nil, errors.Join(rec.Damage...)
	}
	phases := rec.Phases()
	calm, ok := phases["calm"]
	if !ok {
		return nil, errors.New("the run ended before its calm phase")
	}
	if err := overloaded(ctx, rec.Archive, calm); err != nil {
		return nil, err
	}
	for _, f := range p.faults {
		phase, ok := phases[f.phase]
		if !ok {
			return trials, fmt.Errorf("the run ended before phase %s (remove its directory to run it again)", f.phase)
		}
		t := trial{plan: p, planted: f}
		for _, c := range f.cases {
			began, on := phase.Start, []string(nil) // default for a load or busy processes, which are not in the timeline
			for _, e := range rec.Timeline {
				if c.begins(e) && !e.Time.Before(phase.Start) && e.Time.Before(phase.End) && !(p.storm == "nodes" && (e.Name == "nodeFailure" || e.Name == "nodeRecovery")) {
					began, on = e.Time, e.On
					break
				}
			}
			t.on, t.began = append(t.on, on), append(t.began, began)
		}
		o := diagnosis.Options{
			Calm: result.Span{From: calm.Start, To: calm.End}, Under: result.Span{From: phase.Start, To: phase.End.Add(after)},
		}
		if t.said, err = diagnosis.OfArchive(ctx, rec.Archive, o); err != nil {
			return nil, fmt.Errorf("%s: %w", f.phase, err)
		}
		trials = append(trials, t)
	}
	return trials, nil
}

// late is the maximum duration of a scrape of an API server. A longer scrape means that the machine was overloaded.
const late = 3300 * time.Millisecond

// tooMuch is the error for a run that is discarded because the storm alone overloaded the machine. In such a run, the
// planted fault is not the only cause of symptoms.
type tooMuch string

func (e tooMuch) Error() string { return string(e) }

// overloaded returns a tooMuch error if a scrape of an API server took longer than `late` in the phase `calm`.
func overloaded(ctx context.Context, source diagnosis.Source, calm result.Phase) error {
	all, err := source.Range(ctx, `scrape_duration_seconds{job="kube-apiserver"}`, calm.Start, calm.End, time.Second)
	if err != nil {
		return err
	}
	worst, of := late.Seconds(), ""
	for _, s := range all {
		for _, at := range s.Points {
			if at.V > worst {
				worst, of = at.V, s.Labels["instance"]
			}
		}
	}
	if of == "" {
		return nil
	}
	return tooMuch(fmt.Sprintf("%s took %.1f s for a scrape in the calm phase", of, worst))
}

// begins reports whether an event is the start of the case's fault, which may affect components or nodes.
func (c faultCase) begins(e result.Event) bool {
	return (e.Kind == result.EventFaultBegin || e.Kind == result.EventNodeFault) && strings.Contains(c.Fault, "kind: "+e.Name+",")
}

// causes returns the causes in the diagnosis that count for the score. It omits silent nodes if the storm itself
// silences nodes. It also omits side effects of planting the fault, such as the end of a process that is restarted.
func (t trial) causes() (all []result.Cause) {
	for _, c := range slices.Concat(t.said.Causes, t.busyMachine()) {
		silences := t.plan.storm == "nodes" || t.plan.scenario == "node-failure-storm"
		if !(silences && c.Kind == "nodes-silent") && !slices.ContainsFunc(t.planted.cases, func(f faultCase) bool { return slices.Contains(f.Also, c.Kind) }) {
			all = append(all, c)
		}
	}
	return all
}

// busyMachine returns the machine as a cause if busy processes were planted and the diagnosis names the machine as a
// limit. If there is no symptom, the diagnosis reports the machine only as a limit, not as a cause.
func (t trial) busyMachine() (all []result.Cause) {
	planted := slices.ContainsFunc(t.planted.cases, func(f faultCase) bool { return f.Neighbours })
	for _, c := range t.said.Limits {
		if planted && c.Kind == "machine" {
			all = append(all, c)
		}
	}
	return all
}

// right compares cause c with the planted fault that has index i. `kind` reports whether the kind is right, and
// `component` whether the components are right.
func (t trial) right(i int, c result.Cause) (kind, component bool) {
	f := t.planted.cases[i]
	kind = slices.Contains(f.Want, c.Kind)
	component = f.Components == "any" || i < len(t.on) && slices.Equal(sorted(t.on[i]), sorted(c.Components))
	return kind, component
}

func sorted(all []string) []string { return slices.Sorted(slices.Values(all)) }

// exact reports whether the causes are exactly the planted faults, each with its components.
func (t trial) exact() bool {
	causes := t.causes()
	if len(causes) != len(t.planted.cases) {
		return false
	}
	for i := range t.planted.cases {
		if !slices.ContainsFunc(causes, func(c result.Cause) bool { k, on := t.right(i, c); return k && on }) {
			return false
		}
	}
	return true
}

// top reports whether one of the n strongest causes is right. Nearest causes, which the diagnosis gives for symptoms
// without a known cause, rank after all other causes.
func (t trial) top(n int) bool {
	causes := t.causes()
	slices.SortStableFunc(causes, func(a, b result.Cause) int { return cmp.Compare(b.Strength, a.Strength) })
	for _, c := range append(causes, t.said.Nearest...)[:min(n, len(causes)+len(t.said.Nearest))] {
		if k, on := t.right(0, c); k && on {
			return true
		}
	}
	return false
}

// namedFirst reports whether the first cause that the diagnosis prints is right.
func (t trial) namedFirst() bool {
	if causes := t.causes(); len(causes) > 0 {
		kind, on := t.right(0, causes[0])
		return kind && on
	}
	return false
}

// blames returns the causes that blame a component, not a growing load or the machine.
func (t trial) blames() []result.Cause {
	return slices.DeleteFunc(t.causes(), func(c result.Cause) bool { return c.Limit })
}

// wronglyHealthy reports whether the diagnosis is "healthy" although a gate failed, a symptom or a cause was found, or
// data is missing or doubtful.
func (t trial) wronglyHealthy() bool {
	d := t.said
	return d.Answer == result.Healthy && len(t.failed)+len(d.Symptoms)+len(d.Causes)+len(d.Lacked)+len(d.Doubts) > 0
}

// words reports whether the text of the cause that is right for fault i contains all required words and none of the
// forbidden words.
func (t trial) words(i int) bool {
	for _, c := range t.causes() {
		if k, _ := t.right(i, c); !k {
			continue
		}
		text := c.Title + ": " + c.Sentence
		said, _, _ := strings.Cut(text, "; ") // without the part about signals that show no problem
		has := func(word string) bool { return strings.Contains(text, word) }
		return !slices.ContainsFunc(t.planted.cases[i].Words, func(w string) bool { return !has(w) }) &&
			!slices.ContainsFunc(t.planted.cases[i].Never, func(w string) bool { return strings.Contains(said, w) })
	}
	return false
}

// onset returns the absolute difference between the diagnosed and the actual start of the first fault, in seconds. ok
// is false if no cause is right.
func (t trial) onset() (seconds float64, ok bool) {
	for _, c := range t.causes() {
		if k, _ := t.right(0, c); k && len(t.began) > 0 {
			return math.Abs(c.Began.Sub(t.began[0]).Seconds()), true
		}
	}
	return 0, false
}

func print(w io.Writer, all []trial) {
	var singles, pairs, healthy []trial
	for _, t := range all {
		switch {
		case t.healthy:
			healthy = append(healthy, t)
		case len(t.planted.cases) == 2:
			pairs = append(pairs, t)
		default:
			singles = append(singles, t)
		}
	}
	var failures []string
	if len(singles) > 0 {
		failures = append(failures, printSingles(w, singles)...)
	}
	if len(pairs) > 0 {
		wrong := wrongOf(pairs, trial.exact)
		failures = append(failures, wrong...)
		fmt.Fprintf(w, "\nPairs of faults, named as a set, nothing else: %s\n", runner.Share(len(pairs)-len(wrong), len(pairs)))
	}
	if len(healthy) > 0 {
		wrong := wrongOf(healthy, func(t trial) bool { return len(t.blames()) == 0 })
		failures = append(failures, wrong...)
		fmt.Fprintf(w, "\nStorms without a fault in which a component is blamed: %s\n", runner.Share(len(wrong), len(healthy)))
		unknown := wrongOf(healthy, func(t trial) bool { return t.said.Answer != result.Unknown })
		failures = append(failures, unknown...)
		fmt.Fprintf(w, "Storms without a fault with a symptom without a known cause: %s\n", runner.Share(len(unknown), len(healthy)))
		said := map[string]int{}
		for _, t := range healthy {
			said[saidKinds(t)]++
		}
		fmt.Fprintf(w, "Answers: %s\n", counts(said))
	}
	lies := wrongOf(all, func(t trial) bool { return !t.wronglyHealthy() })
	failures = append(failures, lies...)
	fmt.Fprintf(w, "\nCalled healthy with a failed gate, a symptom or missing data: %s\n", runner.Share(len(lies), len(all)))
	if len(failures) > 0 {
		fmt.Fprintf(w, "\nWrong answers:\n\n")
		for _, f := range failures {
			fmt.Fprintln(w, "- "+f)
		}
	}
}

// printFaultless prints how often each cause is named in recorded runs without a fault.
func printFaultless(ctx context.Context, w io.Writer, pattern string) error {
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	said := map[string]int{}
	for _, dir := range dirs {
		d, _, err := diagnosed(ctx, dir)
		if err != nil { // for example, the run has too few scrapes
			said["no answer"]++
			continue
		}
		said[saidKinds(trial{said: d})]++
	}
	fmt.Fprintf(w, "%d runs without a fault: %s\n", len(dirs), counts(said))
	return nil
}

// diagnosed returns the diagnosis of a whole run and the failed gates of the run.
func diagnosed(ctx context.Context, dir string) (d result.Diagnosis, failed []string, err error) {
	rec, err := rundir.Open(dir)
	if err != nil {
		return d, nil, err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	if rec.Archive == nil {
		return d, nil, errors.Join(rec.Damage...)
	}
	var judged result.Result
	if err := result.ReadJSON(dir, result.ResultFile, &judged); err != nil {
		return d, nil, err
	}
	o := judge.DiagnosisOptions(rec, judged)
	for _, g := range o.Failed {
		failed = append(failed, g.Name)
	}
	d, err = diagnosis.OfArchive(ctx, rec.Archive, o)
	return d, failed, err
}

// wrongOf returns an explanation for each trial for which `right` returns false.
func wrongOf(all []trial, right func(trial) bool) (failures []string) {
	for _, t := range all {
		if !right(t) {
			failures = append(failures, explain(t))
		}
	}
	return failures
}

// printSingles prints a row for each fault, and a row for all faults together. It returns an explanation of each
// wrong diagnosis.
func printSingles(w io.Writer, all []trial) (failures []string) {
	kinds := map[string][]trial{}
	for _, t := range all {
		name := t.planted.cases[0].Name
		kinds[name] = append(kinds[name], t)
	}
	fmt.Fprintf(w, "| fault | cases | kind and component, nothing else | first of the causes | among three | words | error of the beginning, median | answers |\n|---|---:|---:|---:|---:|---:|---:|---|\n")
	var exact, first, printed, three, worded, middles, middlesExact int
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		var e, f, n, v int
		var onsets []float64
		said := map[string]int{}
		for _, t := range kinds[name] {
			e += bools.Int(t.exact())
			if t.planted.size == middle {
				middles, middlesExact = middles+1, middlesExact+bools.Int(t.exact())
			}
			f += bools.Int(t.top(1))
			printed += bools.Int(t.namedFirst())
			n += bools.Int(t.top(3))
			v += bools.Int(t.words(0))
			if s, ok := t.onset(); ok {
				onsets = append(onsets, s)
			}
			said[saidKinds(t)]++
		}
		failures = append(failures, wrongOf(kinds[name], trial.exact)...)
		exact, first, three, worded = exact+e, first+f, three+n, worded+v
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %d | %s | %s |\n", name, len(kinds[name]), e, f, n, v, median(onsets), counts(said))
	}
	fmt.Fprintf(w, "| all | %d | %s | %s | %s | %s | | |\n", len(all), runner.Share(exact, len(all)), runner.Share(first, len(all)), runner.Share(three, len(all)), runner.Share(worded, len(all)))
	fmt.Fprintf(w, "\nNamed first, as printed: %s\n", runner.Share(printed, len(all)))
	fmt.Fprintf(w, "\nOf these, the middle sizes: %s\n", runner.Share(middlesExact, middles))
	abstained := 0
	for _, t := range all {
		abstained += bools.Int(t.said.Answer == result.Unknown)
	}
	fmt.Fprintf(w, "\nAnswered unknown: %s\n", runner.Share(abstained, len(all)))
	return failures
}

// middle is the index of the second of a fault's three sizes. Except in the cases that cases.yaml names, the diagnosis
// was not tuned with this size.
const middle = 1

func median(all []float64) string {
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return fmt.Sprintf("%.1f s", all[len(all)/2])
}

func saidKinds(t trial) string {
	var kinds []string
	for _, c := range t.causes() {
		kinds = append(kinds, c.Kind)
	}
	if len(kinds) == 0 {
		return t.said.Answer
	}
	return strings.Join(kinds, " + ")
}

func counts(said map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(said)) {
		all = append(all, fmt.Sprintf("%s %d", name, said[name]))
	}
	return strings.Join(all, ", ")
}

func explain(t trial) string {
	if t.healthy {
		return fmt.Sprintf("%s (%s): %s", t.plan.name, t.plan.scenario, said(t))
	}
	var sizes []string
	for _, c := range t.planted.cases {
		sizes = append(sizes, c.Sizes[t.planted.size])
	}
	return fmt.Sprintf("%s, %s of %s on %v: %s", t.plan.name, t.planted.phase, strings.Join(sizes, " and "), t.on, said(t))
}

func said(t trial) string {
	var all []string
	for _, c := range t.causes() {
		all = append(all, c.Kind+": "+c.Sentence)
	}
	for _, e := range t.said.Symptoms {
		all = append(all, fmt.Sprintf("symptom without a known cause: %s of %s", e.What, e.Component))
	}
	if len(all) == 0 {
		return t.said.Answer
	}
	return strings.Join(all, " | ")
}
