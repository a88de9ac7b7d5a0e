package rundir

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
)

// OpenJudged reads the directory of a run that was judged, and its result, to draw
// what was judged then. The run and its measurements are the result's. A file that was
// changed since is an error; without an archive the run has no metrics.
func OpenJudged(dir string) (rec *Recorded, res result.Result, err error) {
	if IsComparison(dir) {
		return nil, res, exitcode.Usagef("%s: a comparison has no charts of its own (name the directory of one of its variants)", dir)
	}
	err = result.ReadJSON(dir, result.ResultFile, &res)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, res, exitcode.Usagef("%s: it was not judged, or is no directory of a run (`loadgen report %s` judges it)", dir, dir)
	}
	if err != nil {
		return nil, res, fmt.Errorf("%s: %w (`loadgen report %s` judges the run again)", dir, err, dir)
	}
	rec = &Recorded{Dir: dir, Run: res.Run, Measurements: res.Measurements}
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
	if archive, err := archive.Open(dir); err == nil {
		rec.Archive = archive
	}
	return rec, res, nil
}
