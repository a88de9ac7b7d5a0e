// Package ab runs a scenario in pairs, A and B back to back on planes of their own, and tells whether B is worse.
//
// A pair has the same seed on both sides; which of them is first is drawn, in blocks of two pairs, so that each is
// first as often. The first pair warms the machine up and does not count. A pair beside which the machine did
// something else is thrown away whole, by bounds that are set beforehand and before its figures are looked at. After
// each look of the plan the pairs are judged; it ends when they have told, or with the last look.
package ab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/shell"
	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/compare"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/judge/paired"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// warmUp is the number of the pair that does not count.
const warmUp = 0

// mostThrown bounds the pairs that are thrown away, as a multiple of those that the plan asks for.
const mostThrown = 1

// Options of a comparison.
type Options struct {
	run.Options // of each run; Scenario is A's
	A, B        Side
	Plan        result.Plan
	// Gated names the figures that decide; empty: those whose calibrated spread allows it.
	Gated []string
	// Resume is the directory of a comparison to go on with; empty: a new one.
	Resume string
}

// Run runs pairs until they tell, and returns the comparison and its directory. An error means that nothing was
// compared; what was measured is kept, and can be resumed.
func Run(ctx context.Context, o Options) (c result.AB, dir string, err error) {
	return session{o: o, member: compare.RunWhole}.run(ctx)
}

// session is one comparison as it goes on.
type session struct {
	o Options
	// member makes one run in a directory; tests put a known plane in its place.
	member func(ctx context.Context, o run.Options) (result.Result, error)
	c      result.AB
	before []recorded // A's runs of a baseline
	dir    string
	made   []string // directories that were made for it
}

func (s session) run(ctx context.Context) (result.AB, string, error) {
	if err := s.open(); err != nil {
		return s.c, "", err
	}
	if err := s.write(); err != nil {
		return s.c, "", errors.Join(err, rundir.Remove(s.dir, s.made))
	}
	err := s.pairs(ctx)
	if len(s.c.Pairs) == 0 && s.o.Resume == "" {
		if err != nil && ctx.Err() == nil && s.hasRuns() {
			return s.c, "", err // its logs are named in the error
		}
		left := rundir.Remove(s.dir, s.made)
		if err == nil || ctx.Err() != nil {
			return s.c, "", run.Interrupted(left)
		}
		return s.c, "", errors.Join(err, left)
	}
	if err == nil && ctx.Err() == nil {
		s.c.Ended = time.Now().UTC()
	}
	switch {
	case ctx.Err() != nil:
		s.c.Notes = append(s.c.Notes, "interrupted; "+s.goOn())
	case err != nil:
		s.c.Notes = append(s.c.Notes, "it ended early: "+err.Error()+"; "+s.goOn())
		if s.c.Answer != result.Regressed {
			s.c.ExitCode = exitcode.Of(err)
		}
	}
	return s.c, s.dir, s.write()
}

// hasRuns reports whether a run has left something in the directory.
func (s *session) hasRuns() bool {
	for _, side := range []string{"a", "b"} {
		if entries, err := os.ReadDir(filepath.Join(s.dir, side)); err == nil && len(entries) > 0 {
			return true
		}
	}
	return false
}

// goOn says how to resume.
func (s *session) goOn() string {
	return "the same command with `--resume " + shell.Quote(s.dir) + "` in place of --out goes on with it"
}

