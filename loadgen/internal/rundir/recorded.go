// Package rundir creates the directory of a run and reads it again. Open also reports which files are missing or damaged.
// Gates and reports use the Recorded that Open returns.
package rundir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/auditsummary"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Recorded holds the contents of a run directory. A file that has changed since the run counts as missing, so gates
// that need it have no data. A changed scenario is an exception: Open reads it and sets Foreign.
type Recorded struct {
	Dir          string
	Run          result.Run
	Measurements result.Measurements
	Timeline     []result.Event
	Scenario     *scenario.Scenario // nil if it cannot be read
	ScenarioText []byte
	Slots        []samples.Slot
	Audit        *auditsummary.Audit
	Archive      *archive.Archive // nil if it cannot be read
	// Interval is the time between two samples of a series. OpenJudged sets it only for a downsampled run; otherwise it
	// is 0, and the samples are one scrape interval apart.
	Interval time.Duration
	// Downsampled is not nil if the archive has only some of the recorded samples. Verdicts must not depend on such an
	// archive.
	Downsampled *result.ReducedError
	// Foreign is an error if the scenario in the directory is not the scenario that ran. It is nil if both are the
	// same, or if this is unknown.
	Foreign error
	// TracesChanged is true if the traces were changed after the run. Notes then says so.
	TracesChanged bool
	// Damage contains an error for each missing or damaged file. Notes contains a line for each check that was not
	// possible.
	Damage []error
	Notes  []string
	// Recovery holds the effects of the faults. It is nil if the run had no faults or similar events to recover from.
	// Signals holds the values of the scenario's signals (metrics of an incident). Judging sets both fields.
	Recovery *result.Recovery
	Signals  []result.Signal
}

// DefaultInterval is the scrape interval that is assumed if the scenario of a run cannot be read.
const DefaultInterval = 5 * time.Second

// Open reads a run directory. It returns a usage error if dir is not a run directory, and a *result.ReducedError if the
// run was reduced to its results or downsampled.
func Open(dir string) (*Recorded, error) { return open(dir, false) }

// OpenToShow is like Open, but also opens a downsampled run. Callers must not judge the run.
func OpenToShow(dir string) (*Recorded, error) { return open(dir, true) }

func open(dir string, show bool) (*Recorded, error) {
	ours, err := result.IsRunDir(dir)
	if err != nil {
		return nil, exitcode.Usagef("%s: %w (is this the directory of a run?)", dir, err)
	}
	if !ours {
		return nil, exitcode.Usagef("%s: the directory contains no files of a run (is this the directory of a run?)", dir)
	}
	rec := &Recorded{Dir: dir}
	if err := rec.checkReduced(show); err != nil {
		return nil, err
	}
	rec.Run, err = result.ReadRun(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		rec.AddDamage(fmt.Errorf("%w: the run was killed while it started, or the file was lost", err))
	case err != nil:
		rec.AddDamage(err)
	}
	if lost := rec.Run.RemoteWrite.Lost(dir); lost != "" {
		rec.Notes = append(rec.Notes, lost)
	}
	changed := rec.Run.Changed(dir)
	if err == nil && len(rec.Run.Files) == 0 {
		rec.Notes = append(rec.Notes, "the run recorded no checksums of its files, so loadgen cannot detect changes after the run")
	}
	rec.TracesChanged = changed[result.TracesDir] != nil
	rec.readScenario(changed[result.ScenarioFile])
	if rec.Scenario != nil {
		rec.Interval = cmp.Or(rec.Interval, rec.Scenario.Record.Interval.D())
	}
	rec.Interval = cmp.Or(rec.Interval, DefaultInterval)
	take(rec, &rec.Measurements, changed[result.MeasurementsFile], rec.readMeasurements)
	take(rec, &rec.Timeline, changed[result.TimelineFile], timeline.Read)
	take(rec, &rec.Slots, changed[result.PulseFile], samples.Read)
	take(rec, &rec.Audit, changed[result.AuditFile], auditsummary.Load)
	take(rec, &rec.Archive, changed[result.TSDBDir], func(dir string) (*archive.Archive, error) {
		if changed[result.TSDBDir] != nil { // Prometheus' TSDB does not validate the files that it opens
			return nil, changed[result.TSDBDir]
		}
		return rec.openArchive()
	})
	for _, file := range slices.Sorted(maps.Keys(changed)) {
		if strings.HasPrefix(file, result.ReplayPrefix) || file == result.TracesDir { // no verdict depends on these
			rec.Notes = append(rec.Notes, changed[file].Error())
		}
	}
	rec.complete()
	return rec, nil
}

