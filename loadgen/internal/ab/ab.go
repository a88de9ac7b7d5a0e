// Package ab compares two configurations, A and B, and reports whether B is worse. It runs a scenario in pairs: one run
// of A and one run of B, back to back on separate control planes.
//
// Both runs of a pair have the same seed. The order of A and B is random in blocks of two pairs; A and B come first
// equally often. The first pair warms up the machine and does not count. The package discards a pair if the work of
// other programs on the machine exceeded fixed bounds, regardless of the pair's results. The statistical plan lists
// looks: the numbers of pairs after which the package judges the pairs. The comparison ends at the first look that
// gives an answer, or at the last look.
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
	"github.com/stormglass/stormglass/loadgen/internal/judge/paired"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/series"
	"github.com/stormglass/stormglass/loadgen/result"
)

// warmUp is the number of the first pair. This pair warms up the machine and does not count.
const warmUp = 0

// maxThrown limits the discarded pairs: the comparison ends if their number exceeds maxThrown times the plan's
// maximum number of pairs.
const maxThrown = 1

// Options configure a comparison.
type Options struct {
	run.Options // options of each run; A and B override the scenario, the settings and the binary
	A, B        Side
	Plan        result.Plan
	// Gated names the metrics that decide the answer. Empty means the metrics that vary little between identical runs.
	Gated []string
	// Resume is the directory of the comparison to resume. Empty means a new comparison.
	Resume string
}

// Run runs pairs until they give an answer, and returns the comparison and its directory. If a new comparison fails in
// its first pair, Run returns an error but keeps the finished run, so that you can resume the comparison. After a later
// failure, Run returns the comparison with a note and the failure's exit code.
func Run(ctx context.Context, o Options) (c result.AB, dir string, err error) {
	return session{o: o, Series: series.New()}.run(ctx)
}

// session is a comparison in progress.
type session struct {
	series.Series
	o Options

	c      result.AB
	was    result.AB  // the comparison to resume, as recorded
	before []recorded // the runs of A, read from a baseline
	// binaries are the controlplane binaries of A and B.
	binaries [2]series.Binary
}

func (s session) run(ctx context.Context) (result.AB, string, error) {
	defer func() { s.Dir.Unlock() }()
	if err := s.open(ctx); err != nil {
		return s.c, "", err
	}
	if err := s.write(); err != nil {
		return s.c, "", errors.Join(err, s.Dir.Remove())
	}
	err := s.pairs(ctx)
	if len(s.c.Pairs) == 0 && s.o.Resume == "" {
		return s.c, "", s.Abandon(ctx, err, s.hasRuns()) // the error names the logs of the run
	}
	if why := unseen(s.c.Pairs); why != "" {
		s.c.Notes = append(s.c.Notes, why)
	}
	if why := s.Note(ctx, err); why != "" {
		s.c.Notes = append(s.c.Notes, why)
	} else {
		s.c.Ended = time.Now().UTC()
		s.c.Grown = grown(s.Dir.Path, Counted(s.c.Pairs))
	}
	if err != nil && ctx.Err() == nil && s.c.Answer != result.Regressed {
		s.c.ExitCode = exitcode.Of(err)
	}
	return s.c, s.Dir.Path, s.write()
}

// hasRuns reports whether the directory of the comparison contains files of a run.
func (s *session) hasRuns() bool {
	for _, side := range []string{"a", "b"} {
		if entries, err := os.ReadDir(filepath.Join(s.Dir.Path, side)); err == nil && len(entries) > 0 {
			return true
		}
	}
	return false
}

// open creates the comparison and its directory, or reads the comparison to resume.
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
	if s.o.Resume != "" {
		if err := s.resume(); err != nil {
			return err
		}
		return s.builds(ctx)
	}
	if err := s.Create(s.o.Out, s.c.Scenario+"-ab", s.c.Started); err != nil {
		return err
	}
	if err := s.builds(ctx); err != nil {
		return errors.Join(err, s.Dir.Remove())
	}
	return nil
}

// plan checks the statistical plan and both sides (A and B), and creates the comparison, which has no pairs yet.
func (s *session) plan() (err error) {
	if err := paired.Check(s.o.Plan); err != nil {
		return exitcode.UsageError(err)
	}
	if s.o.Resume != "" {
		if s.was, err = Read(s.o.Resume); err != nil {
			return err
		}
		if reflect.DeepEqual(s.o.Plan, paired.Default()) { // the user gave no plan
			s.o.Plan = s.was.Plan
		}
	}
	if s.o.B.Baseline != "" {
		return exitcode.Usagef("--b %s: a baseline can be used only as --a (use --a %[1]s)", s.o.B.Baseline)
	}
	// A comparison of a scenario with itself measures how much metrics vary, so it needs no gated metrics (metrics that
	// decide the answer). A resumed comparison already has its gated metrics.
	figures, err := figuresOf(s.o, s.o.Resume != "" || len(s.o.A.Spec)+len(s.o.B.Spec) == 0)
	if err != nil {
		return err
	}
	s.c = result.AB{
		Schema: result.ABSchema, Scenario: s.o.A.Scenario.Name, Started: time.Now().UTC(), Seed: s.o.A.Scenario.Seed, Labels: s.o.Labels,
		A: s.o.A.Side, B: s.o.B.Side, Plan: s.o.Plan, Pairs: []result.Pair{}, Figures: figures,
	}
	for _, side := range []struct {
		of   Side
		into *result.Side
	}{{s.o.A, &s.c.A}, {s.o.B, &s.c.B}} {
		if side.into.Digest, err = series.ScenarioDigest(*side.of.Scenario); err != nil {
			return err
		}
	}
	if err := s.baseline(); err != nil {
		return err
	}
	judgePairs(&s.c)
	return nil
}

