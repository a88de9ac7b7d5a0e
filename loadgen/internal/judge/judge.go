// Package judge evaluates the gates (pass criteria) of a recorded run and gives its verdict: pass, fail or no data. It
// reads only the run directory and, if the user gives them, files with other gates or Prometheus rules.
package judge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
	"github.com/stormglass/stormglass/loadgen/internal/judge/breakdown"
	"github.com/stormglass/stormglass/loadgen/internal/judge/diagnosis"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/judge/recovery"
	"github.com/stormglass/stormglass/loadgen/internal/machine"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Judge evaluates the gates in the scenario of the run in dir, and writes result.json, junit.xml and report.html. A
// damaged file counts as missing data, and the result lists it. Judge fails if nothing could be evaluated or written.
func Judge(ctx context.Context, dir string) (res result.Result, err error) {
	rec, err := rundir.Open(dir)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	var gates []gate.Compiled
	if rec.Scenario != nil {
		if gates, err = gate.Compile(plan.Of(rec.Scenario)); err != nil {
			rec.AddScenarioDamage(err)
		}
	}
	if res, err = judge(ctx, rec, gates); err != nil {
		return res, err
	}
	if err := report.Write(ctx, dir, res, rec.Timeline, rec.Slots, rec.ScenarioText, source(rec)); err != nil {
		return res, exitcode.Environmentf("%w", err)
	}
	return res, nil
}

// judge evaluates gates on the run. If reading the archive fails, judge records that it is damaged, and evaluates the
// gates again without it.
func judge(ctx context.Context, rec *rundir.Recorded, gates []gate.Compiled) (result.Result, error) {
	res, err := analyse(ctx, rec, gates)
	if err != nil && ctx.Err() == nil && rec.Archive != nil {
		rec.AddDamage(&result.Damaged{File: result.TSDBDir, Err: err})
		rec.AddDamage(rec.Archive.Close())
		rec.Archive = nil
		res, err = analyse(ctx, rec, gates)
	}
	if err != nil {
		return res, err
	}
	res.Notes = append(res.Notes, rec.Notes...)
	res.Notes = append(res.Notes, gate.SteeredNotes(rec.Measurements.Phases)...)
	for _, r := range rec.Measurements.Replays {
		res.Notes = append(res.Notes, r.Notes()...)
	}
	AddReasons(&res, rec.Doubts()...)
	if res.Verdict != result.Pass && rec.Archive != nil {
		if d, err := diagnosis.OfArchive(ctx, rec.Archive, DiagnosisOptions(rec, res)); err != nil {
			res.Notes = append(res.Notes, "no diagnosis: "+err.Error())
		} else {
			res.Diagnosis = &d
		}
	}
	addTraces(&res, rec)
	if rec.Foreign != nil { // the gates are from another scenario file, so they cannot fail this run
		if res.Verdict = result.NoData; res.ExitCode != exitcode.Environment {
			res.ExitCode = exitcode.NoData
		}
	}
	return res, nil
}

// addTraces adds the traces of the run, and what they say about its breakdown and diagnosis. No verdict depends on them.
func addTraces(res *result.Result, rec *rundir.Recorded) {
	if rec.TracesChanged {
		return
	}
	index, all, err := spans.Read(rec.Dir)
	if err != nil {
		if !spans.Missing(err) {
			res.Notes = append(res.Notes, "no traces: "+err.Error())
		}
		return
	}
	res.Traces = index.Result(all)
	breakdown.CompareSpans(res.Breakdown, res.Traces.Parts)
	if res.Diagnosis != nil {
		diagnosis.AddTraces(res.Diagnosis.Causes, all)
	}
}

func analyse(ctx context.Context, rec *rundir.Recorded, gates []gate.Compiled) (res result.Result, err error) {
	if err = fillMachine(ctx, rec); err != nil {
		return res, err
	}
	if rec.Scenario != nil {
		rec.Recovery = recovery.Analyse(rec)
		if rec.Signals, err = recovery.Signals(ctx, rec); err != nil {
			return res, err
		}
	}
	if res, err = gate.Judge(ctx, gates, rec); err != nil {
		return res, err
	}
	res.BusyMachine = machine.Lines(rec.Measurements.Phases)
	if res.Breakdown, err = breakdown.Split(ctx, rec); err != nil {
		return res, err
	}
	if res.Scheduling, err = breakdown.Scheduler(ctx, rec); err != nil || rec.Scenario == nil {
		return res, err
	}
	figures, err := gate.Figures(plan.Of(rec.Scenario))
	if err != nil {
		rec.AddScenarioDamage(err)
		return res, nil
	}
	res.Figures, err = gate.Measure(ctx, figures, rec)
	return res, err
}

