package loadgen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/breakdown"
	"github.com/stormglass/stormglass/loadgen/gate"
	"github.com/stormglass/stormglass/loadgen/outage"
	"github.com/stormglass/stormglass/loadgen/pulse"
	"github.com/stormglass/stormglass/loadgen/record"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// recordedRun is what a run left behind. A file that is not as the run wrote it is taken
// for missing: what gates would read in it is no data. Only the scenario is read all
// the same, and then the run is not judged as itself.
type recordedRun struct {
	gate.Recorded
	dir      string
	scenario *scenario.Scenario // nil: it cannot be read
	text     []byte             // of the scenario
	slots    []pulse.Slot
	audit    *breakdown.Audit
	archive  *record.Archive // nil: it cannot be read
	// foreign says that the scenario is not the run's own; nil: it is, or nobody knows.
	foreign error
	damage  []error // a line for each file
	notes   []string
}

// openRecorded reads the directory of a run. An error means that it is none.
func openRecorded(dir string) (*recordedRun, error) {
	ours, err := result.IsRunDir(dir)
	if err != nil {
		return nil, usagef("%s: %w (is it the directory of a run?)", dir, err)
	}
	if !ours {
		return nil, usagef("%s: none of the files of a run is in it (is it the directory of a run?)", dir)
	}
	rec := &recordedRun{dir: dir}
	rec.Run, err = result.ReadRun(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		rec.damaged(fmt.Errorf("%w: the run was killed while it came up, or the file was lost", err))
	case err != nil:
		rec.damaged(err)
	}
	changed := rec.Run.Changed(dir)
	if err == nil && len(rec.Run.Files) == 0 {
		rec.notes = append(rec.notes, "digests of the run's files: not recorded (a change after the run would not be noticed)")
	}
	rec.readScenario(changed[result.ScenarioFile])
	take(rec, &rec.Measurements, changed[result.MeasurementsFile], rec.readMeasurements)
	take(rec, &rec.Timeline, changed[result.TimelineFile], record.ReadTimeline)
	take(rec, &rec.slots, changed[result.PulseFile], pulse.Read)
	take(rec, &rec.audit, changed[result.AuditFile], breakdown.LoadAudit)
	take(rec, &rec.archive, changed[result.TSDBDir], func(dir string) (*record.Archive, error) {
		if changed[result.TSDBDir] != nil { // Prometheus' TSDB trusts what it opens
			return nil, changed[result.TSDBDir]
		}
		return record.OpenArchive(dir)
	})
	for _, file := range slices.Sorted(maps.Keys(changed)) {
		if strings.HasPrefix(file, result.ReplayPrefix) { // judging does not read it
			rec.notes = append(rec.notes, changed[file].Error())
		}
	}
	rec.complete()
	return rec, nil
}

// take reads a part of the run. One that was changed since is not taken.
func take[T any](rec *recordedRun, into *T, changed error, read func(dir string) (T, error)) {
	part, err := read(rec.dir)
	switch {
	case err != nil: // it says where
		rec.damaged(err)
	case changed != nil:
		rec.damaged(changed)
	default:
		*into = part
	}
}

// damaged notes what is wrong, once.
func (rec *recordedRun) damaged(err error) {
	if err != nil && !slices.ContainsFunc(rec.damage, func(known error) bool { return known.Error() == err.Error() }) {
		rec.damage = append(rec.damage, err)
	}
}

// lost tells whether a file is damaged.
func (rec *recordedRun) lost(file string) bool {
	return slices.ContainsFunc(rec.damage, func(err error) bool {
		var d *result.Damaged
		return errors.As(err, &d) && d.File == file
	})
}

// Close releases the archive.
func (rec *recordedRun) Close() error {
	if rec.archive == nil {
		return nil
	}
	return rec.archive.Close()
}

// readMeasurements reads the measurements. A run that was killed in its first phase
// has none.
func (rec *recordedRun) readMeasurements(dir string) (m result.Measurements, err error) {
	err = result.ReadJSON(dir, result.MeasurementsFile, &m)
	if errors.Is(err, fs.ErrNotExist) && rec.Run.Ended.IsZero() {
		err = nil
	}
	if err != nil {
		m = result.Measurements{}
	}
	return m, err
}

// readScenario reads the scenario, whether it is the run's own or not.
func (rec *recordedRun) readScenario(changed error) {
	text, err := result.ReadFile(rec.dir, result.ScenarioFile)
	if err != nil {
		rec.damaged(err)
		return
	}
	rec.text = text
	s, err := scenario.ParseRecorded(rec.scenarioPath(), text)
	if err != nil {
		rec.damagedScenario(err)
		return
	}
	rec.scenario = s
	why := ""
	switch {
	case changed != nil:
		why = "its SHA-256 is not the one in " + result.RunFile
	case rec.Run.Scenario != "" && s.Name != rec.Run.Scenario:
		why = fmt.Sprintf("it is %s, and %s was run", s.Name, rec.Run.Scenario)
	default:
		return
	}
	rec.foreign = fmt.Errorf("%s is not the scenario that was run: %s (put the original back; by other gates `loadgen gate DIR --rules FILE` judges)",
		result.ScenarioFile, why)
}

func (rec *recordedRun) scenarioPath() string { return filepath.Join(rec.dir, result.ScenarioFile) }

// damagedScenario notes what is wrong with the scenario, by its lines.
func (rec *recordedRun) damagedScenario(err error) {
	rec.damaged(&result.Damaged{File: result.ScenarioFile, Err: errors.New(strings.ReplaceAll(err.Error(), rec.scenarioPath()+":", "line "))})
}

