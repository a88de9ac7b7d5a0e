package capacity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/series"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// RunOptions configures a search on real control planes.
type RunOptions struct {
	run.Options // options of each trial; each trial reads its Scenario by Read
	// Read reads the scenario and applies the settings `sets`, which include the load.
	Read  func(sets []string) (*scenario.Scenario, error)
	Width float64
	Most  int // maximum number of trials
	// Build builds the binary ControlPlane. Run calls it after all other checks. Nil means that the binary exists
	// already.
	Build func(ctx context.Context) error
	// Resume is the directory of the search to resume. Empty means a new search.
	Resume string
}

// Run searches for the capacity, and returns the search and its directory. If Run fails, no trial has a result. Run
// keeps the files of a failed first trial, so that you can resume the search.
func Run(ctx context.Context, o RunOptions) (result.Capacity, string, error) {
	s := onPlanes(o)
	return s.run(ctx)
}

// onPlanes returns a search session whose trials run on real control planes.
func onPlanes(o RunOptions) session {
	return session{o: o, Series: series.New(), uses: usesOf}
}

// session is a search in progress, with its options and its directory.
type session struct {
	series.Series
	o RunOptions
	// uses returns the resources with the highest utilisation in a phase of a run, and the number of processors that
	// each component used.
	uses func(ctx context.Context, dir string, p result.Phase) (most []result.Use, cores map[string]float64, err error)
	// name, turn and further are set only if two searches alternate. name is the prefix of progress lines. turn waits
	// for the turn of this search and returns a function that ends the turn; it returns nil if the other search failed.
	// further reports whether the other search still has no answer.
	name    string
	turn    func() (end func(failed bool))
	further func() bool

	c      result.Capacity
	binary series.Binary
	search *Search
	// before is the recorded search to resume.
	before result.Capacity
}

func (s *session) run(ctx context.Context) (result.Capacity, string, error) {
	defer func() { s.Dir.Unlock() }()
	if err := s.open(ctx); err != nil {
		return s.c, "", err
	}
	if err := s.build(ctx); err != nil {
		return s.c, "", errors.Join(err, s.Dir.Remove())
	}
	s.c.InTurns = false
	return s.goOn(ctx)
}

// goOn runs the trials of a new or resumed search until it has an answer or fails.
func (s *session) goOn(ctx context.Context) (result.Capacity, string, error) {
	if s.o.Resume == "" { // do not rewrite the file of a resumed search before its first new trial
		if err := s.write(); err != nil {
			return s.c, "", errors.Join(err, s.Dir.Remove())
		}
	}
	err := s.trials(ctx)
	if len(s.c.Trials) == 0 {
		if ctx.Err() != nil && s.o.Resume != "" {
			return s.c, "", series.EndedEarlyError("interrupted before the first trial was complete; " + s.ResumeHint(""))
		}
		return s.c, "", s.Abandon(ctx, err, s.stays())
	}
	if err != nil && ctx.Err() == nil {
		s.c.ExitCode = exitcode.Of(err)
	}
	next := s.nextStep()
	switch why := s.Note(ctx, err); {
	case why != "":
		next = why
	case len(s.c.Trials) == len(s.before.Trials) && !s.before.Ended.IsZero(): // the search had already ended before it was resumed
		s.c.Ended = s.before.Ended
	default:
		s.c.Ended = time.Now().UTC()
	}
	if next != "" {
		s.c.Notes = append(s.c.Notes, next)
	}
	return s.c, s.Dir.Path, s.write()
}

func (s *session) open(ctx context.Context) error {
	if err := s.Lock(s.o.Resume); err != nil {
		return err
	}
	if err := s.plan(); err != nil {
		return err
	}
	if err := s.check(ctx); err != nil {
		return err
	}
	if longest := longestPhase(s.o.Scenario); longest < minTrial {
		s.step(fmt.Sprintf("warning: the longest phase of a trial lasts only %s (to show whether the control plane sustains a load, a phase should last at least %s)", longest, minTrial))
	}
	if s.o.Resume != "" {
		return s.resume()
	}
	return s.Create(s.o.Out, s.c.Scenario, s.c.Started)
}

