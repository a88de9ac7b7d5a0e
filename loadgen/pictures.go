package loadgen

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/pulse"
	"github.com/stormglass/stormglass/loadgen/record"
	"github.com/stormglass/stormglass/loadgen/report"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Pictures are the charts of the report of the run in dir, as it was judged last.
// They read nothing but the directory and write nothing.
func Pictures(ctx context.Context, dir string) ([]report.Picture, error) {
	if IsComparison(dir) {
		return nil, usagef("%s: a comparison has no charts of its own (name the directory of one of its variants)", dir)
	}
	var res result.Result
	if _, err := os.Stat(filepath.Join(dir, result.ResultFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("%s: it was not judged, or is no directory of a run (`loadgen report %s` judges it)", dir, dir)
	}
	if err := readJSON(dir, result.ResultFile, &res); err != nil {
		return nil, err
	}
	timeline, err := record.ReadTimeline(dir)
	if err != nil {
		return nil, environmentf("%w", err)
	}
	slots, err := pulse.Read(dir)
	if err != nil {
		return nil, environmentf("%w", err)
	}
	text, err := scenarioText(dir)
	if err != nil {
		return nil, err
	}
	var source report.Source // nil: the charts of metrics say that there are none
	if archive, err := record.OpenArchive(dir); err == nil {
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
			return p, usagef("chart %s of %s: %s", name, dir, p.Missing)
		default:
			return p, nil
		}
	}
	hint := "`loadgen report " + dir + " --charts` lists them"
	if near := strictyaml.Suggest(name, names); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return report.Picture{}, usagef("%s has no chart %q (%s)", dir, name, hint)
}
