package alertproof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// calm is how long the rules are evaluated beyond the end of a run, so that firing alerts can resolve. In this
// simulated time, each scrape repeats the last one. calm is longer than an hour, the longest range of a rule.
const calm = 75 * time.Minute

// Prove judges the run in dir by each Proof of its scenario. It writes no files.
func Prove(ctx context.Context, dir string) (all []Judged, err error) {
	rec, err := rundir.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	proofs := Of(rec.Run.Scenario)
	if len(proofs) == 0 {
		return nil, exitcode.Usagef("%s: scenario %s does not prove alerts (use one of %s; to judge any run by your own rules, use `loadgen gate --rules`)",
			dir, rec.Run.Scenario, strings.Join(proofNames(), ", "))
	}
	for _, p := range proofs {
		j := Judged{Proof: p.Name, Scenario: rec.Run.Scenario, Started: rec.Run.Started, Verdict: result.NoData, Outcomes: []Outcome{}}
		if rec.Archive != nil && rec.Scenario != nil {
			j, err = Judge(ctx, p, rec)
			if err != nil && ctx.Err() == nil { // the archive is damaged
				rec.AddDamage(&result.Damaged{File: result.TSDBDir, Err: err})
				j.Verdict, err = result.NoData, nil
			}
			if err != nil {
				return nil, err
			}
		}
		var doubts []string
		for _, err := range rec.Doubts() {
			doubts = append(doubts, err.Error())
		}
		if rec.Foreign != nil || len(doubts) > 0 && j.Verdict == result.Pass {
			j.Verdict = result.NoData
		}
		j.Reasons, j.Dir = append(doubts, j.Reasons...), dir
		all = append(all, j)
	}
	return all, nil
}

// NotRun returns the result for a proof whose scenario did not run. `why` is the reason.
func NotRun(p Proof, why error) Judged {
	return Judged{
		Proof: p.Name, Scenario: p.ScenarioName(), Verdict: result.NoData, Outcomes: []Outcome{},
		Reasons: []string{fmt.Sprintf("the scenario did not run: %v", why)},
	}
}

// Judge judges the run `in` by a proof. It fails if ctx ends, or if the archive or the rules cannot be read. All other
// problems are part of the result.
func Judge(ctx context.Context, p Proof, in *rundir.Recorded) (Judged, error) {
	rules, err := alerting.Shipped()
	if err != nil {
		return Judged{}, err
	}
	all, err := alerts.Rules()
	if err != nil {
		return Judged{}, err
	}
	s, err := p.Read()
	if err != nil {
		return Judged{}, err
	}
	j := judge{proof: p, in: in, rules: rules, phases: in.Phases()}
	out := Judged{
		Proof: p.Name, Scenario: p.ScenarioName(), Started: in.Run.Started, Verdict: result.Pass, Reasons: j.doubts(s), Outcomes: []Outcome{},
	}
	doubts := len(out.Reasons) > 0
	hidden := j.hidden()
	if j.h, err = rules.Replay(ctx, in.Archive, alerting.Options{Calm: calm, Hidden: hidden}); err != nil {
		return out, err
	}
	out.Seconds, out.Rounds = j.h.End.Sub(j.h.Start).Seconds(), j.h.Rounds
	for _, a := range all {
		o, err := j.outcome(ctx, a)
		if err != nil {
			return out, err
		}
		switch o.Verdict {
		case result.Fail:
			out.Verdict = result.Fail
			out.Reasons = append(out.Reasons, o.Rule+": "+o.Why)
		case result.NoData:
			if o.Part == MustFire {
				doubts = true
				out.Reasons = append(out.Reasons, o.Rule+": no data: "+o.Why)
			}
		}
		out.Outcomes = append(out.Outcomes, o)
	}
	if out.Verdict == result.Pass && doubts {
		out.Verdict = result.NoData
	}
	return out, nil
}

type judge struct {
	proof  Proof
	in     *rundir.Recorded
	rules  alerting.Ruleset
	phases map[string]result.Phase
	h      alerting.History
}

