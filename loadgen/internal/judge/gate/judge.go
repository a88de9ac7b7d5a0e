// Package gate evaluates the gates (pass criteria) of a recorded run. Each gate passes, fails or has no data. A gate
// never passes because data is missing. The package reads only the archive and the measurements of the run, and uses
// neither network nor clock. docs/reference/objectives.md defines the value of each gate, and when a gate has no value.
package gate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Judge evaluates the gates on a recorded run and derives the verdict of the run. Without an archive,
// gates on scraped metrics have no data. Judge fails if ctx ends or the archive cannot be read.
//
// The verdict is fail if a gate failed, if a phase that a gate covers did not meet its condition, if the cluster
// prevented a load from doing the demanded work, or if a condition in abortOn ended the run. Otherwise it is "no data"
// if anything could not be judged or there are no gates, and pass in all other cases. If the environment failed, the
// exit code is 4, and "no data" replaces pass.
func Judge(ctx context.Context, gates []Compiled, rec *rundir.Recorded) (result.Result, error) {
	outages, unexplained := timeline.Of(rec.Timeline).Outages()
	run := rec.Run
	run.UnexpectedExits = append(slices.Clone(run.UnexpectedExits), exits(unexplained, rec.Measurements.Phases)...)
	res := result.Result{
		Schema: result.Schema, Run: run, Measurements: rec.Measurements, Recovery: rec.Recovery, Signals: rec.Signals,
		Verdict: result.Pass, Reasons: []string{}, Gates: []result.Gate{},
	}
	alerts, err := replays(ctx, gates, rec.Archive)
	if err != nil {
		return res, err
	}
	var deciding []Compiled
	for _, c := range gates {
		c.outages = outages
		g, err := c.judge(ctx, rec, alerts)
		if err != nil {
			return res, err
		}
		if c.listed {
			o, err := c.outcome(ctx, rec, g, alerts[c.alert.rules])
			if err != nil {
				return res, err
			}
			res.Alerts = append(res.Alerts, o)
		}
		if !c.informs {
			res.Gates, deciding = append(res.Gates, g), append(deciding, c)
		}
	}
	gates = deciding
	lost, err := lostScrapes(ctx, rec.Archive, outages, rec.Measurements.Scrapes)
	if err != nil {
		return res, err
	}
	res.Measurements.Phases = deliver(rec.Scenario, gates, rec.Measurements)
	failures, doubts := weigh(gates, res.Gates, run, res.Measurements, lost)
	res.Reasons = append(append(res.Reasons, failures...), doubts...)
	switch {
	case len(failures) > 0:
		res.Verdict, res.ExitCode = result.Fail, exitcode.Fail
	case len(doubts) > 0:
		res.Verdict, res.ExitCode = result.NoData, exitcode.NoData
	}
	if run.Failure != "" {
		res.ExitCode = exitcode.Environment
		res.Reasons = slices.Insert(res.Reasons, 0, "the environment failed: "+run.Failure)
		if res.Verdict == result.Pass {
			res.Verdict = result.NoData
		}
	}
	if res.Key, err = keyMetrics(ctx, rec.Archive); err != nil {
		return res, err
	}
	res.Components, err = componentCosts(ctx, rec.Archive)
	return res, err
}

// judge evaluates one gate. histories holds the firings of each ruleset, for gates that name alerts.
func (c Compiled) judge(ctx context.Context, rec *rundir.Recorded, histories map[*alerting.Ruleset]alerting.History) (result.Gate, error) {
	phases := rec.Phases()
	if c.objective.measure != nil {
		e := evidence{Compiled: c, phases: phases, m: rec.Measurements, recovery: rec.Recovery, signals: rec.Signals}
		f := e.withholdGeneratorDelay(c.objective.measure(e))
		g, _ := c.decide(c.withholdBusyMachine(f, rec.Run.Cluster.Bundled, phases))
		return g, nil
	}
	var f finding
	var err error
	if c.alert != nil {
		f, err = c.alertFinding(ctx, rec.Archive, histories[c.alert.rules], phases)
	} else {
		f, err = c.scrapedFinding(ctx, rec.Archive, phases)
		f = c.withholdBusyMachine(f, rec.Run.Cluster.Bundled, phases)
	}
	if err != nil {
		return result.Gate{}, fmt.Errorf("judge gate %s: %w", c.Name, err)
	}
	g, worst := c.decide(f)
	g.Expr = c.objective.Expr
	if c.alert != nil {
		return g, nil
	}
	for _, w := range c.windows(phases) {
		if w.missing == "" && (worst.phase == "" || worst.phase == w.name) {
			g.Expr = c.exprAt(w)
			break
		}
	}
	return g, nil
}

