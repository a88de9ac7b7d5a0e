package gate

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/loadgen/record"
)

// unfit says why the samples of a target in a window cannot be trusted. A lost
// scrape or another process is none where a fault of the scenario's kept the
// target away: that is noted.
func (c Compiled) unfit(ctx context.Context, a *record.Archive, w window, instance string) (why, note string, err error) {
	up, err := a.Samples(ctx, w.start, w.end, match(model.MetricNameLabel, "up"), match("instance", instance))
	if err != nil {
		return "", "", err
	}
	excuse := func(from, until time.Time) bool {
		fault := away(c.outages, instance, from, until)
		if fault != "" {
			note = awayNote(instance, fault)
		}
		return fault != ""
	}
	atStart, atEnd := false, false
	for _, s := range up {
		for _, p := range s.Points {
			if p.V == 0 && !excuse(p.T, p.T) {
				return fmt.Sprintf("a scrape of %s was lost in %s", instance, w.name), "", nil
			}
			atStart = atStart || p.T.Equal(w.start)
			atEnd = atEnd || p.T.Equal(w.end)
		}
	}
	if !atStart || !atEnd {
		return fmt.Sprintf("%s was not scraped at the boundaries of %s", instance, w.name), "", nil
	}
	why, err = c.restarted(ctx, a, w, instance, excuse)
	return why, note, err
}

// restarted says that a target was another process at the end of a window than
// at its start, unless that is excused.
func (c Compiled) restarted(ctx context.Context, a *record.Archive, w window, instance string, excuse func(from, until time.Time) bool) (string, error) {
	started, err := a.Samples(ctx, w.start, w.end, match(model.MetricNameLabel, "process_start_time_seconds"), match("instance", instance))
	if err != nil {
		return "", err
	}
	var first float64
	last := w.start
	for _, s := range started {
		for _, p := range s.Points {
			if first != 0 && !record.SameProcess(first, p.V) && !excuse(last, p.T) {
				return fmt.Sprintf("%s restarted in %s", instance, w.name), nil
			}
			first, last = p.V, p.T
		}
	}
	if first == 0 && !excuse(w.start, w.end) {
		return fmt.Sprintf("%s shows no process_start_time_seconds in %s: a restart could not be told", instance, w.name), nil
	}
	return "", nil
}
