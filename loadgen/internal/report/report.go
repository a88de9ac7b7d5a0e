// Package report presents the result of a run to people and to programs: a summary for a terminal,
// result.json, junit.xml and report.html. A reporter is a function that writes a result to an
// io.Writer. Reporters use neither the network nor a clock, so the same run directory gives the
// same bytes a year later.
//
// Package gate decides the verdict; this package only presents it. Text from a cluster (label
// values, error texts) is untrusted: control characters never reach a terminal, and templates
// escape the other characters.
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
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/stormglass/stormglass/internal/atomicfile"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/report/document"
	"github.com/stormglass/stormglass/loadgen/internal/report/panel"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Write writes result.json, junit.xml and report.html to dir, and replaces each file atomically. It
// removes a file that it cannot write, so that no older verdict remains. A nil src means that no
// metrics were recorded; the charts then say so.
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
		if err := atomicfile.PublishFunc(path, f.write); err != nil {
			stays := ""
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				stays = "; the existing file is from an earlier verdict"
			}
			errs = append(errs, writeError(path, err, stays))
		}
	}
	return errors.Join(errs...)
}

// JSON writes a result in the format of result.json, which docs/reference/result.md describes.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// publish writes the file `name` in dir. It replaces an existing file atomically.
func publish(dir, name string, write func(io.Writer) error) error {
	path := filepath.Join(dir, name)
	if err := atomicfile.PublishFunc(path, write); err != nil {
		return writeError(path, err, "")
	}
	return nil
}

func writeError(path string, err error, more string) error {
	return fmt.Errorf("write %s: %w%s (make the directory writable, and remove anything at this path that is not a file)", path, userfile.Cause(err), more)
}

//go:embed page uplot
var pageFiles embed.FS

// HTML writes report.html, which works without network and without scripts. A content security policy in the page
// forbids all network access and all scripts except the page's own, which it allows by hash. So a label from a hostile
// cluster cannot load or run anything, even if it is not escaped.
func HTML(ctx context.Context, w io.Writer, r result.Result, timeline []result.Event, slots []samples.Slot, scenarioYAML []byte, src chart.Source) error {
	return newPage(ctx, r, timeline, slots, scenarioYAML, src).write(ctx, w, sections())
}

func (p *page) write(ctx context.Context, w io.Writer, some []section) error {
	if err := ctx.Err(); err != nil {
		return err // some charts would be missing
	}
	script, tmpl, err := loadPage()
	if err != nil {
		return err
	}
	if p.steered {
		more, err := pageFiles.ReadFile("page/live.js")
		if err != nil {
			return err
		}
		script = append(script, more...)
	}
	data, err := p.scriptJSON()
	if err != nil {
		return err
	}
	if err := p.fill(ctx, tmpl, some); err != nil {
		return err
	}
	hash := sha256.Sum256(script)
	p.PanelStyle = template.CSS(panel.Style())
	p.Script = template.JS(script)
	p.Data = data
	p.ScriptHash = "sha256-" + base64.StdEncoding.EncodeToString(hash[:])
	var buf bytes.Buffer
	if err := tmpl.Execute(&buf, p); err != nil {
		return fmt.Errorf("render the page: %w", err)
	}
	_, err = w.Write(buf.Bytes())
	return err
}

// loadPage returns the script and the templates of the page. The script begins with the licence of the chart library and
// the library itself.
func loadPage() (script []byte, tmpl *template.Template, err error) {
	read := func(names ...string) (text []byte) {
		for _, name := range names {
			part, failed := pageFiles.ReadFile(name)
			text, err = append(text, part...), errors.Join(err, failed)
		}
		return text
	}
	styles := template.CSS(read("uplot/uPlot.min.css")) + document.Style()
	licence := fmt.Appendf(nil, "/*!\n%s*/\n", read("uplot/LICENSE"))
	script = append(licence, read("uplot/uPlot.iife.min.js", "page/script.js")...)
	if err != nil {
		return nil, nil, err
	}
	tmpl, err = template.New("report.tmpl").Funcs(template.FuncMap{
		"clean": terminal.Clean, "word": word, "gateWord": gateWord, "style": style, "seconds": optional, "capitalize": capitalize,
		"gateValue": gateValue, "gateBound": gateBound, "margin": margin, "usedUp": usedUp, "withheld": withheld,
		"stylesheet": func() template.CSS { return styles },
	}).ParseFS(pageFiles, "page/*.tmpl")
	return script, tmpl, err
}