// checkReduced returns an error if the run was reduced to its results. If the run was downsampled, it returns an error
// unless show is set.
func (rec *Recorded) checkReduced(show bool) error {
	err := result.CheckReduced(rec.Dir)
	if r, ok := errors.AsType[*result.ReducedError](err); ok && show && r.Interval > 0 {
		rec.Downsampled, rec.Interval, err = r, r.Every(), nil
	}
	return err
}

func (rec *Recorded) openArchive() (*archive.Archive, error) {
	a, err := archive.Open(rec.Dir)
	if rec.Downsampled != nil && err == nil {
		a.SetInterval(rec.Interval)
	}
	return a, err
}

// take reads a file or directory of the run into *into. If it cannot be read, or has changed since the run (changed is
// not nil), take adds the error to Damage.
func take[T any](rec *Recorded, into *T, changed error, read func(dir string) (T, error)) {
	part, err := read(rec.Dir)
	switch {
	case err != nil: // err names the file
		rec.AddDamage(err)
	case changed != nil:
		rec.AddDamage(changed)
	default:
		*into = part
	}
}

// AddDamage adds err to Damage unless err is nil or Damage contains an error with the same message.
func (rec *Recorded) AddDamage(err error) {
	if err != nil && !slices.ContainsFunc(rec.Damage, func(known error) bool { return known.Error() == err.Error() }) {
		rec.Damage = append(rec.Damage, err)
	}
}

// Doubts returns the errors that prevent the run from passing: Foreign, if not nil, and Damage.
func (rec *Recorded) Doubts() []error {
	if rec.Foreign == nil {
		return rec.Damage
	}
	return append([]error{rec.Foreign}, rec.Damage...)
}

func (rec *Recorded) lost(file string) bool {
	return slices.ContainsFunc(rec.Damage, func(err error) bool {
		d, ok := errors.AsType[*result.Damaged](err)
		return ok && d.File == file
	})
}

// Close closes the archive.
func (rec *Recorded) Close() error {
	if rec.Archive == nil {
		return nil
	}
	return rec.Archive.Close()
}

// Phases returns the measured phases by name.
func (rec *Recorded) Phases() map[string]result.Phase {
	phases := map[string]result.Phase{}
	for _, p := range rec.Measurements.Phases {
		phases[p.Name] = p
	}
	return phases
}

// Began returns the start of the first phase, or the zero time if no phase started. The creation of nodes and the setup
// come before the first phase.
func (rec *Recorded) Began() time.Time {
	if len(rec.Measurements.Phases) == 0 {
		return time.Time{}
	}
	return rec.Measurements.Phases[0].Start
}

// ArchiveDamage returns the reason why the archive could not be opened, in one line.
func (rec *Recorded) ArchiveDamage() error {
	for _, err := range rec.Damage {
		if d, ok := errors.AsType[*result.Damaged](err); ok && strings.HasPrefix(d.File, result.TSDBDir) {
			return err
		}
	}
	return errors.Join(rec.Damage...)
}

// Unreadable converts an error that occurred when reading the open archive to a *result.Damaged.
func (rec *Recorded) Unreadable(err error) error {
	if broken, ok := errors.AsType[promql.ErrStorage](err); ok {
		err = broken.Err
	}
	return fmt.Errorf("%s: %w", rec.Dir, &result.Damaged{File: result.TSDBDir, Err: err})
}

// Requests returns the results of all requests in a phase, including the writes of loads of kind "changes".
func Requests(p result.Phase) []result.Requests {
	all := slices.Clone(p.Requests)
	for _, c := range p.Changes {
		all = append(all, c.Requests)
	}
	return all
}

// readMeasurements reads the measurements. It returns no error if they are missing because the run was killed in its
// first phase.
func (rec *Recorded) readMeasurements(dir string) (m result.Measurements, err error) {
	err = result.ReadJSON(dir, result.MeasurementsFile, &m)
	if errors.Is(err, fs.ErrNotExist) && rec.Run.Ended.IsZero() {
		err = nil
	}
	return m, err
}

// readScenario reads the scenario, and sets Foreign if it is not the scenario that ran.
func (rec *Recorded) readScenario(changed error) {
	text, err := result.ReadFile(rec.Dir, result.ScenarioFile)
	if err != nil {
		rec.AddDamage(err)
		return
	}
	rec.ScenarioText = text
	s, err := scenario.ParseRecorded(rec.scenarioPath(), text)
	if err != nil {
		rec.AddScenarioDamage(err)
		return
	}
	rec.Scenario = s
	why := ""
	switch {
	case changed != nil:
		why = "its SHA-256 differs from the one in " + result.RunFile
	case rec.Run.Scenario != "" && s.Name != rec.Run.Scenario:
		why = fmt.Sprintf("the file contains scenario %s, but the run used scenario %s", s.Name, rec.Run.Scenario)
	default:
		return
	}
	rec.Foreign = fmt.Errorf("%s is not the scenario that ran: %s (restore the original, or judge by other gates: `loadgen gate DIR --rules FILE`)",
		result.ScenarioFile, why)
}

