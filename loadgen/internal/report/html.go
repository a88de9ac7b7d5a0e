package report

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/report/panel"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
)

//go:embed page
var pageFiles embed.FS

// HTML writes report.html: one file, readable without network and without
// script. A policy in the page forbids both, but for our own script by its
// hash: a label from a hostile cluster could not load or run anything even if
// it were not escaped.
func HTML(ctx context.Context, w io.Writer, r result.Result, timeline []result.Event, slots []samples.Slot, scenarioYAML []byte, src chart.Source) error {
	view := newPage(ctx, r, timeline, slots, scenarioYAML, src)
	if err := ctx.Err(); err != nil {
		return err // half of the charts would be missing
	}
	style, script, tmpl, err := loadPage()
	if err != nil {
		return err
	}
	data, err := json.Marshal(view.data())
	if err != nil {
		return fmt.Errorf("encode the charts' values: %w", err)
	}
	if err := view.fill(ctx, tmpl); err != nil {
		return err
	}
	hash := sha256.Sum256(script)
	view.Style = template.CSS(string(style) + panel.Style())
	view.Script = template.JS(script)
	view.Data = template.JS(data) // json.Marshal escapes <, > and &
	view.ScriptHash = "sha256-" + base64.StdEncoding.EncodeToString(hash[:])
	var buf bytes.Buffer
	if err := tmpl.Execute(&buf, view); err != nil {
		return fmt.Errorf("render the page: %w", err)
	}
	_, err = w.Write(buf.Bytes())
	return err
}

func loadPage() (style, script []byte, tmpl *template.Template, err error) {
	if style, err = pageFiles.ReadFile("page/style.css"); err != nil {
		return nil, nil, nil, err
	}
	if script, err = pageFiles.ReadFile("page/script.js"); err != nil {
		return nil, nil, nil, err
	}
	tmpl, err = template.New("report.tmpl").ParseFS(pageFiles, "page/*.tmpl")
	return style, script, tmpl, err
}

// scriptData holds the values that the script shows under the pointer.
type scriptData struct {
	Start  int64         `json:"start"` // Unix seconds of the first point
	Step   float64       `json:"step"`  // seconds
	N      int           `json:"n"`
	Phases []scriptPhase `json:"phases"`
	Charts []scriptChart `json:"charts"` // only those that were drawn, in their order
}

type scriptPhase struct {
	Name  string  `json:"name"`
	Start float64 `json:"start"` // seconds after Start
	End   float64 `json:"end"`
}

type scriptChart struct {
	Unit   string         `json:"unit"`
	Series []scriptSeries `json:"series"`
}

type scriptSeries struct {
	Name   string       `json:"name"`
	Colour int          `json:"colour"`
	Values scriptValues `json:"values"`
}

// scriptValues are the values of a line; a gap is null.
type scriptValues []float64

// MarshalJSON writes the short form.
func (v scriptValues) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	for i, f := range v {
		if i > 0 {
			out = append(out, ',')
		}
		if math.IsNaN(f) {
			out = append(out, "null"...)
			continue
		}
		out = strconv.AppendFloat(out, f, 'g', -1, 64)
	}
	return append(out, ']'), nil
}

func (p *page) data() scriptData {
	d := scriptData{Start: p.Grid.Start.Unix(), Step: p.Grid.Step.Seconds(), N: p.Grid.N, Phases: p.phases, Charts: []scriptChart{}}
	for _, s := range p.Sections {
		for _, c := range s.Charts {
			if c.Missing != "" {
				continue
			}
			chart := scriptChart{Unit: string(c.Unit)}
			for _, l := range c.Series {
				chart.Series = append(chart.Series, scriptSeries{l.Name, l.Colour, l.Values})
			}
			d.Charts = append(d.Charts, chart)
		}
	}
	return d
}