// open makes the comparison and its directory, or reads those that are to be resumed.
func (s *session) open() (err error) {
	if err := paired.Check(s.o.Plan); err != nil {
		return exitcode.UsageError(err)
	}
	if s.o.B.Baseline != "" {
		return exitcode.Usagef("--b %s: a baseline is what was before: give it as --a", s.o.B.Baseline)
	}
	// A scenario beside itself tells the spreads, by which others decide.
	figures, err := figuresOf(s.o, len(s.o.A.Spec)+len(s.o.B.Spec) == 0)
	if err != nil {
		return err
	}
	s.c = result.AB{
		Schema: result.ABSchema, Scenario: s.o.A.Scenario.Name, Started: time.Now().UTC(), Seed: s.o.A.Scenario.Seed,
		A: s.o.A.Side, B: s.o.B.Side, Plan: s.o.Plan, Pairs: []result.Pair{}, Figures: figures,
	}
	if err := s.baseline(); err != nil {
		return err
	}
	judgePairs(&s.c)
	if s.o.Resume == "" {
		s.dir, s.made, err = rundir.Make(s.o.Out, s.c.Scenario+"-ab", s.c.Started)
		return err
	}
	return s.resume()
}

// baseline reads A's runs where they were recorded before. B's are no pairs with them.
func (s *session) baseline() error {
	switch {
	case s.o.A.Baseline == "":
		return nil
	case len(s.o.A.Spec) > 1:
		return exitcode.Usagef("--a %s: a baseline is all that A is (leave the other --a out)", s.o.A.Baseline)
	}
	set, err := readSet(context.Background(), s.o.A.Baseline)
	if err != nil {
		return fmt.Errorf("--a %w", err)
	}
	if len(set) < paired.LeastRuns {
		return exitcode.Usagef("--a %s: %d runs tell no spread (a baseline needs at least %d)", s.o.A.Baseline, len(set), paired.LeastRuns)
	}
	s.c.Sets, s.before = &result.Sets{Differences: []result.Difference{}}, set
	for _, r := range set {
		if field := unlike(r.scenario, s.o.B.Scenario); field != "" {
			return exitcode.Usagef("--a %s differs in %s of the scenario from %s", r.dir, field, s.c.Scenario)
		}
		s.c.Sets.A = append(s.c.Sets.A, memberLike(&s.c, s.o.B.Scenario, r))
	}
	s.c.A.Versions = set[0].result.Run.Versions
	return nil
}

func (s *session) resume() error {
	before, err := Read(s.o.Resume)
	if err != nil {
		return err
	}
	s.dir = s.o.Resume
	switch {
	case before.Scenario != s.c.Scenario:
		return exitcode.Usagef("--resume %s: it is of scenario %s", s.dir, before.Scenario)
	case !slices.Equal(before.A.Spec, s.c.A.Spec) || !slices.Equal(before.B.Spec, s.c.B.Spec):
		return exitcode.Usagef("--resume %s: it compares %s with %s (give the same --a and --b)", s.dir, specText(before.A), specText(before.B))
	case !sameSide(before.A, s.c.A) || !sameSide(before.B, s.c.B):
		return exitcode.Usagef("--resume %s: settings, binary or revision of a side differ from those of its first pairs (give the same --set; name a revision by its commit)", s.dir)
	case !reflect.DeepEqual(s.c.Plan, paired.Default()) && !reflect.DeepEqual(s.c.Plan, before.Plan):
		return exitcode.Usagef("--resume %s: its plan cannot be changed after pairs were seen (leave out --looks, --alpha and bounds)", s.dir)
	case len(s.o.Gated) > 0 && !slices.Equal(gatedOf(s.c.Figures), gatedOf(before.Figures)):
		return exitcode.Usagef("--resume %s: the figures that decide cannot be changed after pairs were seen (leave out --figure)", s.dir)
	}
	for i, p := range before.Pairs { // one that was cut off is run again
		if p.A.Verdict == "" && s.c.A.Baseline == "" || p.B.Verdict == "" {
			before.Pairs = before.Pairs[:i]
			break
		}
	}
	if s.c.Sets != nil && before.Sets != nil {
		s.c.Sets.Differences = before.Sets.Differences
	}
	before.Ended, before.Notes, before.Sets = time.Time{}, nil, s.c.Sets
	s.c = before
	judgePairs(&s.c)
	return nil
}

// sameSide reports whether two sides run the same.
func sameSide(a, b result.Side) bool {
	return slices.Equal(a.Set, b.Set) && a.Variant == b.Variant && a.ControlPlane == b.ControlPlane && a.Revision == b.Revision && a.Baseline == b.Baseline
}

