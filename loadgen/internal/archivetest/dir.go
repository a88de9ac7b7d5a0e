package archivetest

import (
	"encoding/json"
	"errors"
	"path/filepath"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
)

// RunDir ends the recording and makes a run's directory of it, with a scenario, what
// else a run leaves behind and the digests of it all: what reads directories can be
// tested on it.
func (l *Lab) RunDir(scenario string, run result.Run, m result.Measurements, events ...result.Event) string {
	l.t.Helper()
	if err := l.recorder.Close(); err != nil {
		l.t.Fatal(err)
	}
	w, err := timeline.Open(l.dir)
	if err != nil {
		l.t.Fatal(err)
	}
	// Without a line break at the end: each byte that is cut off damages it.
	measured, err := json.Marshal(m)
	errs := []error{
		err, rundir.WriteFile(filepath.Join(l.dir, result.ScenarioFile), []byte(scenario)),
		rundir.WriteFile(filepath.Join(l.dir, result.MeasurementsFile), measured),
	}
	for _, e := range events {
		errs = append(errs, w.Append(e))
	}
	errs = append(errs, w.Close())
	run.Files, err = result.Digest(l.dir)
	if err := errors.Join(append(errs, err, rundir.WriteInfo(l.dir, run))...); err != nil {
		l.t.Fatal(err)
	}
	return l.dir
}
