package gate

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Compiled is a gate that has been checked: its objective exists, its PromQL parses, its bound has
// the right unit, and its phases and loads exist.
type Compiled struct {
	scenario.Gate
	objective Objective
	op        string  // how a value must compare with the bound: "<=" or ">="
	bound     float64 // value of the bound, in the objective's unit
	boundless bool    // the gate is a figure (see Figures): only the direction of its bound matters
	order     []string
	// strict means that every phase that the gate covers must have data.
	strict bool
	// expects lists the loads that must have results, each with a phase.
	expects []place
	// failures lists the phases in which nodes fail.
	failures []string
	// reads lists the selectors of the gate's PromQL.
	reads [][]*labels.Matcher
	// outages holds the times at which faults made targets of the run unreachable.
	outages timeline.Outages
	// known reports whether a component certainly exposes a metric (see alerting.Known).
	known func(metric string) bool
	// alert is the alert that the gate names, or nil.
	alert *alert
	// noDataAllowed means that the verdict ignores missing data of the gate.
	noDataAllowed bool
	// listed means that the result lists the gate's alert. informs means that the gate does not affect the verdict.
	listed, informs bool
}

type place struct{ phase, load string }

// Compile checks the gates of a scenario before the run starts. The error has one line for each
// problem, with the path of the field.
func Compile(s *plan.Plan) ([]Compiled, error) { return CompileWith(s, &alerting.Ruleset{}) }

