package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stormglass/stormglass/internal/atomicfile"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Write makes result.json, junit.xml and report.html in dir. Each file is
// replaced as a whole; one that cannot be made is removed, so that no older verdict
// stays. A nil src means that no metrics were recorded; the charts then say so.
func Write(ctx context.Context, dir string, r result.Result, timeline []result.Event, slots []samples.Slot, scenarioYAML []byte, src chart.Source) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var errs []error
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{result.ResultFile, func(w io.Writer) error { return JSON(w, r) }},
		{result.JUnitFile, func(w io.Writer) error { return JUnit(w, r) }},
		{result.HTMLFile, func(w io.Writer) error { return HTML(ctx, w, r, timeline, slots, scenarioYAML, src) }},
	} {
		path := filepath.Join(dir, f.name)
		if err := writeAtomic(path, f.write); err != nil {
			stays := ""
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				stays = "; what is there is not of this verdict"
			}
			errs = append(errs, fmt.Errorf("write %s: %w%s (make the directory writable, and remove what is no file in it)", path, userfile.Cause(err), stays))
		}
	}
	return errors.Join(errs...)
}

// JSON writes result.json; docs/reference/result.md describes every field.
func JSON(w io.Writer, r result.Result) error { return indented(w, r) }

// NodesJSON writes what `loadgen nodes -o json` prints: the `nodes` section of
// result.json.
func NodesJSON(w io.Writer, n result.Nodes) error { return indented(w, n) }

func indented(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// writeAtomic renders in memory and writes the file as a whole.
func writeAtomic(path string, render func(io.Writer) error) error {
	var buf bytes.Buffer
	if err := render(&buf); err != nil {
		return err
	}
	return atomicfile.Publish(path, buf.Bytes())
}