// DiagnosisOptions returns the options to diagnose a whole run. It takes the failed gates and the gates without data
// from res. If res is zero, there are no gates.
func DiagnosisOptions(rec *rundir.Recorded, res result.Result) diagnosis.Options {
	o := diagnosis.Options{From: rec.Began(), Cut: rec.Run.Ended.IsZero()}
	_, unexplained := timeline.Of(rec.Timeline).Outages()
	for _, e := range unexplained {
		how, _, _ := strings.Cut(e.Detail, ";") // without the component's log
		text := fmt.Sprintf("%s %s at %s", e.Component, cmp.Or(how, "ended"), e.Time.UTC().Format(time.TimeOnly))
		if !e.Ready.IsZero() {
			text += fmt.Sprintf(", and its next process was ready %.1f s later", e.Ready.Sub(e.Time).Seconds())
		}
		o.Exits = append(o.Exits, text)
	}
	for _, g := range res.Gates {
		switch g.Verdict {
		case result.NoData:
			o.NoData = append(o.NoData, g.Name)
		case result.Fail:
			f := diagnosis.FailedGate{Name: g.Name, Detail: g.Detail, Slow: g.Unit == string(scenario.Seconds) && g.Op == "<="}
			for _, p := range res.Measurements.Phases {
				if slices.Contains(g.BrokenIn, p.Name) {
					f.Broken = append(f.Broken, result.Span{From: p.Start, To: p.End})
				}
			}
			o.Failed = append(o.Failed, f)
		}
	}
	return o
}

// AddReasons inserts the reasons why data is missing before the existing reasons of a result. It changes the run's
// verdict from pass to "no data", although single gates may still pass.
func AddReasons(res *result.Result, all ...error) {
	var reasons []string
	for _, err := range all {
		reasons = append(reasons, err.Error())
	}
	res.Reasons = append(reasons, res.Reasons...)
	if len(all) > 0 && res.Verdict == result.Pass {
		res.Verdict, res.ExitCode = result.NoData, exitcode.NoData
	}
}

// source returns the archive with even scrape intervals, from which the report draws charts. It returns an untyped nil
// if there is no archive, so that callers can compare it with nil.
func source(rec *rundir.Recorded) chart.Source {
	if rec.Archive == nil {
		return nil
	}
	return rec.Archive.Even(rec.Interval)
}