// builds builds the controlplane binary of each side that is a git revision, and records the digests of both binaries.
// For a resumed comparison, it fails if a binary has changed since the first pairs.
func (s *session) builds(ctx context.Context) error {
	for i, side := range []struct {
		name string
		of   *Side
		into *result.Side
	}{{"A", &s.o.A, &s.c.A}, {"B", &s.o.B, &s.c.B}} {
		if err := side.of.Build(ctx, s.o.Progress.Step); err != nil {
			return err
		}
		binary, changed, err := s.Binary(cmp.Or(side.of.ControlPlane, s.o.ControlPlane), &side.into.Build)
		if err != nil {
			return err
		}
		if changed {
			return exitcode.Usagef("--resume %s: the controlplane binary of %s has changed since the first pairs (use the original build; specify a revision by its commit)", s.Dir.Path, side.name)
		}
		s.binaries[i] = binary
	}
	return nil
}

// baseline reads the runs of A if side A is a baseline (saved runs). The comparison does not pair them with runs of B.
func (s *session) baseline() error {
	switch {
	case s.o.A.Baseline == "":
		return nil
	case len(s.o.A.Spec) > 1:
		return exitcode.Usagef("--a %s: a baseline cannot be combined with another --a (remove the other --a)", s.o.A.Baseline)
	case len(s.was.Pairs) > 0 && s.was.Sets != nil: // resumed comparison: use the runs that were in the baseline when the comparison started
		s.c.Sets, s.c.A.Versions = s.was.Sets, s.was.A.Versions
		s.c.Notes = slices.DeleteFunc(slices.Clone(s.was.Notes), func(note string) bool { return !strings.Contains(note, leftOut) })
		return nil
	}
	set, err := readSet(context.Background(), s.o.A.Baseline)
	if err != nil {
		return fmt.Errorf("--a %w", err)
	}
	set = withoutUnfit(&s.c, set)
	if len(set) < paired.MinRuns {
		return exitcode.Usagef("--a %s: %d runs are too few to estimate how much identical runs vary (a baseline needs at least %d)", s.o.A.Baseline, len(set), paired.MinRuns)
	}
	s.c.Sets, s.before = &result.Sets{Differences: []result.Difference{}}, set
	for _, r := range set {
		if field := unlike(r.scenario, s.o.B.Scenario); field != "" {
			return exitcode.Usagef("--a %s: the run's scenario and scenario %[3]s differ in the field %[2]s (a baseline needs runs of the same scenario)", r.dir, field, s.c.Scenario)
		}
		m := memberLike(&s.c, s.o.B.Scenario, r)
		for _, f := range s.c.Figures {
			if _, has := m.Values[f.Name]; f.Gated && !has {
				return exitcode.Usagef("--a %s: run %s has no value of the metric %s, which decides the answer (remove the run from the baseline, or choose other metrics with --metric)", s.o.A.Baseline, r.dir, f.Name)
			}
		}
		s.c.Sets.A = append(s.c.Sets.A, m)
	}
	s.c.A.Versions = set[0].result.Run.Versions
	return nil
}