func (rec *Recorded) scenarioPath() string { return filepath.Join(rec.Dir, result.ScenarioFile) }

// AddScenarioDamage adds an error in the scenario to Damage. It replaces the path in the message, because Damaged names
// the file.
func (rec *Recorded) AddScenarioDamage(err error) {
	rec.AddDamage(&result.Damaged{File: result.ScenarioFile, Err: errors.New(strings.ReplaceAll(err.Error(), rec.scenarioPath()+":", "line "))})
}

// complete adds errors to Damage if the measurements or the timeline lack phases that, according to the other files, the
// run must have recorded.
func (rec *Recorded) complete() {
	switch {
	case rec.Run.ID == "":
		if rec.Scenario != nil {
			rec.Run.Scenario = rec.Scenario.Name
		}
		return // it is unknown which phases the run reached
	case rec.Run.Ended.IsZero():
		rec.Run.Interrupted = true
	}
	if rec.Run.CutShort() != "" {
		return // run.json says that the run is incomplete
	}
	if rec.Scenario != nil && rec.Foreign == nil && !rec.lost(result.MeasurementsFile) {
		if err := rec.checkPhases(); err != nil {
			rec.AddDamage(err)
			rec.Measurements = result.Measurements{}
		}
	}
	if !rec.lost(result.TimelineFile) {
		if err := timeline.Of(rec.Timeline).CheckPhases(rec.Measurements.Phases); err != nil {
			rec.AddDamage(&result.Damaged{File: result.TimelineFile, Err: err})
		}
	}
}

// checkPhases returns an error if a run that ended normally lacks the measurements of a phase. A run may lack later phases
// if the condition of a phase was not met.
func (rec *Recorded) checkPhases() error {
	measured := rec.Measurements.Phases
	for i, p := range rec.Scenario.Phases {
		switch {
		case i < len(measured) && measured[i].Name == p.Name && (measured[i].Until != p.Until.String() || measured[i].Interrupted):
			return &result.Damaged{File: result.MeasurementsFile, Err: fmt.Errorf("phase %s is interrupted or does not match the scenario", p.Name)}
		case i < len(measured) && measured[i].Name == p.Name:
			continue
		case i > 0 && i == len(measured) && measured[i-1].Until != "" && !measured[i-1].ConditionMet:
			return nil
		}
		return &result.Damaged{File: result.MeasurementsFile, Err: fmt.Errorf("phase %s is missing, although the run ended normally", p.Name)}
	}
	if len(measured) > len(rec.Scenario.Phases) {
		return &result.Damaged{File: result.MeasurementsFile, Err: fmt.Errorf("it has phase %s, which is not in the scenario", measured[len(rec.Scenario.Phases)].Name)}
	}
	return nil
}

// IsComparison reports whether dir contains the runs of several variants and their comparison.
func IsComparison(dir string) bool {
	return slices.ContainsFunc([]string{result.ComparisonFile, result.ComparisonHTMLFile}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	})
}

// OpenJudged reads the directory of a judged run, to draw charts of the judged data. It takes the run and its measurements
// from result.json. It returns an error if a file has changed since the run was judged. If the archive cannot be opened,
// OpenJudged returns no metrics. It also opens a downsampled run.
func OpenJudged(dir string) (rec *Recorded, res result.Result, err error) {
	if IsComparison(dir) {
		return nil, res, exitcode.Usagef("%s: a comparison has no charts (specify the directory of one variant)", dir)
	}
	rec = &Recorded{Dir: dir}
	if err := rec.checkReduced(true); err != nil {
		return nil, res, err
	}
	err = result.ReadJSON(dir, result.ResultFile, &res)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, res, exitcode.Usagef("%s: the run was not judged, or this is not the directory of a run (judge it with `loadgen report %s`)", dir, dir)
	}
	if err != nil {
		return nil, res, fmt.Errorf("%s: %w (`loadgen report %s` judges the run again)", dir, err, dir)
	}
	rec.Run, rec.Measurements = res.Run, res.Measurements
	changed := res.Run.Changed(dir)
	for _, file := range []string{result.TimelineFile, result.PulseFile, result.TSDBDir} {
		if err := changed[file]; err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, res, fmt.Errorf("%s: %w", dir, err)
		}
	}
	if rec.Timeline, err = timeline.Read(dir); err == nil {
		rec.Slots, err = samples.Read(dir)
	}
	if err == nil {
		rec.ScenarioText, err = result.ReadFile(dir, result.ScenarioFile)
	}
	if err != nil {
		return nil, res, fmt.Errorf("%s: %w", dir, err)
	}
	if archive, err := rec.openArchive(); err == nil {
		rec.Archive = archive
	}
	return rec, res, nil
}