// plan checks the scenario's capacity field and its range, and creates the search.
func (s *session) plan() (err error) {
	sc := s.o.Scenario
	k := sc.Capacity
	if k == nil {
		return exitcode.UsageError(sc.Errorf("capacity", "write capacity: {field: background.NAME.rate, from: 50/s, to: 5000/s}, or use a built-in scenario capacity-*", "scenario %s does not name the field that the search should raise", sc.Name))
	}
	s.c = result.Capacity{
		Schema: result.CapacitySchema, Scenario: sc.Name, Field: k.Field, Unit: string(k.Unit()), From: k.From.Value, To: k.To.Value, Width: s.o.Width,
		Started: time.Now().UTC(), Labels: s.o.Labels, Overrides: s.o.Overrides, Trials: []result.Trial{}, GaveWay: []result.GaveWay{},
	}
	if err := s.digests(*sc); err != nil {
		return err
	}
	if s.c.AbortOn, err = s.o.Fuse.Conditions(); err != nil {
		return err
	}
	search := Default(s.value(k.From.Value), s.value(k.To.Value))
	search.Width, search.Trials = s.o.Width, s.o.Most
	if k.Unit() != scenario.PerSec {
		search.Growth, search.Whole = stateGrowth, true
	}
	if err := search.checkEnd(); err != nil {
		return exitcode.UsageError(err)
	}
	if s.search, err = New(search); err != nil {
		return exitcode.UsageError(sc.Errorf("capacity", "use a wider range, because loads are rounded to whole numbers above 0, and rates to three digits", "%v", err))
	}
	return nil
}

// minTrial is the recommended minimum length of a phase in a trial.
const minTrial = 20 * time.Second

// longestPhase returns the length of the longest phase. A phase that ends by a condition counts with its time limit.
func longestPhase(sc *scenario.Scenario) (longest time.Duration) {
	for _, p := range sc.Phases {
		longest = max(longest, p.For.D(), p.Within.D())
	}
	return longest
}

// digests sets Digest and PlaneDigest. PlaneDigest covers the control plane, its faults, the seed and the name of the
// variant. Digest covers the other parts of the scenario, except the range of the search. Two searches are comparable
// if they have the same Digest.
func (s *session) digests(sc scenario.Scenario) (err error) {
	plane := scenario.Scenario{ControlPlane: sc.ControlPlane, Seed: sc.Seed, Variant: sc.Variant}
	sc.ControlPlane, sc.Seed, sc.Capacity, sc.Variant, sc.Variants = scenario.Scenario{}.ControlPlane, 0, nil, "", nil
	sc.Phases = slices.Clone(sc.Phases)
	for i, p := range sc.Phases {
		plane.Phases = append(plane.Phases, scenario.Phase{Name: p.Name, Faults: p.Faults})
		sc.Phases[i].Faults = nil
	}
	if s.c.Digest, err = series.ScenarioDigest(sc); err != nil {
		return err
	}
	s.c.PlaneDigest, err = series.ScenarioDigest(plane)
	return err
}

// build builds the binary if necessary, and reads its digest. A resumed search needs the same binary as its earlier
// trials.
func (s *session) build(ctx context.Context) error {
	if s.o.Build != nil {
		if err := s.o.Build(ctx); err != nil {
			return err
		}
	}
	binary, changed, err := s.Binary(s.o.ControlPlane, &s.c.Build)
	if changed {
		return exitcode.Usagef("--resume %s: the earlier trials used a different controlplane binary (specify that binary with --controlplane, or start a new search)", s.Dir.Path)
	}
	s.binary = binary
	return err
}

