package ab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"gonum.org/v1/gonum/stat"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/shell"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/judge"
	"github.com/stormglass/stormglass/loadgen/internal/judge/paired"
	"github.com/stormglass/stormglass/loadgen/internal/machine"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/runs"
	"github.com/stormglass/stormglass/loadgen/internal/scratch"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// recorded is a recorded run to compare.
type recorded struct {
	dir      string
	result   result.Result
	scenario *scenario.Scenario
}

// Compare compares two sets of recorded runs of one scenario, without pairs. Each of a and b is the directory of a run,
// or a directory of such directories. Compare first judges runs that have no result yet, and writes their results.
func Compare(ctx context.Context, plan result.Plan, gated []string, a, b string) (c result.AB, err error) {
	if err := paired.Check(plan); err != nil {
		return c, exitcode.UsageError(err)
	}
	var sets [2][]recorded
	for i, dir := range []string{a, b} {
		if sets[i], err = readSet(ctx, dir); err != nil {
			return c, err
		}
	}
	first := sets[0][0]
	for _, r := range slices.Concat(sets[0], sets[1]) {
		if field := unlike(first.scenario, r.scenario); field != "" {
			return c, exitcode.Usagef("%s and %s cannot be compared, because their scenarios differ in %s (to run one scenario on two control planes, use `loadgen ab` with --a and --b)", first.dir, r.dir, field)
		}
	}
	if run, both := inBoth(sets[0], sets[1]); both {
		return c, exitcode.Usagef("run %s is in both %s and %s, but a run cannot be compared with itself (compare new runs with a baseline before you add them to it)", run, a, b)
	}
	c = result.AB{
		Schema: result.ABSchema, Scenario: first.scenario.Name, Started: first.result.Run.Started, Ended: time.Time{}, Seed: first.result.Run.Seed, Plan: plan,
		A: sideOf(a, first), B: sideOf(b, sets[1][0]), Pairs: []result.Pair{}, Sets: &result.Sets{},
	}
	c.Sets.Differences = differences(sets)
	last := slices.MaxFunc(sets[1], func(x, y recorded) int { return x.result.Run.Started.Compare(y.result.Run.Started) }) // its scenario defines the figures
	for i := range sets {
		sets[i] = withoutUnfit(&c, sets[i])
	}
	if c.Figures, err = figuresOf(Options{A: Side{Scenario: last.scenario}, Plan: plan, Gated: gated}, true); err != nil {
		return c, err
	}
	for _, f := range first.scenario.Compare {
		if !has(last.scenario, f.Name) {
			c.Notes = append(c.Notes, fmt.Sprintf("metric %s exists only in A's scenario", f.Name))
		}
	}
	for i := range c.Figures {
		if f := &c.Figures[i]; !has(first.scenario, f.Name) {
			if f.Gated = f.Gated && len(gated) > 0; !f.Gated {
				f.Advice = cmp.Or(f.Advice, "A's scenario does not have this metric")
			}
			c.Notes = append(c.Notes, fmt.Sprintf("metric %s exists only in B's scenario", f.Name))
		}
	}
	c.Figures = gatedFirst(c.Figures)
	for _, r := range sets[0] {
		c.Sets.A = append(c.Sets.A, memberLike(&c, last.scenario, r))
	}
	for _, r := range sets[1] {
		c.Sets.B = append(c.Sets.B, memberLike(&c, last.scenario, r))
	}
	nameUnits(&c, last.result)
	judgeSets(&c)
	c.Grown = spans.Grown(tracesOf(sets[0]), tracesOf(sets[1]))
	return c, nil
}

func tracesOf(set []recorded) (all []*result.Traces) {
	for _, r := range set {
		all = append(all, r.result.Traces)
	}
	return all
}

func has(s *scenario.Scenario, figure string) bool {
	return slices.ContainsFunc(s.Compare, func(f scenario.Figure) bool { return f.Name == figure })
}

// withoutUnfit removes runs from a set if the generator was saturated or other programs exceeded the bounds. It adds a
// note on each removed run to c.
func withoutUnfit(c *result.AB, set []recorded) []recorded {
	return slices.DeleteFunc(set, func(r recorded) bool {
		bounds := c.Plan.Throw
		if !machine.Ours(r.result.Run) { // the control plane may be one of the other processes
			bounds.Other = 1
		}
		why := unfit(bounds, memberOf(r.dir, r.result))
		if why != "" {
			c.Thrown++
			if len(r.result.Measurements.Generator.Saturated) == 0 {
				why += "; --discard-steal, --discard-other and --discard-io set the bounds"
			}
			c.Notes = append(c.Notes, r.dir+leftOut+why)
		}
		return why != ""
	})
}