// scriptData holds the data of the charts for the page's script, which shows the values under the mouse pointer.
type scriptData struct {
	Start  int64          `json:"start"` // Unix time of the first point, in seconds; 0: points have no time of day
	Step   float64        `json:"step"`  // time between two points, in seconds
	N      int            `json:"n"`
	Phases []scriptPhase  `json:"phases"`
	Charts []*chart.Chart `json:"charts"` // only the charts with data, in the order of the page
}

type scriptPhase struct {
	Name  string  `json:"name"`
	Start float64 `json:"start"` // start of the phase, in seconds after scriptData.Start
	End   float64 `json:"end"`
}

// scriptJSON returns the data of the charts in JSON.
func (p *page) scriptJSON() (template.JS, error) {
	data, err := json.Marshal(p.data())
	if err != nil {
		return "", fmt.Errorf("encode the charts' values: %w", err)
	}
	return template.JS(data), nil // json.Marshal escapes <, > and &
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

// place is the position of a section on the page.
type place int

const (
	first  place = iota // before the timeline
	middle              // in the timeline, below its axis
	last                // after the timeline
)

// section is a part of the page. The template page/NAME.tmpl renders the data that view returns. If the run has no data
// for the section, view returns nil.
type section struct {
	name  string
	place place
	view  func(ctx context.Context, p *page) (any, error)
}

// sections returns the sections of the page, in order. To add a section, write its view and its
// template in new files, and add a row here.
func sections() []section {
	whole := func(_ context.Context, p *page) (any, error) { return p, nil }
	return []section{
		{"gates", first, gatesView},
		{"alerts", first, alertsView},
		{"key", first, keyView},
		{"diagnosis", middle, diagnosisSection},
		{"tracks", middle, whole},
		{"recovery", middle, recoveryView},
		{"rollouts", middle, rolloutsView},
		{"charts", middle, whole},
		{"panels", last, panelsView},
		{"traces", last, tracesView},
		{"breakdown", last, breakdownView},
		{"scheduling", last, schedulingView},
		{"profiles", last, profilesView},
		{"hooks", last, hooksView},
		{"detail", last, detailView},
		{"environment", last, environmentView},
	}
}

func summarySections() []func(*terminalWriter, result.Result) {
	return []func(*terminalWriter, result.Result){
		(*terminalWriter).header, (*terminalWriter).reasons, (*terminalWriter).gates, (*terminalWriter).alerts, (*terminalWriter).diagnosed, (*terminalWriter).keyMetrics, (*terminalWriter).phases, (*terminalWriter).delivered, (*terminalWriter).figures,
		(*terminalWriter).rollouts, (*terminalWriter).transitions, (*terminalWriter).recovery, (*terminalWriter).traced, (*terminalWriter).breakdown, (*terminalWriter).scheduling, (*terminalWriter).cost, (*terminalWriter).profiles, (*terminalWriter).hooks,
	}
}

func (p *page) fill(ctx context.Context, tmpl *template.Template, some []section) error {
	places := map[place]*[]template.HTML{first: &p.First, middle: &p.Middle, last: &p.Last}
	for _, s := range some {
		view, err := s.view(ctx, p)
		if err != nil {
			return err
		}
		if view == nil {
			continue
		}
		var b strings.Builder
		if err := tmpl.ExecuteTemplate(&b, s.name, view); err != nil {
			return fmt.Errorf("render the section %s: %w", s.name, err)
		}
		*places[s.place] = append(*places[s.place], template.HTML(b.String())) // the template has escaped it
	}
	return nil
}

// panelsView returns the panels of the dashboards. Times in the panels count from the start of the page's axis.
func panelsView(ctx context.Context, p *page) (any, error) {
	run := panel.RunOf(p.result, p.events, p.interval)
	run.Zero = p.Grid.Start
	return panel.HTML(ctx, p.src, run)
}
