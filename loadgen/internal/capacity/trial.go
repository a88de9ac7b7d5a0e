package capacity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// try runs one trial. Each trial has its own seed.
func (s *session) try(ctx context.Context, number int, load float64) (t result.Trial, err error) {
	if err := s.binary.Same(); err != nil {
		return t, fmt.Errorf("trial %d: %w", number, err)
	}
	o, err := s.at(load)
	if err != nil {
		return t, err
	}
	t = result.Trial{Number: number, Load: load, Dir: trialDir(number), Gates: []result.Gate{}, Cores: map[string]float64{}}
	o.Overrides = append(slices.Clone(s.o.Overrides), s.c.Field+"="+s.text(load))
	res, err := s.Make(ctx, o, t.Dir, number)
	if s.c.Versions.Kubernetes == "" {
		s.c.Versions, s.c.Host = res.Run.Versions, res.Run.Host
	}
	ended := endedBy(res, err)
	again := slices.Contains(s.c.EndedAt, load)
	switch {
	case err != nil && ctx.Err() == nil && ended != "" && again: // this load has ended two runs, so it is the cause
		t.Outcome, t.Why = string(Bad), ended
		return t, nil
	case err != nil && ctx.Err() == nil && ended != "":
		s.c.EndedAt = append(s.c.EndedAt, load)
		return t, errors.Join(fmt.Errorf("trial %d: %w", number, err), s.write())
	case err != nil:
		return t, fmt.Errorf("trial %d: %w", number, err)
	}
	if ctx.Err() != nil {
		return t, context.Cause(ctx)
	}
	held := take(&t, res)
	var cores map[string]float64
	t.Uses, cores, err = s.uses(ctx, filepath.Join(s.Dir.Path, t.Dir), held)
	maps.Copy(t.Cores, cores)
	return t, err
}

// endedBy describes how a run that returned the error err ended. It returns "" if the load cannot be the cause.
func endedBy(res result.Result, err error) string {
	switch {
	case len(res.Run.UnexpectedExits) > 0, errors.Is(err, run.ErrPlaneEnded):
		return "the control plane ended"
	case errors.Is(err, run.ErrPrepare):
		return "the objects of a load were not created"
	case res.Run.Versions.Kubernetes != "" && len(res.Measurements.Phases) == 0: // the plane had started
		return "the first phase did not begin"
	}
	return ""
}

// usesOf returns the resources with the highest utilisation in a phase of a run, and the processors that each
// component used. Both are nil if nothing was recorded.
func usesOf(ctx context.Context, dir string, p result.Phase) (all []result.Use, cores map[string]float64, err error) {
	rec, err := rundir.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	if rec.Archive == nil || p.Seconds() < 1 {
		return nil, nil, nil
	}
	if all, err = uses(ctx, rec.Archive, p.Start, p.End); err != nil {
		return nil, nil, err
	}
	cores, err = coresUsed(ctx, rec.Archive, p.Start, p.End)
	return all, cores, err
}

// take sets the outcome and the measurements of a trial from the result of its run. The outcome is Invalid if the
// generator was the limit, and Good if every gate passed. It is Bad if a gate failed, if the run ended early, or if a
// phase did not meet its condition in time. take returns the longest phase with requests, or the last phase if no phase
// has requests.
func take(t *result.Trial, res result.Result) (held result.Phase) {
	t.Gates, t.Machine = res.Gates, res.BusyMachine
	switch {
	case len(res.Measurements.Generator.Saturated) > 0:
		t.Outcome, t.Why = string(Invalid), res.Measurements.Generator.Saturated[0]
	case res.Measurements.Nodes != nil && res.Measurements.Nodes.MissedByGenerator > 0:
		t.Outcome, t.Why = string(Invalid), "the generator sent heartbeats too late"
	case res.Verdict == result.Pass:
		t.Outcome = string(Good)
	case res.Run.Aborted != "":
		t.Outcome, t.Why = string(Bad), res.Run.Aborted
	case res.Verdict == result.Fail:
		t.Outcome, t.Why = string(Bad), cmp.Or(strings.Join(failed(res.Gates), ", "), unmet(res.Measurements.Phases), strings.Join(res.Reasons, "; "))
	case unmet(res.Measurements.Phases) != "":
		t.Outcome, t.Why = string(Bad), unmet(res.Measurements.Phases)
	default:
		t.Outcome, t.Why = string(NoData), strings.Join(res.Reasons, "; ")
	}
	if n := len(res.Measurements.Phases); n > 0 {
		held = res.Measurements.Phases[n-1]
	}
	longest := 0.0
	for _, p := range res.Measurements.Phases {
		offered, achieved := 0.0, 0.0
		var worst result.Latency // latencies of the load with the highest p99
		for _, r := range rundir.Requests(p) {
			offered, achieved = offered+r.OfferedRate, achieved+r.AchievedRate
			if r.Latency.P99 > worst.P99 {
				worst = r.Latency
			}
		}
		if offered > 0 && p.Seconds() >= longest {
			held, longest = p, p.Seconds()
			t.Offered, t.Achieved, t.P50, t.P99 = offered, achieved, worst.P50, worst.P99
		}
	}
	return held
}

// unmet describes a phase that did not meet its condition in time. It returns "" if all phases did. It ignores
// interrupted phases, and phases during which the machine was busy.
func unmet(phases []result.Phase) string {
	for _, p := range phases {
		busy := p.Machine != nil && p.Machine.Busy != ""
		if p.Until != "" && !p.ConditionMet && !p.Interrupted && !busy {
			return fmt.Sprintf("phase %s: condition %s was not met in time", p.Name, p.Until)
		}
	}
	return ""
}

// wrong returns the names of the gates that failed in a bad trial. If a condition ended the trial early, it returns
// only the condition. If no gate failed, it returns the reason why the trial is bad.
func wrong(t result.Trial) []string {
	if condition, _, _ := strings.Cut(t.Why, " in phase "); strings.HasPrefix(condition, "abortOn: ") {
		return []string{condition}
	}
	if names := failed(t.Gates); len(names) > 0 {
		return names
	}
	return []string{t.Why}
}

func failed(gates []result.Gate) (names []string) {
	for _, g := range gates {
		if g.Verdict == result.Fail {
			names = append(names, g.Name)
		}
	}
	return names
}