// doubts returns the reasons why the run proves nothing, such as a fault that did not take effect.
func (j *judge) doubts(s *scenario.Scenario) []string {
	all := []string{}
	run := j.in.Run
	if run.Failure != "" {
		all = append(all, "the environment failed: "+run.Failure)
	}
	if run.Interrupted {
		all = append(all, "the run was interrupted")
	}
	all = append(all, run.MissedFaults...)
	for _, exit := range run.UnexpectedExits {
		all = append(all, "unexpected exit: "+exit)
	}
	_, unexplained := timeline.Of(j.in.Timeline).Outages()
	for _, e := range unexplained {
		all = append(all, fmt.Sprintf("unexpected exit: %s at %s: %s", e.Component, e.Time.UTC().Format("15:04:05"), e.Detail))
	}
	if j.proof.Stall == (Stall{}) {
		all = append(all, j.in.Measurements.Generator.Saturated...)
	}
	for _, name := range j.cut(s) {
		all = append(all, fmt.Sprintf("phase %s did not finish", name))
	}
	return all
}

func (j *judge) outcome(ctx context.Context, a alerts.Alert) (Outcome, error) {
	o := Outcome{Rule: a.Alert, Severity: a.Labels["severity"], Part: Silent, Verdict: result.Pass}
	lives := j.h.Of(a.Alert)
	o.Fired = len(lives) > 0
	for _, f := range lives {
		if of := describe(f.Labels); !slices.Contains(o.Of, of) {
			o.Of = append(o.Of, of)
		}
	}
	if err := j.h.Failed[a.Alert]; err != nil {
		o.Verdict, o.Why = result.NoData, fmt.Sprintf("the alert cannot be evaluated: %v", err)
		return o, nil
	}
	if expected := j.proof.expects(a.Alert); expected != nil {
		o.Part = MustFire
		return o, j.must(ctx, &o, a, *expected, lives)
	}
	if len(lives) > 0 {
		o.FiredAt = j.since(lives[0].Fired)
		j.resolved(&o, lives[0])
	}
	if why := j.proof.allows(a.Alert); why != "" {
		o.Part = MayFire
		if o.Fired {
			o.Why = why
		}
		return o, nil
	}
	if o.Fired {
		o.Verdict = result.Fail
		o.Why = fmt.Sprintf("fired %s after the first scrape, although nothing in this proof should make it fire: %s", seconds(*o.FiredAt), lives[0].Summary)
		return o, nil
	}
	_, err := j.blind(ctx, &o)
	return o, err
}

// blind reports whether the rule can never fire with the recorded data. If so, it sets the verdict to no data.
func (j *judge) blind(ctx context.Context, o *Outcome) (bool, error) {
	visible, err := j.rules.Look(ctx, j.in.Archive, o.Rule, alerting.Known(j.in.Scenario.Record.Drop))
	if visible.Blind != "" {
		o.Verdict, o.Why = result.NoData, visible.Blind
	}
	return visible.Blind != "", err
}

func (j *judge) must(ctx context.Context, o *Outcome, a alerts.Alert, e alerts.Expected, lives []alerting.Firing) error {
	floor := a.FiresWithin(j.in.Scenario.Record.Interval.D(), 0).Seconds()
	o.Floor = &floor
	cause, why, err := j.cause(ctx, e)
	if err != nil || why != "" {
		o.Verdict, o.Why = result.NoData, why
		return err
	}
	o.CauseAt = j.since(cause)
	fail := func(format string, args ...any) {
		o.Verdict, o.Why = result.Fail, fmt.Sprintf(format, args...)
	}
	// An alert that was pending when the cause began may have fired without the cause.
	i := slices.IndexFunc(lives, func(f alerting.Firing) bool { return !f.Pending.Before(cause) })
	if early := slices.IndexFunc(lives, func(f alerting.Firing) bool {
		return f.Fired.Before(cause) && (f.Resolved.IsZero() || f.Resolved.After(cause))
	}); early >= 0 {
		o.FiredAt = j.since(lives[early].Fired)
		fail("fired %s before the fault that should cause it", seconds(cause.Sub(lives[early].Fired).Seconds()))
		return nil
	}
	if before := slices.IndexFunc(lives, func(f alerting.Firing) bool { return f.Pending.Before(cause) && !f.Fired.Before(cause) }); i < 0 && before >= 0 {
		o.FiredAt = j.since(lives[before].Fired)
		fail("fired, but was over its threshold already %s before the fault that should cause it", seconds(cause.Sub(lives[before].Pending).Seconds()))
		return nil
	}
	if i < 0 {
		if blind, err := j.blind(ctx, o); blind || err != nil {
			return err
		}
		fail("did not fire%s", j.nearly(a.Alert, cause))
		return nil
	}
	f := lives[i]
	latency := f.Fired.Sub(cause).Seconds()
	o.FiredAt, o.Latency = j.since(f.Fired), &latency
	last := f
	for _, other := range lives[i:] { // the alert may fire for several instances, or several times
		if other.Resolved.IsZero() || !last.Resolved.IsZero() && other.Resolved.After(last.Resolved) {
			last = other
		}
	}
	j.resolved(o, last)
	switch {
	case latency > Bound*floor:
		fail("fired %s after its cause, which is more than %.1f times its shortest possible latency of %s", seconds(latency), Bound, seconds(floor))
	case o.ResolvedAt == nil:
		fail("fired but did not resolve, even in %s of simulated time without a fault", seconds(calm.Seconds()))
	}
	return nil
}