// complete says what is missing of what the run wrote, as far as the files that are
// there tell.
func (rec *recordedRun) complete() {
	switch {
	case rec.Run.ID == "":
		if rec.scenario != nil {
			rec.Run.Scenario = rec.scenario.Name
		}
		return // nobody knows how far it got
	case rec.Run.Ended.IsZero():
		rec.Run.Interrupted = true
	}
	if rec.Run.Interrupted || rec.Run.Failure != "" {
		return // it says so itself
	}
	if rec.scenario != nil && rec.foreign == nil && !rec.lost(result.MeasurementsFile) {
		if err := rec.checkPhases(); err != nil {
			rec.damaged(err)
			rec.Measurements = result.Measurements{}
		}
	}
	if !rec.lost(result.TimelineFile) {
		rec.damaged(rec.checkTimeline())
	}
}

// checkPhases is an error if the measurements of a run that ended in order lack one
// of its phases. A condition that was not met ends a run in order.
func (rec *recordedRun) checkPhases() error {
	told := rec.Measurements.Phases
	for i, p := range rec.scenario.Phases {
		switch {
		case i < len(told) && told[i].Name == p.Name && (told[i].Until != p.Until || told[i].Interrupted):
			return &result.Damaged{File: result.MeasurementsFile, Err: fmt.Errorf("phase %s is not told as the run ended it", p.Name)}
		case i < len(told) && told[i].Name == p.Name:
			continue
		case i > 0 && i == len(told) && told[i-1].Until != "" && !told[i-1].ConditionMet:
			return nil
		}
		return &result.Damaged{File: result.MeasurementsFile, Err: fmt.Errorf("it does not tell of phase %s, though the run ended in order", p.Name)}
	}
	if len(told) > len(rec.scenario.Phases) {
		return &result.Damaged{File: result.MeasurementsFile, Err: fmt.Errorf("it tells of phase %s, which the scenario has not", told[len(rec.scenario.Phases)].Name)}
	}
	return nil
}

// checkTimeline is an error if the timeline of a run that ended in order does not tell
// the start and the end of each phase once, at the time that was measured: faults and
// exits are told there, and what it does not tell may have happened all the same.
func (rec *recordedRun) checkTimeline() error {
	for _, p := range rec.Measurements.Phases {
		for _, bound := range []struct {
			kind, what string
			at         time.Time
		}{{"phase-start", "start", p.Start}, {"phase-end", "end", p.End}} {
			var told []time.Time
			for _, e := range rec.Timeline {
				if e.Kind == bound.kind && e.Name == p.Name {
					told = append(told, e.Time)
				}
			}
			var err error
			switch {
			case len(told) == 0:
				err = fmt.Errorf("it does not tell the %s of phase %s", bound.what, p.Name)
			case len(told) > 1:
				err = fmt.Errorf("it tells the %s of phase %s %d times", bound.what, p.Name, len(told))
			case !told[0].Equal(bound.at):
				err = fmt.Errorf("it tells the %s of phase %s at %s, and %s at %s", bound.what, p.Name,
					told[0].UTC().Format(clock), result.MeasurementsFile, bound.at.UTC().Format(clock))
			}
			if err != nil {
				return &result.Damaged{File: result.TimelineFile, Err: err}
			}
		}
	}
	return nil
}

// clock is how a time is told in an error.
const clock = "2006-01-02T15:04:05.000"

// judge judges the run by gates. An archive that cannot be read after all is none.
func (rec *recordedRun) judge(ctx context.Context, gates []gate.Compiled) (res result.Result, err error) {
	err = rec.withArchive(ctx, func() error {
		if err := rec.analyse(ctx); err != nil {
			return err
		}
		if res, err = gate.Judge(ctx, gates, rec.archive, rec.Recorded); err != nil {
			return err
		}
		if rec.scenario != nil {
			if res.Figures, err = rec.figures(ctx); err != nil {
				return err
			}
		}
		away, _ := outage.Read(rec.Timeline)
		res.Breakdown, err = breakdown.Split(ctx, rec.Measurements.Phases, rec.archive, rec.audit, away)
		return err
	})
	if err != nil {
		return res, err
	}
	rec.doubt(&res)
	return res, nil
}

// withArchive does what reads the archive. Where that fails it is damaged, and all is
// done again without it.
func (rec *recordedRun) withArchive(ctx context.Context, do func() error) error {
	err := do()
	if err == nil || ctx.Err() != nil || rec.archive == nil {
		return err
	}
	rec.damaged(&result.Damaged{File: result.TSDBDir, Err: err})
	rec.damaged(rec.archive.Close())
	rec.archive = nil
	return do()
}

// doubt says what the directory does not tell any more. By a scenario that is not its
// own the run does not fail either.
func (rec *recordedRun) doubt(res *result.Result) {
	res.Notes = append(res.Notes, rec.notes...)
	lacks(res, rec.damage...)
	if rec.foreign == nil {
		return
	}
	lacks(res, rec.foreign)
	if res.Verdict = result.NoData; res.ExitCode != ExitEnvironment {
		res.ExitCode = ExitNoData
	}
}

// lacks says first what is missing. Gates that need none of it may pass; the run does
// not.
func lacks(res *result.Result, all ...error) {
	var reasons []string
	for _, err := range all {
		reasons = append(reasons, err.Error())
	}
	res.Reasons = append(reasons, res.Reasons...)
	if len(all) > 0 && res.Verdict == result.Pass {
		res.Verdict, res.ExitCode = result.NoData, ExitNoData
	}
}