func (s *session) resume() error {
	before, err := Read(s.o.Resume)
	if err != nil {
		if isSearch(filepath.Join(s.o.Resume, sideDirs[0])) {
			return exitcode.Usagef("--resume %s: the search in this directory compares A with B (use the same --a and --b)", s.o.Resume)
		}
		return err
	}
	s.before = before
	if why := s.otherSearch(before); why != "" {
		return exitcode.Usagef("--resume %s: %s", s.Dir.Path, why)
	}
	if !slices.Equal(before.AbortOn, s.c.AbortOn) {
		return exitcode.Usagef("--resume %s: the earlier trials had different abort conditions: %s (use the same --abort-on and --abort-rules)", s.Dir.Path, cmp.Or(strings.Join(before.AbortOn, " "), "none"))
	}
	if before.Digest != s.c.Digest || before.PlaneDigest != s.c.PlaneDigest {
		return exitcode.Usagef("--resume %s: the scenario has changed since the first trial (restore it from %s, or start a new search)", s.Dir.Path, filepath.Join(trialDir(1), result.ScenarioFile))
	}
	if s.o.Labels != nil && !maps.Equal(s.o.Labels, before.Labels) {
		return exitcode.Usagef("--resume %s: the labels cannot be changed after the first trial (remove --label)", s.Dir.Path)
	}
	s.o.Labels = before.Labels
	if err := s.CheckGenerator(before.Host, before.Versions.Stormglass, "trials", "search"); err != nil {
		return err
	}
	for n := len(before.Trials); n > 0 && !Outcome(before.Trials[n-1].Outcome).counts(); n-- {
		before.Trials = before.Trials[:n-1] // repeat the last trials that had no result
	}
	if len(before.Trials) < len(s.before.Trials) {
		s.before.Ended = time.Time{}
	}
	before.Ended, before.Notes, before.Width = time.Time{}, nil, s.c.Width
	s.c = before
	for _, t := range s.c.Trials {
		if outcome := Outcome(t.Outcome); outcome.counts() {
			s.search.Saw(t.Load, outcome)
		} else { // the generator may be able to send more now
			s.search.trials++
		}
	}
	s.conclude()
	return nil
}

func trialDir(number int) string { return fmt.Sprintf("trial-%02d", number) }

// stateGrowth is the factor by which nodes, pods, objects and watches grow from trial to trial. It is small because a
// load far above the capacity takes minutes to create and overloads the machine.
const stateGrowth = 1.2

// with returns the scenario with the given load and with the gates that addGates adds to every trial.
func (s *session) with(load float64) (*scenario.Scenario, error) {
	sc, err := s.o.Read(append(slices.Clone(s.o.Overrides), s.c.Field+"="+s.text(load)))
	if err != nil {
		return nil, err
	}
	addGates(sc)
	if _, err := gate.Compile(plan.Of(sc)); err != nil {
		return nil, exitcode.UsageError(err)
	}
	return sc, nil
}

// text formats a load as a value of the scenario field that the search raises.
func (s *session) text(load float64) string {
	if s.c.Unit == string(scenario.PerSec) {
		return strconv.FormatFloat(s.value(load), 'f', -1, 64) + "/s"
	}
	return strconv.FormatFloat(s.value(load), 'f', 0, 64)
}

// value rounds a load to a value that a trial can have: a whole number, or a rate with three significant digits.
func (s *session) value(load float64) float64 {
	if s.c.Unit != string(scenario.PerSec) || load >= 100 {
		return math.Round(load)
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(load, 'g', 3, 64), 64)
	return rounded
}