// Check returns the errors of a scenario and its variants that reading the scenario does not find: settings that cannot
// work or, if all settings work, errors in the gates.
func Check(s *scenario.Scenario) error {
	return s.Check(func(s *scenario.Scenario) error {
		var variants []*plan.Plan
		for _, v := range s.AllVariants() {
			variants = append(variants, plan.Of(v))
		}
		compiles := func(p *plan.Plan) error {
			_, err := Compile(p)
			return err
		}
		base := []*plan.Plan{plan.Of(s)}
		for _, check := range []func(*plan.Plan) error{(*plan.Plan).Check, compiles} {
			for _, stage := range [][]*plan.Plan{base, variants} {
				var errs []error
				for _, p := range stage {
					errs = append(errs, check(p))
				}
				if err := errors.Join(errs...); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func compileAll(s *plan.Plan, b book) ([]Compiled, error) {
	var all []Compiled
	var errs []error
	for _, g := range s.Gates {
		if len(g.Variants) > 0 {
			continue // the gate belongs to other variants
		}
		c, err := compile(s, g, "gates."+g.Name, b)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, c)
	}
	_, err := Figures(s)
	if !s.Recorded() {
		errs = append(errs, contradictions(s, all)...)
	}
	if len(errs) == 0 && !s.Recorded() { // report errors of the gates first
		_, wrong := Stops(s)
		errs = append(errs, wrong)
	}
	return all, errors.Join(append(errs, err, checkSignals(s))...)
}

func compile(s *plan.Plan, g scenario.Gate, path string, b book) (Compiled, error) {
	c := Compiled{Gate: g, order: s.PhaseNames(), strict: len(g.Over) < len(s.Phases)}
	fail := func(field, hint, format string, args ...any) (Compiled, error) {
		return c, s.Errorf(path+"."+field, hint, format, args...)
	}
	if len(c.Over) == 0 {
		c.Over, c.strict = c.order, false
	}
	for _, p := range s.Phases {
		if failsNodes(p) {
			c.failures = append(c.failures, p.Name)
		}
	}
	for i, name := range c.Over {
		switch {
		case !slices.Contains(c.order, name):
			return fail("over", "phases: "+strings.Join(c.order, ", "), "no phase %q", name)
		case slices.Contains(c.Over[:i], name):
			return fail("over", "name each phase once", "phase %q appears twice", name)
		}
	}
	if g.Alert != "" {
		return c, c.compileAlert(s, path, b)
	}
	switch {
	case g.Objective != "":
		o := find(g.Objective)
		if o == nil {
			return fail("objective", strictyaml.Hint(g.Objective, names(), "objectives: "+strings.Join(names(), ", ")), "unknown objective %q", g.Objective)
		}
		c.objective = *o
	default:
		c.objective, c.known = Objective{Name: "expr", Expr: g.Expr}, alerting.Known(s.Record.Drop)
	}
	if g.Together && c.objective.Expr == "" {
		return fail("together", "leave it out", "objective %s is always measured for each phase separately", c.objective.Name)
	}
	c.objective.Spans = c.objective.Spans || g.Together
	bound, field := g.Max, "max"
	c.op = "<="
	if bound == nil {
		bound, field, c.op = g.Min, "min", ">="
	}
	if bound == nil {
		return fail("max", "add max: or min:", "gate %q has no bound", g.Name)
	}
	if !bound.Fits(c.objective.Unit) {
		return fail(field, "write it as "+c.objective.Unit.Example(), "%s is not in %s, the unit of %s", bound, c.objective.Unit, c.objective.Name)
	}
	c.bound = bound.Value
	if hint, wrong := c.objective.impossible(bound, c.op); wrong != "" && !s.Recorded() && isGate(path) {
		return fail(field, hint, "%s", wrong)
	}
	if c.objective.Name == "expr" || c.objective.Name == scenario.CustomFigure {
		c.objective.Unit = unitOf(bound)
	}
	if g.Signal != "" && c.objective.Requires != "signals" {
		return fail("signal", "leave it out", "objective %s does not apply to signals", c.objective.Name)
	}
	if err := c.checkTransition(s, path); err != nil {
		return c, err
	}
	if c.objective.Expr != "" {
		reads, err := selectors(c.objective.Expr)
		if err != nil {
			return fail("expr", hintOf(err, "it is PromQL; $window is the length of the phase"), "%v", err)
		}
		c.reads = reads
	}
	if hint, lack := c.objective.lacks(s); lack != "" {
		return fail("objective", hint, "%s", lack)
	}
	if err := c.unattainable(s, path); err != nil {
		return c, err
	}
	if !s.Recorded() {
		some := c.objective.during(s)
		if !slices.ContainsFunc(c.Over, func(name string) bool { return slices.Contains(some, name) }) {
			return fail("over", "name one of "+strings.Join(some, ", "), "objective %s has nothing to measure in %s", c.objective.Name, strings.Join(c.Over, ", "))
		}
	}
	return c, c.placeLoads(s, path)
}

// unitOf returns the unit in which a bound is written, or scenario.Number for a plain number.
func unitOf(b *scenario.Bound) scenario.Unit {
	for _, u := range []scenario.Unit{scenario.Seconds, scenario.Size, scenario.PerHour, scenario.PerSec, scenario.Ratio} {
		if b.Fits(u) && !b.Fits(scenario.Count) {
			return u
		}
	}
	return scenario.Number
}

func (c *Compiled) placeLoads(s *plan.Plan, path string) error {
	if c.objective.Results == "" {
		if c.Load != "" {
			return s.Errorf(path+".load", "leave it out", "objective %s does not apply to loads", c.objective.Name)
		}
		return nil
	}
	var known []string
	var right bool
	for _, p := range running(s, c.objective.Results) {
		if !slices.Contains(known, p.load) {
			known = append(known, p.load)
		}
		if c.Load != "" && p.load != c.Load {
			continue
		}
		right = true
		if slices.Contains(c.Over, p.phase) {
			c.expects = append(c.expects, p)
		}
	}
	if len(known) == 0 {
		return s.Errorf(path+".objective", "add load: "+scenario.LoadExample(c.objective.Results)+" to a phase", "the scenario has no load that objective %s can judge", c.objective.Name)
	}
	switch {
	case c.Load != "" && !right:
		return s.Errorf(path+".load", "loads it can judge: "+strings.Join(known, ", "), "there is no load %q that fits objective %s", c.Load, c.objective.Name)
	case len(c.expects) == 0:
		return s.Errorf(path+".over", "name a phase with "+strings.Join(known, " or "), "no load that fits objective %s runs in %s", c.objective.Name, strings.Join(c.Over, ", "))
	}
	return nil
}

// running returns the loads that have results of the given kind, with the phases in which they run.
func running(s *plan.Plan, of scenario.LoadResult) []place {
	var all []place
	held := slices.Clone(s.Background)
	for _, p := range s.Phases {
		for _, l := range slices.Concat(held, p.Load) {
			name, gives := l.Results()[of]
			if at := (place{p.Name, name}); gives && !slices.Contains(all, at) {
				all = append(all, at)
			}
		}
		for _, l := range p.Load {
			if l.Hold {
				held = append(held, l)
			}
		}
	}
	return all
}

// Families returns the names of the series that the gates, figures and signals of a scenario read. The recorder keeps
// their metrics in addition to its own list. Families skips gates, figures and signals that do not compile.
func Families(s *plan.Plan) []string {
	gates, _ := Compile(s)
	figures, _ := Figures(s)
	var all [][]*labels.Matcher
	for _, c := range append(gates, figures...) {
		all = append(all, c.reads...)
	}
	for _, signal := range s.Signals {
		reads, _ := selectors(signal.Expr)
		all = append(all, reads...)
	}
	return alerting.MetricsOf(all)
}

// Lacks returns the components whose metrics the gate needs but which are not in jobs. If there are any, the gate has
// no data.
func (c Compiled) Lacks(jobs []string) []string {
	return slices.DeleteFunc(slices.Clone(c.objective.Needs), func(job string) bool {
		return slices.Contains(jobs, job)
	})
}

// Figures compiles the figures (metrics to compare runs by) in the `compare:` section of a scenario. A figure is like a
// gate without a verdict.
func Figures(s *plan.Plan) ([]Compiled, error) {
	var all []Compiled
	var errs []error
	for _, f := range s.Compare {
		g := scenario.Gate{
			Name: f.Name, Objective: f.Objective, Expr: f.Expr, Load: f.Load, Signal: f.Signal, Transition: f.Transition, Quantile: f.Quantile, Figure: f.Figure, Over: f.Over, Together: f.Together,
		}
		// A figure needs a bound only for its direction, which says which of several values is the worst.
		least := "max"
		if o := find(f.Objective); o != nil {
			least, _, _ = strings.Cut(o.Default, ":")
		}
		if f.Better == "higher" {
			least = "min"
		}
		zero := &scenario.Bound{}
		if err := zero.UnmarshalText([]byte("0")); err != nil {
			return nil, err
		}
		if least == "min" {
			g.Min = zero
		} else {
			g.Max = zero
		}
		c, err := compile(s, g, "compare."+f.Name, book{})
		c.boundless = true
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if f.Unit != "" {
			c.objective.Unit = scenario.Unit(f.Unit)
		}
		all = append(all, c)
	}
	return all, errors.Join(errs...)
}

// Measure computes the figures of a run. If a figure has no value, its Detail contains the reason.
func Measure(ctx context.Context, figures []Compiled, rec *rundir.Recorded) ([]result.Figure, error) {
	all := []result.Figure{}
	outages, _ := timeline.Of(rec.Timeline).Outages()
	for _, c := range figures {
		c.outages = outages
		g, err := c.judge(ctx, rec, nil)
		if err != nil {
			return all, err
		}
		f := result.Figure{Name: g.Name, Objective: g.Objective, Expr: g.Expr, Over: g.Over, Unit: g.Unit, Detail: g.Detail, Better: "lower"}
		if g.Op == ">=" {
			f.Better = "higher"
		}
		if g.Verdict != result.NoData {
			f.Value, f.AtLeast = g.Value, g.AtLeast
		}
		all = append(all, f)
	}
	return all, nil
}

func checkSignals(s *plan.Plan) error {
	var errs []error
	for _, signal := range s.Signals {
		if _, err := selectors(signal.Expr); err != nil {
			errs = append(errs, s.Errorf("signals."+signal.Name+".expr", hintOf(err, "it is PromQL; $window is two and a half scrape intervals"), "%v", err))
		}
	}
	return errors.Join(errs...)
}
