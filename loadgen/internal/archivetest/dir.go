package archivetest

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/stormglass/stormglass/loadgen/result"
)

// RunDir ends the recording and makes a run's directory of it, with a scenario, what
// else a run leaves behind and the digests of it all: what reads directories can be
// tested on it.
func (l *Lab) RunDir(scenario string, run result.Run, m result.Measurements, timeline ...result.Event) string {
	l.t.Helper()
	if err := l.recorder.Close(); err != nil {
		l.t.Fatal(err)
	}
	write := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(l.dir, name), text, 0o600); err != nil {
			l.t.Fatal(err)
		}
	}
	marshal := func(v any) []byte {
		text, err := json.Marshal(v)
		if err != nil {
			l.t.Fatal(err)
		}
		return text
	}
	write(result.ScenarioFile, []byte(scenario))
	write(result.MeasurementsFile, marshal(m))
	var lines []byte
	for _, e := range timeline {
		lines = append(append(lines, marshal(e)...), '\n')
	}
	write(result.TimelineFile, lines)
	var err error
	if run.Files, err = result.Digest(l.dir); err != nil {
		l.t.Fatal(err)
	}
	text, err := run.Encode()
	if err != nil {
		l.t.Fatal(err)
	}
	write(result.RunFile, text)
	return l.dir
}