// Pictures returns the charts of the report on the run in dir, drawn for the run's latest result. It writes nothing.
func Pictures(ctx context.Context, dir string) (all []report.Picture, err error) {
	rec, res, err := rundir.OpenJudged(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	return report.Pictures(ctx, res, rec.Timeline, rec.Slots, rec.ScenarioText, source(rec), rec.Interval)
}

// Picture returns the chart with the given name of the run in dir. It fails if there is no such chart, or if there is
// no data for the chart.
func Picture(ctx context.Context, dir, name string) (report.Picture, error) {
	all, err := Pictures(ctx, dir)
	if err != nil {
		return report.Picture{}, err
	}
	var names []string
	for _, p := range all {
		switch {
		case p.Name != name:
			names = append(names, p.Name)
		case p.Missing != "":
			return p, exitcode.Usagef("chart %s of %s: %s", name, dir, p.Missing)
		default:
			return p, nil
		}
	}
	hint := "`loadgen report " + dir + " --charts` lists them"
	if near := strictyaml.Suggest(name, names); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return report.Picture{}, exitcode.Usagef("%s has no chart %q (%s)", dir, name, hint)
}

// Criteria are gates and Prometheus rules that are not in the scenario of a run.
type Criteria struct {
	// Files are files of gates as in a scenario (gates: [...]), and files or directories of rules (see alerting.Read).
	Files []string
	// Map lists replacements of label values in the rules, in the format of alerting.ParseMapping.
	Map []string
	// AllowNoData names gates and alerts whose missing data is ignored. If every gate lacks data, it has no effect.
	AllowNoData []string
	// HTML receives the report with the result. If it is nil, Judge writes no report.
	HTML io.Writer
}

// By judges the run in dir by the gates and rules in files, as Criteria.Judge does. noDataAllowed is
// Criteria.AllowNoData.
func By(ctx context.Context, dir string, files []string, noDataAllowed ...string) (result.Result, error) {
	return Criteria{Files: files, AllowNoData: noDataAllowed}.Judge(ctx, dir)
}

// Judge evaluates the criteria instead of the gates of the run in dir, and does not change dir. Without files of gates,
// no alert of the rules may fire in any phase. With such files, only the alerts that gates name affect the verdict.
// Lost scrapes, a saturated generator and similar problems affect it as in the function Judge.
func (c Criteria) Judge(ctx context.Context, dir string) (res result.Result, err error) {
	rec, err := rundir.Open(dir)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	if rec.Scenario == nil { // gates name phases and loads of the scenario, so they need it
		return res, fmt.Errorf("%s: %w", dir, errors.Join(rec.Damage...))
	}
	gates, notes, err := c.read(ctx, rec)
	if err == nil {
		err = gate.AllowNoData(gates, c.AllowNoData)
	}
	switch {
	case err != nil && rec.Foreign != nil: // the gates may name parts of the scenario that were lost
		err = fmt.Errorf("it is not the scenario that ran, and the gates do not fit it: %w", err)
		return res, fmt.Errorf("%s: %w", dir, &result.Damaged{File: result.ScenarioFile, Err: err})
	case err != nil:
		return res, exitcode.UsageError(err)
	}
	res, err = judge(ctx, rec, gates)
	res.Notes = append(notes, res.Notes...)
	if err == nil && c.HTML != nil {
		err = report.HTML(ctx, c.HTML, res, rec.Timeline, rec.Slots, rec.ScenarioText, source(rec))
	}
	return res, err
}

// read reads the files of the criteria. `notes` describes skipped objects and derived mappings.
func (c Criteria) read(ctx context.Context, rec *rundir.Recorded) (all []gate.Compiled, notes []string, err error) {
	s := rec.Scenario
	var rules alerting.Ruleset
	texts := map[string][]byte{} // the contents of the files with gates, by name
	var errs []error
	for _, file := range c.Files {
		text, err := userfile.Read(file, userfile.Text)
		info, missing := os.Stat(file)
		switch kind := holds(text); {
		case err != nil && (missing != nil || !info.IsDir()):
			errs = append(errs, fmt.Errorf("--rules %s: %w (give a file with gates or with Prometheus rules)", file, err))
		case err == nil && kind == "gates":
			texts[file] = text
		case err == nil && kind == "":
			errs = append(errs, fmt.Errorf("%s: the file contains neither gates nor rules (write gates: as in a scenario, groups: as for Prometheus, or a PrometheusRule)", file))
		default:
			set, note, err := alerting.Read(file)
			if note != "" {
				notes = append(notes, note)
			}
			rules, errs = append(rules, set...), append(errs, err)
		}
	}
	err = errors.Join(errs...)
	if err == nil && len(texts) == 0 && len(rules.Alerts()) == 0 {
		err = fmt.Errorf("%s: no file has alerts (add one: recording rules cannot be judged)", strings.Join(c.Files, ", "))
	}
	if err == nil {
		rules, err = c.mapped(ctx, rec, rules, &notes)
	}
	if err != nil {
		return nil, nil, err
	}
	names := map[string]bool{}
	for _, file := range c.Files {
		text, ok := texts[file]
		if !ok {
			continue
		}
		with, err := s.WithGates(file, text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		gates, err := gate.CompileWith(plan.Of(with), &rules)
		errs = append(errs, err)
		for _, g := range gates {
			if names[g.Name] {
				errs = append(errs, with.Errorf("gates."+g.Name, "give each gate a unique name", "another file also defines a gate %q", g.Name))
			}
		}
		for _, g := range gates {
			names[g.Name] = true
		}
		all = append(all, gates...)
	}
	quiet, err := gate.Quiet(plan.Of(s), &rules, len(texts) > 0)
	return append(all, quiet...), notes, errors.Join(append(errs, err)...)
}

// mapped replaces label values in the rules, by the mappings in c.Map and those derived from the recording.
func (c Criteria) mapped(ctx context.Context, rec *rundir.Recorded, rules alerting.Ruleset, notes *[]string) (alerting.Ruleset, error) {
	rules, given, err := rules.MapFlags(c.Map)
	if err != nil || rec.Archive == nil {
		return rules, err
	}
	derived, more, err := rules.Derive(ctx, rec.Archive, given)
	if err != nil { // the archive is damaged, which judging reports
		return rules, ctx.Err()
	}
	*notes = append(*notes, more...)
	return rules.Map(derived)
}

// holds returns a top-level field that shows the kind of a YAML file: "gates", "groups" or "kind". It returns "" for
// any other file.
func holds(text []byte) string {
	var fields map[string]yaml.Node
	err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&fields)
	switch {
	case errors.Is(err, io.EOF):
		return ""
	case err != nil:
		return "gates" // the parser of gates reports the error and its line
	}
	for _, name := range []string{"gates", "groups", "kind"} {
		if _, ok := fields[name]; ok {
			return name
		}
	}
	return ""
}
