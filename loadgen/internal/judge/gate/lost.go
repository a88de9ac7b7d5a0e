package gate

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
)

// lostScrapes counts the scrapes of each target that were lost for no fault of
// the scenario's. Without an archive nothing is known of when: all count.
func lostScrapes(ctx context.Context, a *archive.Archive, outages timeline.Outages, s result.Scrapes) (map[string]int64, error) {
	if a == nil || len(outages) == 0 || len(s.Failed) == 0 {
		return s.Failed, nil
	}
	first, last, err := a.Bounds(ctx)
	if err != nil {
		return s.Failed, ctx.Err()
	}
	up, err := a.Samples(ctx, first, last, archive.Equal(model.MetricNameLabel, "up"))
	if err != nil {
		return s.Failed, err
	}
	lost := maps.Clone(s.Failed)
	for _, series := range up {
		instance := series.Labels[model.InstanceLabel]
		for _, p := range series.Points {
			if p.V == 0 && lost[instance] > 0 && outages.Fault(instance, p.T, p.T) != "" {
				lost[instance]--
			}
		}
	}
	return lost, nil
}

// exits describes the exits of processes not caused by a fault, a line each: when
// (UTC), in which phase, how.
func exits(unexplained []timeline.Exit, phases []result.Phase) (lines []string) {
	for _, e := range unexplained {
		line := fmt.Sprintf("%s at %s", e.Component, e.Time.UTC().Format("15:04:05.0"))
		for _, p := range phases {
			if !e.Time.Before(p.Start) && e.Time.Before(p.End) {
				line += " in " + p.Name
			}
		}
		if e.Detail != "" {
			line += ": " + e.Detail
		}
		lines = append(lines, line)
	}
	return lines
}

func withNotes(detail string, notes []string) string {
	if len(notes) == 0 {
		return detail
	}
	return strings.TrimPrefix(detail+"; "+strings.Join(notes, "; "), "; ")
}