// gatedOf names the figures that decide, sorted.
func gatedOf(figures []result.ABFigure) (names []string) {
	for _, f := range figures {
		if f.Gated {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}

// pairs runs pairs until they have told, or the plan has no further look.
func (s *session) pairs(ctx context.Context) error {
	plan := s.c.Plan
	for ctx.Err() == nil {
		counted := len(countedPairs(s.c.Pairs))
		if paired.IsLook(plan, counted) && decided(s.c) || counted >= plan.Most() {
			return nil
		}
		if s.c.Thrown > mostThrown*plan.Most() {
			s.c.Notes = append(s.c.Notes, fmt.Sprintf("given up: %d pairs were thrown away", s.c.Thrown))
			return nil
		}
		number := len(s.c.Pairs)
		p, err := s.pair(ctx, number, counted)
		if err != nil {
			return err
		}
		s.c.Pairs = append(s.c.Pairs, p)
		judgePairs(&s.c)
		if err := s.write(); err != nil {
			return err
		}
		s.o.Progress.Step(told(s.c, p))
	}
	return nil
}

// told is a line about a pair that has ended and where that leaves the comparison.
func told(c result.AB, p result.Pair) string {
	counted := len(countedPairs(c.Pairs))
	switch {
	case p.Number == warmUp:
		return "the pair to warm up has run"
	case p.Thrown != "":
		return fmt.Sprintf("pair %d thrown away: %s", p.Number, p.Thrown)
	case paired.IsLook(c.Plan, counted):
		return fmt.Sprintf("after %d pairs: %s", counted, c.Answer)
	}
	return fmt.Sprintf("%d of at most %d pairs", counted, c.Plan.Most())
}

// pair runs A and B in the order that is drawn for them.
func (s *session) pair(ctx context.Context, number, counted int) (p result.Pair, err error) {
	p = result.Pair{Number: number, Order: order(s.c.Seed, counted+1)}
	if number == warmUp {
		p.Order = order(s.c.Seed, warmUp)
	}
	if s.c.A.Baseline != "" {
		p.Order = "B"
	}
	for i, name := range p.Order {
		side, member := s.o.A, &p.A
		if name == 'B' {
			side, member = s.o.B, &p.B
		}
		s.o.Progress.Step(fmt.Sprintf("pair %d, %c: run %d of %d (%d of at most %d pairs counted)", number, name, i+1, len(p.Order), counted, s.c.Plan.Most()))
		if *member, err = s.runSide(ctx, side, number, string(name)); err != nil {
			return p, err
		}
		if number == warmUp {
			s.versions(name, *member)
		}
	}
	p.Thrown = thrown(s.c.Plan.Throw, p)
	return p, nil
}

// order is "AB" or "BA", as often the one as the other: pairs 1 and 2 differ, as do 3 and 4, and so on.
func order(seed int64, pair int) string {
	block := (pair + 1) / 2
	first := rand.New(rand.NewPCG(uint64(seed), uint64(block))).IntN(2)
	if (first+pair)%2 == 0 {
		return "AB"
	}
	return "BA"
}

// runSide makes one run and takes its figures. Its seed is the pair's.
func (s *session) runSide(ctx context.Context, side Side, number int, name string) (result.Member, error) {
	o := s.o.Options
	seeded := *side.Scenario
	seeded.Seed += int64(number)
	sub := memberDir(name, number)
	o.Scenario, o.Overrides, o.Out = &seeded, side.Set, filepath.Join(s.dir, sub)
	if side.ControlPlane != "" {
		o.ControlPlane = side.ControlPlane
	}
	if err := os.RemoveAll(o.Out); err != nil { // what a run that was cut off has left
		return result.Member{}, exitcode.EnvironmentError(err)
	}
	res, err := s.member(ctx, o)
	if err != nil {
		return result.Member{}, fmt.Errorf("pair %d, %s: %w", number, name, err)
	}
	if ctx.Err() != nil {
		return result.Member{}, context.Cause(ctx)
	}
	nameUnits(&s.c, res)
	if s.before != nil && len(s.c.Sets.Differences) == 0 {
		s.c.Sets.Differences = slices.Concat([]result.Difference{}, differences([2][]recorded{s.before, {{result: res, scenario: &seeded}}}))
	}
	return memberOf(sub, res), nil
}

// nameUnits takes from a run what its figures are measured in.
func nameUnits(c *result.AB, res result.Result) {
	for i := range c.Figures {
		f := &c.Figures[i]
		if at := slices.IndexFunc(res.Figures, func(r result.Figure) bool { return r.Name == f.Name }); at >= 0 {
			f.Unit, f.Better = res.Figures[at].Unit, res.Figures[at].Better
		}
	}
}

// memberDir is the directory of a run in that of its comparison, which has one of each side: a/03, b/03.
func memberDir(side string, pair int) string {
	return filepath.Join(strings.ToLower(side), fmt.Sprintf("%02d", pair))
}

// memberOf takes what a comparison needs from a judged run.
func memberOf(dir string, res result.Result) result.Member {
	m := result.Member{Dir: dir, Verdict: res.Verdict, Values: map[string]float64{}, Unfit: res.Measurements.Generator.Saturated, Versions: res.Run.Versions}
	for _, f := range res.Figures {
		if f.Value == nil {
			continue
		}
		m.Values[f.Name] = *f.Value
		if f.AtLeast {
			m.AtLeast = append(m.AtLeast, f.Name)
		}
	}
	sum := result.Machine{CPUWaitSeconds: new(0.0), IOWaitSeconds: new(0.0)}
	add := func(to **float64, v *float64) {
		if *to == nil || v == nil {
			*to = nil
			return
		}
		**to += *v
	}
	known := len(res.Measurements.Phases) > 0
	for _, p := range res.Measurements.Phases {
		m.Seconds += p.Seconds()
		if p.Machine == nil {
			known = false
			continue
		}
		sum.BusySeconds += p.Machine.BusySeconds
		sum.OwnSeconds += p.Machine.OwnSeconds
		sum.StealSeconds += p.Machine.StealSeconds
		add(&sum.CPUWaitSeconds, p.Machine.CPUWaitSeconds)
		add(&sum.IOWaitSeconds, p.Machine.IOWaitSeconds)
	}
	if known {
		m.Machine = &sum
	}
	m.CPUs = res.Run.Host.CPUs
	return m
}

// thrown says why a pair is thrown away; empty: it counts. It looks at the machine and the generator, not at figures.
func thrown(bounds result.Throw, p result.Pair) string {
	for _, side := range []struct {
		name string
		m    result.Member
	}{{"A", p.A}, {"B", p.B}} {
		if len(side.m.Unfit) > 0 {
			return side.name + ": " + side.m.Unfit[0]
		}
		machine := side.m.Machine
		if machine == nil || side.m.Seconds <= 0 || side.m.CPUs == 0 {
			continue
		}
		all := side.m.Seconds * float64(side.m.CPUs)
		for _, b := range []struct {
			what         string
			share, bound float64
		}{
			{"of the processors' time was taken by the hypervisor", machine.StealSeconds / all, bounds.Steal},
			{"of the processors' time was used by other processes", (machine.BusySeconds - machine.OwnSeconds) / all, bounds.Other},
			{"of the time some process waited for a disk", valueOr(machine.IOWaitSeconds) / side.m.Seconds, bounds.IO},
		} {
			if b.share > b.bound {
				return fmt.Sprintf("%s: %.1f%% %s (bound %.1f%%)", side.name, 100*b.share, b.what, 100*b.bound)
			}
		}
	}
	return ""
}

func valueOr(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

func (s *session) versions(side rune, m result.Member) {
	if side == 'A' {
		s.c.A.Versions = m.Versions
	} else {
		s.c.B.Versions = m.Versions
	}
}

// figuresOf lists the scenario's figures, gated ones first, of which there must be one unless all may be advice.
func figuresOf(o Options, advice bool) ([]result.ABFigure, error) {
	if _, err := gate.Figures(o.A.Scenario); err != nil {
		return nil, exitcode.UsageError(err)
	}
	var all []result.ABFigure
	for _, f := range o.A.Scenario.Compare {
		one := result.ABFigure{Name: f.Name, Changes: []float64{}}
		if f.Spread != nil {
			one.Calibrated = new(f.Spread.Value)
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, exitcode.UsageError(o.A.Scenario.Errorf("compare", "write compare: [{name: ..., objective: ...}], or take ci-gate", "scenario %s has no figures to compare", o.A.Scenario.Name))
	}
	if len(o.Gated) > 0 {
		return choose(all, o.Gated)
	}
	var byspread []*result.ABFigure
	for i := range all {
		f := &all[i]
		switch {
		case f.Calibrated == nil:
			f.Advice = "its spread was not calibrated"
		case *f.Calibrated > o.Plan.Spread:
			f.Advice = fmt.Sprintf("its spread of %.1f%% is over %.1f%%", 100**f.Calibrated, 100*o.Plan.Spread)
		default:
			byspread = append(byspread, f)
		}
	}
	slices.SortStableFunc(byspread, func(a, b *result.ABFigure) int { return cmp.Compare(*a.Calibrated, *b.Calibrated) })
	for i, f := range byspread {
		if f.Gated = i < o.Plan.Figures; !f.Gated {
			f.Advice = fmt.Sprintf("%d others are calmer", o.Plan.Figures)
		}
	}
	if len(byspread) == 0 && !advice {
		return nil, exitcode.Usagef("no figure of scenario %s has a calibrated spread of at most %.1f%% (name those that decide with --figure; `loadgen ab %s` without --a and --b prints their spreads)",
			o.A.Scenario.Name, 100*o.Plan.Spread, o.A.Scenario.Name)
	}
	return gatedFirst(all), nil
}

func choose(all []result.ABFigure, names []string) ([]result.ABFigure, error) {
	var known []string
	for i := range all {
		known = append(known, all[i].Name)
		if all[i].Gated = slices.Contains(names, all[i].Name); !all[i].Gated {
			all[i].Advice = "not named by --figure"
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, exitcode.Usagef("--figure %s: the scenario compares no such figure (%s)", name, strictyaml.Hint(name, known, "it has "+strings.Join(known, ", ")))
		}
	}
	return gatedFirst(all), nil
}

func gatedFirst(all []result.ABFigure) []result.ABFigure {
	slices.SortStableFunc(all, func(a, b result.ABFigure) int {
		switch {
		case a.Gated == b.Gated:
			return 0
		case a.Gated:
			return -1
		}
		return 1
	})
	return all
}

func (s *session) write() error { return write(s.dir, s.c) }

func write(dir string, c result.AB) error {
	if err := rundir.WriteJSON(dir, result.ABFile, c); err != nil {
		return err
	}
	if err := report.WriteAB(dir, c); err != nil {
		return exitcode.Environmentf("%w", err)
	}
	return nil
}

// Read reads the comparison in dir.
func Read(dir string) (c result.AB, err error) {
	if err := result.ReadJSON(dir, result.ABFile, &c); err != nil {
		return c, exitcode.Usagef("%s: %v (is it the directory of `loadgen ab`?)", dir, err)
	}
	if c.Schema != result.ABSchema {
		return c, exitcode.Usagef("%s: schema %q, this loadgen reads %s", filepath.Join(dir, result.ABFile), c.Schema, result.ABSchema)
	}
	return c, nil
}

func specText(s result.Side) string {
	if len(s.Spec) == 0 {
		return "the scenario as it is"
	}
	return strings.Join(s.Spec, " ")
}