func (s *session) trials(ctx context.Context) error {
	for more := true; more; {
		var err error
		if more, err = s.next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// next runs the next trial. more is true if another trial may follow.
func (s *session) next(ctx context.Context) (more bool, err error) {
	if s.turn != nil {
		end := s.turn()
		if end == nil {
			return false, otherFailed{}
		}
		defer func() { end(err != nil) }()
	}
	if ctx.Err() != nil {
		return false, nil
	}
	load, more := s.search.Next()
	if !more && s.further != nil && s.further() {
		load, more = s.search.Further()
	}
	if !more {
		return false, nil
	}
	load = s.value(load)
	number := len(s.c.Trials) + 1
	s.step(fmt.Sprintf("trial %d: %s %s", number, s.c.Field, s.text(load)))
	t, err := s.try(ctx, number, load)
	if err != nil {
		return false, err
	}
	s.c.Trials = append(s.c.Trials, t)
	s.search.Saw(load, Outcome(t.Outcome))
	s.conclude()
	if err := s.write(); err != nil {
		return false, err
	}
	s.step(fmt.Sprintf("trial %d: %s is %s%s; %s", number, s.text(load), t.Outcome, because(t.Why), s.sofar()))
	return true, nil
}

func (s *session) step(text string) { s.o.Progress.Step(s.name + text) }

func because(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

// sofar describes the current interval of the capacity.
func (s *session) sofar() string {
	e := s.search.Estimate()
	switch {
	case s.search.bad == 0 && e.Held == 0:
		return "no trial has sustained its load yet"
	case s.search.bad == 0:
		return "the capacity lies above " + s.text(e.Held)
	}
	return fmt.Sprintf("the capacity lies between %s and %s", s.text(e.Low), s.text(e.High))
}

// conclude derives the search's answer, interval, failed gates, bottleneck and notes from the trials so far.
func (s *session) conclude() {
	e := s.search.Estimate()
	s.c.Answer = string(e.Answer)
	s.c.Low, s.c.Median, s.c.High, s.c.Held = nil, nil, nil, nil
	if s.search.bad > 0 && e.Answer != AboveRange && e.Answer != BelowRange { // if the answer is outside the range, the interval only reflects the range
		s.c.Low, s.c.Median, s.c.High = &e.Low, &e.Median, &e.High
	}
	if e.Held > 0 {
		s.c.Held = &e.Held
	}
	s.c.Confirmed = nil
	if e.Confirms > 0 {
		s.c.Confirmed = &result.Confirmed{Load: s.value(e.ConfirmLoad), Good: e.ConfirmGood, Trials: e.Confirms}
	}
	if s.c.ExitCode = exitcode.NoData; e.Answer == Found {
		s.c.ExitCode = exitcode.Pass
	}
	times := map[string]int{}
	first, lowest := []string{}, math.Inf(1) // first: gates that failed in the bad trial with the lowest load
	for _, t := range s.c.Trials {
		if t.Outcome == string(Bad) {
			if t.Load < lowest {
				first, lowest = wrong(t), t.Load
			}
			for _, name := range wrong(t) {
				times[name]++
			}
		}
	}
	s.c.Notes = slices.DeleteFunc(s.c.Notes, func(note string) bool { return strings.HasPrefix(note, busyMachine) })
	if note := busyTrials(s.c.Trials); note != "" {
		s.c.Notes = append(s.c.Notes, note)
	}
	s.c.GaveWay = []result.GaveWay{}
	for _, name := range slices.Sorted(maps.Keys(times)) {
		s.c.GaveWay = append(s.c.GaveWay, result.GaveWay{Gate: name, Trials: times[name]})
	}
	s.c.Bottleneck = bottleneck(s.c.Trials)
	isFirst := func(g result.GaveWay) int {
		if slices.Contains(first, g.Gate) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(s.c.GaveWay, func(a, b result.GaveWay) int {
		return cmp.Or(isFirst(a)-isFirst(b), cmp.Compare(b.Trials, a.Trials))
	})
}

// busyMachine is the prefix of the note on trials that ran on a busy machine.
const busyMachine = "machine: "

// busyTrials returns a note on trials that ran on a busy machine, or "" if no trial did.
func busyTrials(trials []result.Trial) string {
	busy, last := 0, ""
	for _, t := range trials {
		if len(t.Machine) > 0 {
			busy, last = busy+1, fmt.Sprintf("%s of trial %d", t.Machine[len(t.Machine)-1], t.Number)
		}
	}
	if busy == 0 {
		return ""
	}
	return fmt.Sprintf("%s%d of %d trials ran on a busy machine; reason for the last one: %s (on an idle machine the capacity may be higher)", busyMachine, busy, len(trials), last)
}

func (s *session) write() error {
	if err := rundir.WriteJSON(s.Dir.Path, result.CapacityFile, s.c); err != nil {
		return err
	}
	return exitcode.EnvironmentError(report.WriteCapacity(s.Dir.Path, s.c))
}

func isSearch(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, result.CapacityFile))
	return err == nil
}

// Read reads the search in dir.
func Read(dir string) (c result.Capacity, err error) {
	if err := result.ReadJSON(dir, result.CapacityFile, &c); err != nil {
		return c, exitcode.Usagef("%s: %v (is this a directory of `loadgen capacity`?)", dir, err)
	}
	if c.Schema != result.CapacitySchema {
		return c, exitcode.Usagef("%s: the file has the schema %q, but this loadgen reads %s", filepath.Join(dir, result.CapacityFile), c.Schema, result.CapacitySchema)
	}
	return c, nil
}
