package report

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// page holds the data of the page's templates, with all texts formatted.
type page struct {
	chart.Timeline

	Title, Scenario string
	Class, Word     string // CSS class and word for the verdict
	Headline        string
	Description     string
	Machine         string // the phases in which the machine was busy, and the reason; empty if it never was
	NoneIdle        string // the phases without idle processor time, or ""
	Generator       string // text which says that the load generator was fast enough, or ""
	Diagnose        bool   // whether the page names the command that looks for causes
	Warnings, Notes []string
	Facts           []fact
	Reasons         []string
	LookBack        string // range over which charts compute rates and quantiles
	Sections        []drawnSection

	PanelStyle template.CSS
	Script     template.JS
	Data       template.JS
	ScriptHash string

	First, Middle, Last []template.HTML // HTML of the sections, by their place

	result   result.Result
	events   []result.Event
	yaml     string
	src      chart.Source
	interval time.Duration // time between scrapes
	qps      float64       // --kube-api-qps of kube-controller-manager; 0: the default
	phases   []scriptPhase
	live     bool // whether the run is in progress
	steered  bool // whether the page has buttons to control the run
	bare     bool // whether the page has no charts
}

type fact struct{ Name, Value string }

func newPage(ctx context.Context, r result.Result, timeline []result.Event, slots []samples.Slot, text []byte, src chart.Source) *page {
	p := &page{}
	p.lay(ctx, r, timeline, slots, text, src)
	return p
}

// lay fills in and formats all data that the templates show.
func (p *page) lay(ctx context.Context, r result.Result, timeline []result.Event, slots []samples.Slot, text []byte, src chart.Source) {
	// The resolved scenario was valid when it ran. It must be shown even if the
	// schema of a later version does not accept it.
	s, err := scenario.ParseRecorded(result.ScenarioFile, text)
	if err != nil {
		s = &scenario.Scenario{}
	}
	head := headline(r)
	p.Scenario, p.Class, p.Word = runName(r), cmp.Or(style(r.Verdict), "nodata"), runWord(r)
	p.Machine, p.NoneIdle, p.Generator, p.Diagnose = busyMachine(r), noneIdle(r), generatorState(r), undiagnosed(r)
	p.Warnings, p.Notes = cleaned(r.Run.Warnings), cleaned(r.Notes)
	p.Headline, p.Description = strings.ToUpper(head[:1])+head[1:]+".", terminal.Clean(s.Description)
	p.Facts, p.Reasons = facts(r), otherReasons(r)
	p.result, p.events, p.yaml, p.src = r, timeline, string(text), src
	p.Origin = origin(r)
	p.qps = s.ControlPlane.ControllerManager.QPS
	p.Title = fmt.Sprintf("%s: %s", p.Word, p.Scenario)
	p.interval = cmp.Or(p.interval, s.Record.Interval.D(), rundir.DefaultInterval)
	p.layTimeline(r, timeline, p.interval)
	p.LookBack = chart.Format(scenario.Seconds, rateSteps*p.Grid.Step.Seconds())
	p.layTracks(r.Recovery)
	if p.bare {
		return
	}
	if felt, ok := p.errorRateSection(slots); ok && (r.Recovery != nil || felt.drawn()) {
		p.Sections = append(p.Sections, felt)
	}
	if signals, ok := p.signalSection(); ok {
		p.Sections = append(p.Sections, signals)
	}
	p.Sections = append(p.Sections, p.chartSections(ctx)...)
	for i := range p.Sections {
		p.Sections[i].fold()
	}
}

// facts returns the facts about the run for the banner of the page, which also shows the verdict.
func facts(r result.Result) []fact {
	if r.Run.ID == "" {
		return []fact{{"Duration, control plane, seed", "not recorded"}, {exitFact, fmt.Sprint(r.ExitCode)}}
	}
	plane := terminal.Clean(r.Run.Cluster.Name)
	if r.Run.Cluster.Bundled {
		plane = cmp.Or(plane, "bundled")
	}
	f := []fact{{"From first to last phase", chart.Format(scenario.Seconds, runSeconds(r))}, {"Control plane", plane}}
	if v := kubernetesText(r.Run.Versions); v != "" {
		f = append(f, fact{"Kubernetes", v})
	}
	if v := etcdText(r.Run.Versions); v != "" {
		f = append(f, fact{"etcd", v})
	}
	if n := r.Measurements.Nodes; n != nil && n.Count > 0 {
		f = append(f, fact{"Simulated nodes", chart.Count(n.Count) + " (fidelity " + terminal.Clean(n.Fidelity) + ")"})
	}
	return append(f,
		fact{"Started", r.Run.Started.UTC().Format("2006-01-02 15:04:05 UTC")},
		fact{"Seed", fmt.Sprint(r.Run.Seed)},
		fact{exitFact, fmt.Sprint(r.ExitCode)})
}

// exitFact is the name of the last fact, the exit code.
const exitFact = "Exit code"

