package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/scratch"
	"github.com/stormglass/stormglass/loadgen/result"
)

// maxObjects is the maximum number of JSON objects in a result that the index reads. Each object can take a kilobyte of
// memory.
const maxObjects = 100_000

// kindOf returns the kind of a directory that contains the given files, or "".
func kindOf(files map[string]bool) Kind {
	switch {
	case files[result.ABFile]:
		return AB
	case files[result.CapacityFile]:
		return Capacity
	case files[result.ComparisonFile]:
		return Variants
	case files[result.RunFile], files[result.TimelineFile], files[result.PulseFile], files[result.MeasurementsFile], files[result.TSDBDir]:
		return Run
	}
	return ""
}

// read reads the directory of an entry. files are the names of its files. settled is false if the entry can change
// without a change of the directory's modification time.
func read(e *Entry, files map[string]bool) (settled bool) {
	switch e.Kind {
	case Run:
		return readRun(e, files)
	case AB:
		readStudy(e, files, result.ABFile, result.ABHTMLFile)
	case Capacity:
		readStudy(e, files, result.CapacityFile, result.CapacityHTMLFile)
	case Variants:
		readStudy(e, files, result.ComparisonFile, result.ComparisonHTMLFile)
	}
	return true
}

// readRun reads a run: result.json or, for an active or killed run, run.json.
func readRun(e *Entry, files map[string]bool) (settled bool) {
	if files[result.HTMLFile] {
		e.Page = result.HTMLFile
	}
	if files[result.ResultFile] {
		var x extract
		data, err := result.ReadFile(e.Dir, result.ResultFile)
		switch n := bytes.Count(data, []byte("{")); {
		case err != nil:
		case n > maxObjects:
			err = fmt.Errorf("%s has %d objects, but the index reads at most %d", result.ResultFile, n, maxObjects)
		default:
			err = result.Decode(result.ResultFile, data, &x)
		}
		if err != nil {
			e.damaged(err)
			return true
		}
		e.judged(x)
		return true
	}
	r, err := result.ReadRun(e.Dir)
	if err != nil && active(e.Dir) {
		r, err = result.Run{}, nil // the run has not written run.json yet
	}
	if err != nil {
		e.damaged(err)
		return true
	}
	e.describe(r)
	if !active(e.Dir) {
		e.Verdict, e.Style, e.Unfit = Unjudged, "nodata", "it was not judged"
		return true
	}
	e.Verdict, e.Style, e.Unfit, e.State = Running, "pending", "it has not ended", phaseOf(e.Dir)
	return false
}

// young is the age below which a directory counts as active, and Scan reads it again. The index does not try to lock a
// young directory, because a run locks its directory right after creating it, and must not find it locked by the index.
const young = 5 * time.Second

// recent reports whether a directory with the given modification time is young.
func recent(modTime time.Time) bool {
	age := time.Since(modTime)
	return age >= 0 && age < young
}

// active reports whether a run is active: another process holds the lock of its directory.
func active(dir string) bool {
	if info, err := os.Stat(dir); err == nil && recent(info.ModTime()) {
		return true
	}
	return scratch.Locked(dir)
}

// phaseOf returns the phase of an active run, or "" between phases.
func phaseOf(dir string) (phase string) {
	events, err := result.ReadLines[result.Event](dir, result.TimelineFile)
	if err != nil {
		return ""
	}
	for _, event := range events {
		switch event.Kind {
		case result.EventPhaseStart:
			phase = short(event.Name)
		case result.EventPhaseEnd:
			phase = ""
		}
	}
	return phase
}

// study holds the fields that the files of comparisons and capacity searches have in common.
type study struct {
	Scenario  string            `json:"scenario"`
	Started   time.Time         `json:"started"`
	Ended     time.Time         `json:"ended"`
	Answer    string            `json:"answer"`
	ExitCode  int               `json:"exitCode"`
	Overrides []string          `json:"overrides"`
	Reasons   []string          `json:"reasons"`
	Notes     []string          `json:"notes"`
	Versions  result.Versions   `json:"versions"`
	Host      result.Host       `json:"host"`
	Labels    map[string]string `json:"labels"`
	Sides     json.RawMessage   `json:"sides"` // set only in comparisons of capacities
}

// Check implements result.Checked.
func (*study) Check() error { return nil }

// readStudy reads a comparison or a capacity search from the file `name`.
func readStudy(e *Entry, files map[string]bool, name, page string) {
	if files[page] {
		e.Page = page
	}
	var s study
	if err := result.ReadJSON(e.Dir, name, &s); err != nil {
		e.damaged(err)
		return
	}
	if s.Sides != nil {
		e.Kind = Capacity
	}
	e.describe(result.Run{Scenario: s.Scenario, Started: s.Started, Ended: s.Ended, Versions: s.Versions, Host: s.Host, Overrides: s.Overrides, Labels: s.Labels})
	e.Style = map[int]string{0: "pass", 1: "fail"}[s.ExitCode]
	if e.Style == "" {
		e.Style = "nodata"
	}
	e.Verdict = short(s.Answer)
	if e.Verdict == "" { // each variant has its own verdict
		e.Verdict = map[string]string{"pass": string(result.Pass), "fail": string(result.Fail), "nodata": string(result.NoData)}[e.Style]
	}
	for _, why := range append(s.Reasons, s.Notes...) {
		e.why(why)
	}
}

func (e *Entry) damaged(err error) {
	e.Verdict, e.Style, e.Unfit = Damaged, "nodata", "a file is damaged"
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err // pages must not show paths of this machine
	}
	e.why(err.Error())
}
