package ab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scratch"
	"github.com/stormglass/stormglass/loadgen/result"
)

// A figure has no value in an earlier run that defines it differently.
func TestTrendOfARedefinedFigure(t *testing.T) {
	dir := t.TempDir()
	record(t, filepath.Join(dir, "1"), 1, strings.Replace(text, "objective: request-latency", "expr: up", 1), around(1, 0), nil)
	record(t, filepath.Join(dir, "2"), 1, text, around(1, 0), func(r *result.Run) { r.Started = at(1000) })
	got, err := Trend(t.Context(), []string{dir})
	if err != nil || len(got.Runs) != 2 || got.Figures[0].Values[0] != nil || got.Figures[0].Values[1] == nil {
		t.Errorf("%+v: %v", got, err)
	}
}

// A trend needs runs with figures and known start times.
func TestTrendOfWhatCannotBeFollowed(t *testing.T) {
	dir := t.TempDir()
	record(t, dir, 1, text, around(1, 0), nil)
	var r result.Result
	if err := result.ReadJSON(filepath.Join(dir, "1"), result.ResultFile, &r); err != nil {
		t.Fatal(err)
	}
	r.Figures = nil
	if err := rundir.WriteJSON(filepath.Join(dir, "1"), result.ResultFile, r); err != nil {
		t.Fatal(err)
	}
	if _, err := Trend(t.Context(), []string{dir}); err == nil || !strings.Contains(err.Error(), "has no metrics to compare") {
		t.Errorf("without figures: %v", err)
	}
	dir = t.TempDir()
	record(t, filepath.Join(dir, "1"), 1, text, around(1, 0), func(r *result.Run) { r.Started = time.Time{} })
	if _, err := Trend(t.Context(), []string{dir}); err == nil || !strings.Contains(err.Error(), "run.json is missing or damaged") {
		t.Errorf("without a time: %v", err)
	}
}

// A run that was cut short is not a point of a trend.
func TestTrendLeavesOutWhatWasCutShort(t *testing.T) {
	dir := t.TempDir()
	record(t, filepath.Join(dir, "1"), 1, text, around(1, 0), nil)
	record(t, filepath.Join(dir, "2"), 1, text, around(1, 0), func(r *result.Run) { r.Started, r.Interrupted = at(1000), true })
	got, err := Trend(t.Context(), []string{dir})
	if err != nil || got.Figures[0].Values[0] == nil || got.Figures[0].Values[1] != nil || !strings.Contains(strings.Join(got.Notes, "\n"), "2/1 is left out: it was interrupted") {
		t.Errorf("%+v: %v", got, err)
	}
}

// A run in progress is not judged when it is compared.
func TestRunThatGoesOnIsNotCompared(t *testing.T) {
	dir := archivetest.SoundRun(t)
	lock, err := scratch.LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	if _, err := Trend(t.Context(), []string{dir}); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "the run is still active (wait until it ends)") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, result.ResultFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Trend judged a run that is still active: Stat(%s) = %v", result.ResultFile, err)
	}
}