// layTimeline creates the time axis of all charts, with the phases and marks.
func (p *page) layTimeline(r result.Result, events []result.Event, interval time.Duration) {
	start, end := r.Run.Started, r.Run.Ended
	phases := r.Measurements.Phases
	switch {
	case len(phases) > 0:
		start, end = phases[0].Start, phases[len(phases)-1].End
	case start.IsZero() && len(events) > 0:
		start, end = events[0].Time, events[len(events)-1].Time
	}
	for _, e := range events {
		// The axis includes the registration of nodes and events after the last phase.
		if e.Time.Before(start) && e.Time.After(r.Run.Started) {
			start = e.Time
		}
		if e.Time.After(end) && e.Time.Before(r.Run.Ended) {
			end = e.Time
		}
	}
	p.Grid = chart.NewGrid(start, end, interval)
	p.phases = []scriptPhase{}
	faults := timeline.Of(events).Faults
	for i, ph := range phases {
		p.Bands = append(p.Bands, p.newBand(ph, i, faults))
		p.phases = append(p.phases, scriptPhase{terminal.Clean(ph.Name), round3(p.Grid.At(ph.Start)), round3(p.Grid.At(ph.End))})
	}
	p.layEvents(events)
	for _, t := range chart.TimeTicks(p.Grid.Seconds(), 12) {
		if t > .97*p.Grid.Seconds() {
			break // the label would be cut off
		}
		p.TimeTicks = append(p.TimeTicks, chart.Mark{At: chart.PercentAt(t / p.Grid.Seconds()), Label: chart.Clock(t)})
	}
}

func round3(v float64) float64 { return float64(int64(v*1000+0.5)) / 1000 }

func (p *page) newBand(ph result.Phase, i int, faults []timeline.Fault) chart.Band {
	from, to := p.Grid.Fraction(ph.Start), p.Grid.Fraction(ph.End)
	return chart.Band{
		Name: terminal.Clean(ph.Name), Took: chart.Format("seconds", ph.Seconds()) + phaseNote(ph),
		Left: chart.PercentAt(from), Width: chart.PercentAt(to - from), X: chart.Coordinate(from * chart.PlotWidth), W: chart.Coordinate((to - from) * chart.PlotWidth),
		Odd: i%2 == 1, Narrow: to-from < 0.035, From: from, To: to,
		Fault: slices.ContainsFunc(faults, func(f timeline.Fault) bool { return !f.Begin.Before(ph.Start) && f.Begin.Before(ph.End) }),
	}
}

// maxMarks is the maximum number of numbered marks on an axis. The log below the charts has all events.
const maxMarks = 40

// layEvents adds a numbered mark to the axis for each action on the cluster and each event in the
// cluster. A mark that is too close to the previous one goes to a lower lane.
func (p *page) layEvents(events []result.Event) {
	const near, lanes = 0.045, 3
	last := make([]float64, lanes)
	for i := range last {
		last[i] = -1
	}
	for _, e := range events {
		if !marked(e) {
			continue
		}
		if len(p.Events) == maxMarks {
			return
		}
		at := p.Grid.Fraction(e.Time)
		lane := 0
		for i := range lanes {
			if at-last[i] > near {
				lane = i
				break
			}
		}
		last[lane] = at
		bar := e.Kind == result.EventFaultBegin
		if bar {
			// The detail repeats the kind and says more.
			e.Kind = result.EventNodeFault // use one word for both kinds
			if strings.HasPrefix(e.Detail, e.Name) {
				e.Name, e.Detail = e.Detail, ""
			} else if len(e.On) > 0 {
				e.Name += " on " + strings.Join(e.On, ", ")
			}
		}
		p.Events = append(p.Events, chart.Event{
			N: len(p.Events) + 1, Left: chart.PercentAt(at), X: chart.Coordinate(at * chart.PlotWidth), Lane: lane,
			Kind: terminal.Clean(string(e.Kind)), Name: terminal.Clean(e.Name), Detail: eventDetail(e), Clock: chart.Clock(p.Grid.At(e.Time)),
			Fault: e.Kind == result.EventNodeFault, At: at, Bar: bar,
		})
	}
}

// marked reports whether the axis marks an event.
func marked(e result.Event) bool {
	switch e.Kind {
	case result.EventPhaseStart, result.EventPhaseEnd:
		return false
	case result.EventFaultEnd, result.EventExit, result.EventStart, result.EventReady, result.EventLease, result.EventEtcdLeader,
		result.EventRelist, result.EventWatchBreak:
		return false // bars and curves show these events, and the log lists them
	}
	return true
}

// eventDetail returns the first line of an event's detail. The reasons of the verdict contain the other lines.
func eventDetail(e result.Event) string {
	first, _, _ := strings.Cut(e.Detail, "\n")
	return strings.TrimSuffix(terminal.Clean(first), ":")
}

func (p *page) eventLog(events []result.Event) table {
	t := table{
		Caption: "Every event of the timeline",
		Head:    heads("Time in the run", "UTC", "Kind", "Subject", "Detail"),
	}
	for _, e := range events {
		t.add(chart.Clock(p.Grid.At(e.Time)), e.Time.UTC().Format("15:04:05.000"), terminal.Clean(string(e.Kind)), terminal.Clean(e.Name), eventDetail(e))
	}
	if len(events) == 0 {
		t.Empty = "No event was recorded."
	}
	return t
}

// EventsNote returns a note if the axis does not mark all events, otherwise "".
func (p *page) EventsNote() string {
	if len(p.Events) == maxMarks && len(p.events) > maxMarks {
		return fmt.Sprintf("This list has the first %d events. The end of the report lists all events.", maxMarks)
	}
	return ""
}
