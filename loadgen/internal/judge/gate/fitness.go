package gate

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// fitness tells how far the scrapes of a target in a window can be relied on.
type fitness struct {
	instance string
	// why they cannot be trusted at all; empty: they can.
	why string
	// fault that kept the target away for a time, by its kind; empty: none did.
	fault string
	// known is how much of the window lies between two scrapes of one process: what
	// it counted then is told in full. What a process had counted since its last scrape
	// is gone with it.
	known, window time.Duration
}

// whole: everything that the target counted in the window is known.
func (f fitness) whole() bool { return f.why == "" && f.known == f.window }

// fit looks at the scrapes of a target in a window. One that is lost, or of another
// process, is no reason for doubt where a fault of the scenario's kept the target
// away: that is noted.
func (c Compiled) fit(ctx context.Context, a *archive.Archive, w window, instance string) (f fitness, err error) {
	f = fitness{instance: instance, window: w.end.Sub(w.start)}
	up, err := a.Samples(ctx, w.start, w.end, archive.Equal(model.MetricNameLabel, "up"), archive.Equal("instance", instance))
	if err != nil {
		return f, err
	}
	excuse := func(from, until time.Time) bool {
		fault := c.outages.Fault(instance, from, until)
		if fault != "" {
			f.fault = fault
		}
		return fault != ""
	}
	atStart, atEnd := false, false
	for _, s := range up {
		for _, p := range s.Points {
			if p.V == 0 && !excuse(p.T, p.T) {
				f.why = fmt.Sprintf("a scrape of %s was lost in %s", instance, w.name)
				return f, nil
			}
			atStart = atStart || p.T.Equal(w.start)
			atEnd = atEnd || p.T.Equal(w.end)
		}
	}
	if !atStart || !atEnd {
		f.why = fmt.Sprintf("%s was not scraped at the boundaries of %s", instance, w.name)
		return f, nil
	}
	started, err := a.Samples(ctx, w.start, w.end, archive.Equal(model.MetricNameLabel, "process_start_time_seconds"), archive.Equal("instance", instance))
	if err != nil {
		return f, err
	}
	var first float64
	last := w.start
	for _, s := range started {
		for _, p := range s.Points {
			switch {
			case first == 0:
			case archive.SameProcess(first, p.V):
				f.known += p.T.Sub(last)
			case !excuse(last, p.T):
				f.why = fmt.Sprintf("%s restarted in %s", instance, w.name)
				return f, nil
			}
			first, last = p.V, p.T
		}
	}
	if first == 0 && !excuse(w.start, w.end) {
		f.why = fmt.Sprintf("%s shows no process_start_time_seconds in %s: a restart could not be told", instance, w.name)
	}
	return f, nil
}
