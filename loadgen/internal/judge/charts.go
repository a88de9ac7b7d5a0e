package judge

import (
	"context"
	"errors"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
)

// Pictures are the charts of the report of the run in dir, as it was judged last.
// They read nothing but the directory and write nothing.
func Pictures(ctx context.Context, dir string) (all []report.Picture, err error) {
	rec, res, err := rundir.OpenJudged(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	return report.Pictures(ctx, res, rec.Timeline, rec.Slots, rec.ScenarioText, source(rec))
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