func (j *judge) resolved(o *Outcome, f alerting.Firing) {
	if !f.Resolved.IsZero() {
		o.ResolvedAt, o.InCalm = j.since(f.Resolved), f.Resolved.After(j.h.End)
	}
}

// nearly returns the text about an alert that did not fire: how long it was pending after its cause.
func (j *judge) nearly(rule string, cause time.Time) string {
	longest := time.Duration(0)
	for _, f := range j.h.Firings {
		if f.Alert != rule || f.Pending.Before(cause) || !f.Fired.IsZero() {
			continue
		}
		until := f.Resolved
		if until.IsZero() {
			until = j.h.End
		}
		longest = max(longest, until.Sub(f.Pending))
	}
	if longest == 0 {
		return ", and was never over its threshold"
	}
	return fmt.Sprintf(", and was over its threshold for %s at most", seconds(longest.Seconds()))
}

func (j *judge) since(at time.Time) *float64 { return new(at.Sub(j.h.Start).Seconds()) }

// describe returns the labels that distinguish the instances of an alert, as one string. If there are no such labels,
// it returns the job.
func describe(set map[string]string) string {
	var parts []string
	for name, v := range set {
		switch name {
		case "alertname", "severity", "component", "job":
		default:
			parts = append(parts, name+"="+strings.ReplaceAll(v, ":\x00:", "/"))
		}
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return set["job"]
	}
	return strings.Join(parts, " ")
}

func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// cause returns the time at which the cause of an alert began. If the time is unknown, why is the reason.
func (j *judge) cause(ctx context.Context, e alerts.Expected) (at time.Time, why string, err error) {
	p, ok := j.phases[e.Phase]
	if !ok {
		return at, fmt.Sprintf("phase %s was never reached", e.Phase), nil
	}
	at = p.Start
	if h := slices.IndexFunc(j.proof.Hide, func(h alerts.Hide) bool { return h.Phase == e.Phase }); h >= 0 {
		at = p.Start.Add(j.proof.Hide[h].After)
	}
	if faults := timeline.Of(j.in.Timeline).FaultsWithin(p.Start, p.End); len(faults) > 0 {
		at = faults[0].Begin
		if e.Last {
			at = faults[len(faults)-1].Begin
		}
	}
	if e.Since == "" {
		return at, "", nil
	}
	all, err := j.in.Archive.Range(ctx, e.Since, at, j.h.End, time.Second)
	if err != nil {
		return at, "", err
	}
	for i, s := range all {
		if len(s.Points) > 0 && (i == 0 || s.Points[0].T.Before(at)) {
			at = s.Points[0].T
		}
	}
	if len(all) == 0 {
		return at, fmt.Sprintf("the condition %s was never true", e.Since), nil
	}
	return at, "", nil
}

// cut returns the phases of the scenario that are missing or too short in this run. If there are such phases, the run
// proves nothing, because an alert may have stayed silent only for lack of time.
func (j *judge) cut(s *scenario.Scenario) []string {
	var all []string
	for _, x := range s.Phases {
		p, ok := j.phases[x.Name]
		// A phase ends when its time is over, never earlier.
		if short := p.End.Sub(p.Start) < x.For.D(); !ok || p.Interrupted || short {
			all = append(all, x.Name)
		}
	}
	return all
}

// hidden returns the series that the proof hides from the rules, with the time ranges in which they are hidden in this
// run.
func (j *judge) hidden() []alerting.Hidden {
	var all []alerting.Hidden
	for _, h := range j.proof.Hide {
		p, ok := j.phases[h.Phase]
		if !ok {
			continue
		}
		m := labels.MustNewMatcher(labels.MatchEqual, "job", h.Job)
		if h.Family != "" {
			m = labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, h.Family+"(_bucket|_sum|_count)?")
		}
		from := p.Start.Add(h.After)
		all = append(all, alerting.Hidden{Matchers: []*labels.Matcher{m}, From: from, To: from.Add(h.For)})
	}
	return all
}