// leftOut is the text between the run and the reason in the note on a run that the comparison excludes.
const leftOut = " is left out: "

// inBoth returns the ID of a run that is in both sets. both is false if there is no such run.
func inBoth(a, b []recorded) (id string, both bool) {
	for _, r := range b {
		id = r.result.Run.ID
		if id != "" && slices.ContainsFunc(a, func(o recorded) bool { return o.result.Run.ID == id }) {
			return id, true
		}
	}
	return "", false
}

// Write writes a comparison of recorded runs into a new directory.
func Write(out string, c result.AB) (dir string, err error) {
	if dir, _, err = rundir.Make(out, c.Scenario+"-compare", time.Now()); err != nil {
		return "", err
	}
	return dir, write(dir, c)
}

// memberLike returns a recorded run as a member of a comparison. It removes metrics that the run's scenario defines
// differently from the scenario `like`, and adds a note on each removed metric to c.
func memberLike(c *result.AB, like *scenario.Scenario, r recorded) result.Member {
	m := memberOf(r.dir, r.result)
	for _, f := range like.Compare {
		at := slices.IndexFunc(r.scenario.Compare, func(o scenario.Figure) bool { return o.Name == f.Name })
		if at < 0 {
			continue
		}
		other := r.scenario.Compare[at]
		other.Spread = f.Spread
		if _, has := m.Values[f.Name]; has && !reflect.DeepEqual(f, other) {
			delete(m.Values, f.Name)
			c.Notes = append(c.Notes, fmt.Sprintf("metric %s is defined differently in %s", f.Name, r.dir))
		}
	}
	return m
}

func sideOf(path string, r recorded) result.Side {
	return result.Side{Spec: []string{path}, Set: r.result.Run.Overrides, Variant: r.result.Run.Variant, Versions: r.result.Run.Versions}
}

// maxDeep is the maximum number of levels below the given directory in which readSet searches for runs.
const maxDeep = 2

// readSet reads the runs in a directory and its subdirectories. It judges the runs that have no result yet.
func readSet(ctx context.Context, dir string) (all []recorded, err error) {
	dirs, err := runsIn(dir, 0)
	if err != nil {
		return nil, err
	}
	if len(dirs) == 0 {
		return nil, exitcode.Usagef("%s: %w (specify the directory of a run, or a directory that contains runs)", dir, errNoRun)
	}
	for _, d := range dirs {
		r := recorded{dir: d}
		switch err := result.ReadJSON(d, result.ResultFile, &r.result); {
		case err != nil && !isWhole(d):
			return nil, exitcode.Usagef("%s: %w (remove that run from the baseline, then save it again)", d, err)
		case errors.Is(err, fs.ErrNotExist): // not judged yet
			if scratch.Locked(d) {
				return nil, exitcode.Usagef("%s: the run is still active (wait until it ends)", d)
			}
			if r.result, err = judge.Judge(ctx, d); err != nil {
				return nil, err
			}
		case err != nil:
			return nil, exitcode.Usagef("%s: %w (`loadgen report %s` rewrites it)", d, err, shell.Quote(d))
		}
		if r.result.Run.Started.IsZero() {
			return nil, exitcode.Usagef("%s: the start time of the run is unknown, because %s is missing or damaged (`loadgen report %s` checks the other files)", d, result.RunFile, shell.Quote(d))
		}
		text, err := result.ReadFile(d, result.ScenarioFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d, err)
		}
		if r.scenario, err = scenario.ParseRecorded(filepath.Join(d, result.ScenarioFile), text); err != nil {
			return nil, exitcode.UsageError(err)
		}
		all = append(all, r)
	}
	return once(all), nil
}

// errNoRun is the error for a directory without runs.
var errNoRun = errors.New("the directory contains no run")

// isWhole reports whether dir contains the measurements of a run. A baseline contains only results.
func isWhole(dir string) bool {
	return slices.ContainsFunc([]string{result.TimelineFile, result.MeasurementsFile, result.TSDBDir}, func(name string) bool {
		return !isNew(filepath.Join(dir, name))
	})
}

