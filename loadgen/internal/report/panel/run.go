package panel

import (
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Run is what is drawn into every panel besides its data.
type Run struct {
	Span
	Phases []Mark
	// Zero is the moment from which the page counts time. The zero value: Start.
	Zero time.Time
	// Causes are the faults. ReadRun has the loads too.
	Causes []Cause
}

// Faults are the causes that are no loads.
func (r Run) Faults() []Mark {
	var all []Mark
	for _, c := range r.Causes {
		if !c.Load {
			all = append(all, c.Mark)
		}
	}
	return all
}

// RunOf is the run that a result and its timeline tell of, with the interval
// between its scrapes.
func RunOf(r result.Result, timeline []result.Event, scrape time.Duration) Run {
	run := Run{Span: Span{Start: r.Run.Started, End: r.Run.Ended, Scrape: scrape}}
	phases := r.Measurements.Phases
	if len(phases) > 0 {
		run.Start, run.End = phases[0].Start, phases[len(phases)-1].End
	}
	for _, p := range phases {
		run.Phases = append(run.Phases, Mark{chart.Clean(p.Name), p.Start, p.End})
	}
	open := map[string]int{} // by the fault's ID
	var nodes []int          // those of simulated nodes, until they recover
	for _, e := range timeline {
		at := len(run.Causes)
		switch {
		case e.Kind == "fault-begin":
			open[e.Fault] = at
			run.Causes = append(run.Causes, Cause{Mark: Mark{chart.Clean(e.Name), e.Time, run.End}, Of: kindsOf(e.On)})
		case e.Kind == "fault-end":
			if i, ok := open[e.Fault]; ok {
				run.Causes[i].End = e.Time
			}
		case e.Kind == "fault" && control.EndsNodeFaults(e.Name):
			for _, i := range nodes {
				run.Causes[i].End = e.Time
			}
			nodes = nil
		case e.Kind == "fault":
			nodes = append(nodes, at)
			run.Causes = append(run.Causes, Cause{Mark: Mark{chart.Clean(e.Name), e.Time, run.End}, Of: kindsOf(e.On)})
		}
	}
	return run
}

// ReadRun is the run that was recorded in dir. It needs no result: a run that
// was killed has a recording too.
func ReadRun(dir string) (Run, error) {
	var r result.Result
	var err error
	if r.Run, err = result.ReadRun(dir); err != nil {
		return Run{}, err
	}
	if err := result.ReadJSON(dir, result.MeasurementsFile, &r.Measurements); err != nil {
		return Run{}, err
	}
	timeline, err := timeline.ReadTimeline(dir)
	if err != nil {
		return Run{}, err
	}
	text, err := result.ReadFile(dir, result.ScenarioFile)
	if err != nil {
		return Run{}, err
	}
	s, err := scenario.ParseRecorded(result.ScenarioFile, text)
	if err != nil {
		return Run{}, err
	}
	run := RunOf(r, timeline, s.Record.Interval.D())
	run.Causes = causes(run, s, r.Measurements.Phases)
	return run, nil
}
