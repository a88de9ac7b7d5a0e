package report

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// page holds the template's data, all text formatted.
type page struct {
	chart.Timeline

	Title, Scenario string
	Class, Word     string // of the verdict
	Headline        string
	Description     string
	Warnings, Notes []string
	Facts           []fact
	Reasons         []string
	LookBack        string // of rates and quantiles
	Sections        []drawnSection

	Style      template.CSS
	Script     template.JS
	Data       template.JS
	ScriptHash string

	First, Middle, Last []template.HTML // the sections, by place

	result   result.Result
	events   []result.Event
	yaml     string
	src      chart.Source
	interval time.Duration // between scrapes
	phases   []scriptPhase
}

type fact struct{ Name, Value string }

func newPage(ctx context.Context, r result.Result, timeline []result.Event, slots []samples.Slot, text []byte, src chart.Source) *page {
	// The resolved scenario was valid when it ran; a later version's schema
	// must not keep an old run from being shown.
	s, err := scenario.ParseRecorded(result.ScenarioFile, text)
	if err != nil {
		s = &scenario.Scenario{}
	}
	p := &page{
		Scenario: runName(r), Class: style(r.Verdict), Word: runWord(r), Warnings: cleaned(r.Run.Warnings), Notes: cleaned(r.Notes),
		Headline: sentence(headline(r)), Description: chart.Clean(s.Description),
		Facts: facts(r), Reasons: otherReasons(r),
		result: r, events: timeline, yaml: string(text), src: src,
	}
	p.Origin = origin(r)
	p.Title = fmt.Sprintf("%s: %s", p.Word, p.Scenario)
	if p.Class == "" {
		p.Class = "nodata"
	}
	p.interval = cmp.Or(s.Record.Interval.D(), defaultInterval)
	p.layTimeline(r, timeline, p.interval)
	p.LookBack = chart.Format(scenario.Seconds, rateSteps*p.Grid.Step.Seconds())
	a := &artist{grid: p.Grid, src: src, result: r}
	p.layTracks(r.Recovery)
	if felt, ok := a.errorRateSection(slots); ok && (r.Recovery != nil || felt.drawn()) {
		p.Sections = append(p.Sections, felt)
	}
	if signals, ok := a.signalSection(); ok {
		p.Sections = append(p.Sections, signals)
	}
	p.Sections = append(p.Sections, a.sections(ctx)...)
	for i := range p.Sections {
		p.Sections[i].fold()
	}
	return p
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// facts are what the verdict depends on, in the banner.
func facts(r result.Result) []fact {
	if r.Run.ID == "" {
		return []fact{{"Took, control plane, seed", "not recorded"}, {"Exit code", fmt.Sprint(r.ExitCode)}}
	}
	plane := "bundled"
	if !r.Run.Cluster.Bundled {
		plane = chart.Clean(r.Run.Cluster.Name)
	}
	f := []fact{{"Took", chart.Format(scenario.Seconds, runSeconds(r))}, {"Control plane", plane}}
	if v := chart.Clean(r.Run.Versions.Kubernetes); v != "" {
		f = append(f, fact{"Kubernetes", v})
	}
	if v := chart.Clean(r.Run.Versions.Etcd); v != "" {
		f = append(f, fact{"etcd", v})
	}
	if n := r.Measurements.Nodes; n != nil && n.Count > 0 {
		f = append(f, fact{"Nodes", chart.Count(n.Count) + ", " + chart.Clean(n.Fidelity)})
	}
	return append(f,
		fact{"Started", r.Run.Started.UTC().Format("2006-01-02 15:04:05 UTC")},
		fact{"Seed", fmt.Sprint(r.Run.Seed)},
		fact{"Exit code", fmt.Sprint(r.ExitCode)})
}