// once removes duplicates of a run from a list.
func once(all []recorded) []recorded {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(r recorded) bool {
		id := r.result.Run.ID
		again := id != "" && seen[id]
		seen[id] = true
		return again
	})
}

func runsIn(dir string, depth int) (all []string, err error) {
	ours, err := result.IsRunDir(dir)
	switch {
	case err != nil:
		return nil, exitcode.Usagef("%s: %w (specify the directory of a run)", dir, userfile.Cause(err))
	case ours:
		return []string{dir}, nil
	case depth == maxDeep:
		return nil, nil
	}
	if _, err := os.Stat(filepath.Join(dir, result.ABFile)); err == nil && depth > 0 {
		return nil, nil // the runs of an A/B comparison do not belong to this set
	} else if err == nil {
		return nil, exitcode.Usagef("%s: an A/B comparison has two sets of runs (specify one of them: %s or %s)", dir, filepath.Join(dir, "a"), filepath.Join(dir, "b"))
	}
	uncounted, err := uncountedIn(dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, exitcode.Usagef("%s: %w", dir, userfile.Cause(err))
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(path); err != nil || !info.IsDir() || slices.Contains(uncounted, e.Name()) { // Stat follows links
			continue
		}
		below, err := runsIn(path, depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, below...)
	}
	return all, nil
}

