package judge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Pictures are the charts of the report of the run in dir, as it was judged last.
// They read nothing but the directory and write nothing.
func Pictures(ctx context.Context, dir string) ([]report.Picture, error) {
	if rundir.IsComparison(dir) {
		return nil, exitcode.Usagef("%s: a comparison has no charts of its own (name the directory of one of its variants)", dir)
	}
	var res result.Result
	err := result.ReadJSON(dir, result.ResultFile, &res)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exitcode.Usagef("%s: it was not judged, or is no directory of a run (`loadgen report %s` judges it)", dir, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w (`loadgen report %s` judges the run again)", dir, err, dir)
	}
	changed := res.Run.Changed(dir)
	for _, file := range []string{result.TimelineFile, result.PulseFile, result.TSDBDir} {
		if err := changed[file]; err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
	}
	timeline, err := timeline.ReadTimeline(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	slots, err := samples.Read(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	text, err := result.ReadFile(dir, result.ScenarioFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	var source chart.Source // nil: the charts of metrics say that there are none
	if archive, err := archive.Open(dir); err == nil {
		defer archive.Close()
		source = series{archive}
	}
	return report.Pictures(ctx, res, timeline, slots, text, source)
}

// Picture is the one of that name of the run in dir. An error: there is none, or it
// has nothing to show.
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