// weigh returns the reasons why the run fails (failures) and why it cannot pass (doubts). A reason is one line, except
// that an unexpected exit also quotes the component's log. `lost` is the number of lost scrapes of each target that no
// fault of the scenario explains.
func weigh(gates []Compiled, judged []result.Gate, run result.Run, m result.Measurements, lost map[string]int64) (failures, doubts []string) {
	var whole []string
	if run.Aborted != "" {
		failures = append(failures, "the run was ended early by "+run.Aborted)
	}
	covered := map[string]bool{}
	for _, c := range gates {
		for _, name := range c.Over {
			covered[name] = true
		}
	}
	for _, p := range m.Phases {
		if p.Until != "" && !p.ConditionMet && !p.Interrupted && !p.Steered() && covered[p.Name] && run.Failure == "" {
			why := fmt.Sprintf("phase %s: %s was not met in %s", p.Name, p.Until, show("seconds", p.Seconds()))
			if p.Reached != "" {
				why += ": " + p.Reached
			}
			switch busy := busyIn(p); {
			case len(p.Saturated) > 0:
				whole = append(whole, why+", while the generator was saturated")
			case busy != "":
				whole = append(whole, why+", "+onBusyMachine+busy)
			default:
				failures = append(failures, why)
			}
		}
	}
	for _, g := range judged {
		switch g.Verdict {
		case result.Fail:
			failures = append(failures, reason(g))
		case result.NoData:
			if !g.Allowed {
				doubts = append(doubts, reason(g))
			}
		}
	}
	short, unclear := undelivered(m.Phases)
	failures, doubts = append(failures, short...), append(doubts, unclear...)
	if run.Interrupted {
		where := ""
		if n := len(m.Phases); n > 0 && m.Phases[n-1].Interrupted {
			where = fmt.Sprintf(" in phase %s, after %s", m.Phases[n-1].Name, show("seconds", m.Phases[n-1].Seconds()))
		}
		whole = append(whole, "the run was interrupted"+where)
	}
	whole = append(whole, run.LostWorkers...)
	whole = append(whole, m.Generator.Saturated...)
	for _, exit := range run.UnexpectedExits {
		if exit = strings.TrimSpace(exit); !strings.Contains(run.Failure, exit) { // otherwise run.Failure describes it
			whole = append(whole, "unexpected exit: "+exit)
		}
	}
	whole = append(whole, run.MissedFaults...)
	for _, instance := range slices.Sorted(maps.Keys(lost)) {
		if n := lost[instance]; n > 0 {
			whole = append(whole, fmt.Sprintf("%d of %d scrapes were lost: %s", n, m.Scrapes.Done, instance))
		}
	}
	if len(gates) == 0 {
		whole = append(whole, "there are no gates: nothing was judged")
	} else if !slices.ContainsFunc(judged, func(g result.Gate) bool { return !g.Allowed }) {
		whole = append(whole, fmt.Sprintf("nothing was judged: all %d gates lack data, and --allow-no-data names all of them", len(judged)))
	}
	return failures, append(whole, doubts...)
}

// lostScrapes counts the lost scrapes of each target that are next to another lost scrape, unless a fault of the
// scenario was the cause. A single lost scrape does not matter. Without an archive, the times are unknown, and all lost
// scrapes count.
func lostScrapes(ctx context.Context, a *archive.Archive, outages timeline.Outages, s result.Scrapes) (map[string]int64, error) {
	if a == nil || len(s.Failed) == 0 {
		return s.Failed, nil
	}
	first, last, err := a.Bounds(ctx)
	if err != nil {
		return s.Failed, ctx.Err()
	}
	up, err := a.Samples(ctx, first, last, archive.Equal(model.MetricNameLabel, "up"))
	if err != nil {
		return s.Failed, err
	}
	lost := maps.Clone(s.Failed)
	for _, series := range up {
		instance := series.Labels[model.InstanceLabel]
		for i, p := range series.Points {
			if p.V != 0 || lost[instance] == 0 {
				continue
			}
			if _, alone := around(series.Points, i); alone || outages.Fault(instance, p.T, p.T) != "" {
				lost[instance]--
			}
		}
	}
	return lost, nil
}

// exits describes each exit of a process that no fault caused: the component, the time (UTC), the
// phase and the reason, with the lines of its log.
func exits(unexplained []timeline.Exit, phases []result.Phase) (lines []string) {
	for _, e := range unexplained {
		line := fmt.Sprintf("%s at %s", e.Component, e.Time.UTC().Format("15:04:05.0"))
		for _, p := range phases {
			if !e.Time.Before(p.Start) && e.Time.Before(p.End) {
				line += " in " + p.Name
			}
		}
		if e.Detail != "" {
			line += ": " + e.Detail
		}
		lines = append(lines, line)
	}
	return lines
}

func withNotes(detail string, notes []string) string {
	if len(notes) == 0 {
		return detail
	}
	return strings.TrimPrefix(detail+"; "+strings.Join(notes, "; "), "; ")
}
