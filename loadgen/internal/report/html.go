package report

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/report/panel"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
)

//go:embed page uplot
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

// loadPage reads the page's style, script and templates. The script begins with the
// chart library and its licence.
func loadPage() (style, script []byte, tmpl *template.Template, err error) {
	read := func(names ...string) (text []byte) {
		for _, name := range names {
			part, failed := pageFiles.ReadFile(name)
			text, err = append(text, part...), errors.Join(err, failed)
		}
		return text
	}
	style = read("uplot/uPlot.min.css", "page/style.css")
	licence := fmt.Appendf(nil, "/*!\n%s*/\n", read("uplot/LICENSE"))
	script = append(licence, read("uplot/uPlot.iife.min.js", "page/script.js")...)
	if err != nil {
		return nil, nil, nil, err
	}
	tmpl, err = template.New("report.tmpl").ParseFS(pageFiles, "page/*.tmpl")
	return style, script, tmpl, err
}

// scriptData holds what the script draws and reads out.
type scriptData struct {
	Start  int64          `json:"start"` // Unix seconds of the first point
	Step   float64        `json:"step"`  // seconds
	N      int            `json:"n"`
	Phases []scriptPhase  `json:"phases"`
	Charts []*chart.Chart `json:"charts"` // only those that were drawn, in their order
}

type scriptPhase struct {
	Name  string  `json:"name"`
	Start float64 `json:"start"` // seconds after Start
	End   float64 `json:"end"`
}

func (p *page) data() scriptData {
	d := scriptData{Start: p.Grid.Start.Unix(), Step: p.Grid.Step.Seconds(), N: p.Grid.N, Phases: p.phases, Charts: []*chart.Chart{}}
	for _, s := range p.Sections {
		for i := range s.Charts {
			d.Charts = append(d.Charts, &s.Charts[i])
		}
	}
	return d
}