// pairs runs pairs until a look (interim analysis) gives an answer, the plan has no further look, or too many pairs are
// discarded.
func (s *session) pairs(ctx context.Context) error {
	plan := s.c.Plan
	before := s.c.Thrown // a resumed comparison has a new limit, because the machine may be idle now
	for ctx.Err() == nil {
		counted := len(Counted(s.c.Pairs))
		if paired.IsLook(plan, counted) && decided(s.c) || counted >= plan.Most() {
			return nil
		}
		if s.c.Thrown-before > maxThrown*plan.Most() {
			s.c.Notes = append(s.c.Notes, givenUp(s.c))
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

// givenUp returns the note on a comparison that ended because too many pairs were discarded. The note has the number of
// discarded pairs for each disturbed side. If nearly all of them are on one side, that side itself probably causes the
// disturbance.
func givenUp(c result.AB) string {
	of := map[string]int{}
	last := ""
	for _, p := range c.Pairs {
		if p.Thrown != "" && p.Number != warmUp {
			of[p.Thrown[:1]]++
			last = p.Thrown
		}
	}
	return fmt.Sprintf("the comparison ended without a result, because too many pairs were discarded: %d, of them %d because of A's run and %d because of B's run; reason for the last pair: %s (--discard-steal, --discard-other and --discard-io set the bounds)",
		c.Thrown, of["A"], of["B"], last)
}

// told returns the progress line to show after the pair p: the outcome of the pair, or the state of the comparison.
func told(c result.AB, p result.Pair) string {
	counted := len(Counted(c.Pairs))
	switch {
	case p.Number == warmUp:
		return "the warm-up pair is complete"
	case p.Thrown != "":
		return fmt.Sprintf("pair %d discarded: %s", p.Number, p.Thrown)
	case paired.IsLook(c.Plan, counted):
		return fmt.Sprintf("after %d pairs: %s", counted, c.Answer)
	}
	return fmt.Sprintf("%d of at most %d pairs are complete", counted, c.Plan.Most())
}

// pair runs A and B in a random order, or only B if A is a baseline.
func (s *session) pair(ctx context.Context, number, counted int) (p result.Pair, err error) {
	p = result.Pair{Number: number, Order: order(s.c.Seed, counted+1)}
	if number == warmUp {
		p.Order = order(s.c.Seed, warmUp)
	}
	if s.c.A.Baseline != "" {
		p.Order = "B"
	}
	for i, name := range p.Order {
		side, member, binary := s.o.A, &p.A, &s.binaries[0]
		if name == 'B' {
			side, member, binary = s.o.B, &p.B, &s.binaries[1]
		}
		if err := binary.Same(); err != nil {
			return p, fmt.Errorf("pair %d, run of %c: %w", number, name, err)
		}
		s.o.Progress.Step(fmt.Sprintf("pair %d, run of %c (%d of %d); valid pairs so far: %d of at most %d", number, name, i+1, len(p.Order), counted, s.c.Plan.Most()))
		if *member, err = s.runSide(ctx, side, number, string(name)); err != nil {
			return p, err
		}
		if number == warmUp {
			s.versions(name, *member)
		}
	}
	if number != warmUp {
		p.Thrown = thrown(s.c.Plan.Throw, p)
	}
	return p, nil
}

// order returns the order of the runs in a pair, "AB" or "BA", chosen at random with the seed. In each block of two
// pairs (1 and 2, 3 and 4, and so on), each order occurs once.
func order(seed int64, pair int) string {
	block := (pair + 1) / 2
	first := rand.New(rand.NewPCG(uint64(seed), uint64(block))).IntN(2)
	if (first+pair)%2 == 0 {
		return "AB"
	}
	return "BA"
}

// runSide executes the run of one side in a pair and returns its results. number is the number of the pair, which
// determines the seed. name is A or B.
func (s *session) runSide(ctx context.Context, side Side, number int, name string) (result.Member, error) {
	sub := memberDir(name, number)
	res, err := s.Make(ctx, s.of(side), sub, number)
	if err != nil {
		return result.Member{}, fmt.Errorf("pair %d, run of %s: %w", number, name, err)
	}
	if ctx.Err() != nil {
		return result.Member{}, context.Cause(ctx)
	}
	if res.Run.Aborted != "" {
		return result.Member{}, series.EndedEarlyError(fmt.Sprintf("pair %d: the run of %s was ended early by %s, so its metrics do not cover a whole run", number, name, res.Run.Aborted))
	}
	if s.c.Host.CPUs == 0 {
		s.c.Host = res.Run.Host
	}
	nameUnits(&s.c, res)
	if s.before != nil && len(s.c.Sets.Differences) == 0 {
		s.c.Sets.Differences = differences([2][]recorded{s.before, {{result: res, scenario: side.Scenario}}})
	}
	return memberOf(sub, res), nil
}

// nameUnits sets the unit of each compared metric, and whether lower or higher is better, from the result of a run.
func nameUnits(c *result.AB, res result.Result) {
	for i := range c.Figures {
		f := &c.Figures[i]
		if at := slices.IndexFunc(res.Figures, func(r result.Figure) bool { return r.Name == f.Name }); at >= 0 {
			f.Unit, f.Better = res.Figures[at].Unit, res.Figures[at].Better
		}
	}
}

func (s *session) versions(side rune, m result.Member) {
	if side == 'A' {
		s.c.A.Versions = m.Versions
	} else {
		s.c.B.Versions = m.Versions
	}
}

func (s *session) write() error { return write(s.Dir.Path, s.c) }

func write(dir string, c result.AB) error {
	if err := rundir.WriteJSON(dir, result.ABFile, c); err != nil {
		return err
	}
	return exitcode.EnvironmentError(report.WriteAB(dir, c))
}

// Read reads the comparison in dir.
func Read(dir string) (c result.AB, err error) {
	if err := result.ReadJSON(dir, result.ABFile, &c); err != nil {
		return c, exitcode.Usagef("%s: %v (is this a directory of `loadgen ab`?)", dir, err)
	}
	if c.Schema != result.ABSchema {
		return c, exitcode.Usagef("%s: the file has the schema %q, but this loadgen reads %s", filepath.Join(dir, result.ABFile), c.Schema, result.ABSchema)
	}
	return c, nil
}

func specText(s result.Side) string {
	if len(s.Spec) == 0 {
		return "the unchanged scenario"
	}
	return strings.Join(s.Spec, " ")
}