// uncountedIn returns the names of the runs to ignore in dir, if dir has the runs of side A or B of an A/B comparison:
// the warm-up run, interrupted runs, and runs of discarded pairs. Otherwise it returns nil.
func uncountedIn(dir string) (names []string, err error) {
	whole, err := filepath.EvalSymlinks(dir)
	if err == nil {
		whole, err = filepath.Abs(whole)
	}
	if err != nil {
		return nil, exitcode.UsageError(err)
	}
	parent := filepath.Dir(whole)
	if _, err := os.Stat(filepath.Join(parent, result.ABFile)); err != nil {
		return nil, nil
	}
	c, err := Read(parent)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(whole)
	if err != nil {
		return nil, exitcode.Usagef("%s: %w", dir, userfile.Cause(err))
	}
	for _, e := range entries { // an interrupted run does not belong to a pair
		counts := slices.ContainsFunc(Counted(c.Pairs), func(p result.Pair) bool { return filepath.Base(memberDir("", p.Number)) == e.Name() })
		if !counts {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// unlike returns the first field in which two scenarios differ, or "" if they do not differ. It ignores fields that
// may differ between A and B, such as the control plane and the seed.
func unlike(a, b *scenario.Scenario) string {
	of := func(s *scenario.Scenario) map[string]any {
		c := *s
		c.Bundle() // identifies replayed files by their content
		c.ControlPlane, c.Seed, c.Variant, c.Gates, c.Compare, c.Description = scenario.Scenario{}.ControlPlane, 0, "", nil, nil, ""
		c.Variants, c.Capacity = nil, nil
		var fields map[string]any
		text, err := yaml.Marshal(&c)
		if err != nil || yaml.Unmarshal(text, &fields) != nil {
			return nil
		}
		return fields
	}
	if a.Name != b.Name {
		return "name"
	}
	fa, fb := of(a), of(b)
	for _, name := range keys(fa, fb) {
		if !reflect.DeepEqual(fa[name], fb[name]) {
			return name
		}
	}
	return ""
}

// keys returns the keys of both maps, sorted and without duplicates.
func keys[V any](a, b map[string]V) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}

// differences lists the settings, versions, hosts and seeds that differ between the sets.
func differences(sets [2][]recorded) []result.Difference {
	all := []result.Difference{}
	facts := func(r recorded) map[string]string {
		run := r.result.Run
		f := result.Facts(run.Versions, run.Host)
		var node any
		if text, err := yaml.Marshal(r.scenario.ControlPlane); err == nil && yaml.Unmarshal(text, &node) == nil {
			runs.Flatten(f, "controlPlane", node)
		}
		f["variant"], f["seed"] = run.Variant, fmt.Sprint(run.Seed)
		return f
	}
	values := func(set []recorded) map[string][]string {
		of := map[string][]string{}
		for _, r := range set {
			for name, v := range facts(r) {
				if !slices.Contains(of[name], v) {
					of[name] = append(of[name], v)
				}
			}
		}
		return of
	}
	a, b := values(sets[0]), values(sets[1])
	for _, name := range keys(a, b) {
		if slices.Sort(a[name]); !slices.Equal(a[name], slices.Sorted(slices.Values(b[name]))) {
			all = append(all, result.Difference{Name: name, A: strings.Join(a[name], ", "), B: strings.Join(b[name], ", ")})
		}
	}
	return all
}

// judgeSets compares the two sets of runs in c and sets the results in c.
func judgeSets(c *result.AB) {
	for _, gated := range []bool{true, false} {
		var of []*result.ABFigure
		var sets []paired.Sets
		var bounds []string
		for i := range c.Figures {
			f := &c.Figures[i]
			if f.Gated != gated {
				continue
			}
			f.Changes, f.Detail = []float64{}, ""
			a, lowerA := valuesOf(f, "A", c.Sets.A)
			b, lowerB := valuesOf(f, "B", c.Sets.B)
			f.MedianA, f.MedianB = median(a), median(b)
			showSides(f, sidesOf(a, b), a, b)
			if lowerA != "" || lowerB != "" && f.Better == "higher" {
				f.Detail = cmp.Or(lowerA, lowerB)
			}
			of, sets, bounds = append(of, f), append(sets, setsOf(f, a, b)), append(bounds, lowerB)
		}
		for i, j := range paired.JudgeSets(c.Plan, sets) {
			fill(of[i], j)
			checkLowerBound(of[i], bounds[i])
			switch {
			case of[i].Detail != "":
			case sets[i].Differences && tooFew(*c) == "":
				of[i].Detail = byDifference(of[i])
			case of[i].Answer != result.CouldNotTell:
			case tooFew(*c) != "":
				of[i].Detail = tooFew(*c)
			case len(c.Plan.Looks) == 0:
				of[i].Detail = "too few runs for the first interim analysis"
			default:
				of[i].Detail = between(j)
			}
		}
	}
	conclude(c, min(len(c.Sets.A), len(c.Sets.B)))
	if why := tooFew(*c); why != "" && !slices.ContainsFunc(c.Figures, func(f result.ABFigure) bool { return f.Gated }) {
		c.Reasons = append(c.Reasons, why)
	}
	checkVerdicts(c, c.Sets.A, c.Sets.B)
}

// tooFew returns the reason why the sets have too few runs for an answer, or "" if they have enough.
func tooFew(c result.AB) string {
	switch a, b := len(c.Sets.A), len(c.Sets.B); {
	case a == 1 && b == 1:
		return "A and B have only one run each, which is too few for a test"
	case min(a, b) < paired.MinRuns:
		return fmt.Sprintf("A has %d runs and B has %d, but each needs at least %d", a, b, paired.MinRuns)
	}
	return ""
}

// setsOf returns the values of a metric for the statistical test: their logarithms, or the values themselves if one of
// them is 0 or negative. If values are missing, it returns an empty Sets.
func setsOf(f *result.ABFigure, a, b []float64) (s paired.Sets) {
	if f.Detail != "" || len(a) == 0 || len(b) == 0 {
		return s
	}
	if slices.Min(a) <= 0 || slices.Min(b) <= 0 { // there is no logarithm
		s = paired.Sets{A: a, B: b, Differences: true, Level: math.Abs(stat.Mean(a, nil)), Gone: gone(f, a, b)}
	} else {
		s = paired.Sets{A: logs(a), B: logs(b)}
	}
	if f.Better == "higher" {
		s.A, s.B = s.B, s.A
	}
	return s
}

func logs(values []float64) []float64 {
	all := make([]float64, len(values))
	for i, v := range values {
		all[i] = math.Log(v)
	}
	return all
}

// valuesOf returns the values of a metric in a set of runs. lower describes a run in which only a lower bound of the
// value is known; "" means that all values are exact.
func valuesOf(f *result.ABFigure, side string, set []result.Member) (all []float64, lower string) {
	for _, m := range set {
		if slices.Contains(m.AtLeast, f.Name) {
			lower = fmt.Sprintf("only a lower bound of the value in %s (%s) is known", m.Dir, side)
		}
		if v, ok := m.Values[f.Name]; ok {
			all = append(all, v)
		} else {
			f.Detail = fmt.Sprintf("no data in %s (%s)", m.Dir, side)
		}
	}
	return all, lower
}
