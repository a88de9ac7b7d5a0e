package alertproof

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// cause is when what must fire a rule began, or why that is not known.
func (j *judge) cause(ctx context.Context, e alerts.Expected) (at time.Time, why string, err error) {
	p, ok := j.phases[e.Phase]
	if !ok {
		return at, fmt.Sprintf("phase %s was never reached", e.Phase), nil
	}
	at = p.Start
	if h := slices.IndexFunc(j.proof.Hide, func(h alerts.Hide) bool { return h.Phase == e.Phase }); h >= 0 {
		at = p.Start.Add(j.proof.Hide[h].After)
	}
	if faults := timeline.Of(j.in.Timeline).FaultsWithin(p.Start, p.End); len(faults) > 0 {
		at = faults[0].Begin
		if e.Last {
			at = faults[len(faults)-1].Begin
		}
	}
	if e.Since == "" {
		return at, "", nil
	}
	all, err := j.in.Archive.Range(ctx, e.Since, at, j.h.End, time.Second)
	if err != nil {
		return at, "", err
	}
	for i, s := range all {
		if len(s.Points) > 0 && (i == 0 || s.Points[0].T.Before(at)) {
			at = s.Points[0].T
		}
	}
	if len(all) == 0 {
		return at, fmt.Sprintf("%s never came true", e.Since), nil
	}
	return at, "", nil
}

// cut are the phases of the proof's scenario that this run has not, or not to
// their end: of a run that was shorter, silence says nothing.
func (j *judge) cut(s *scenario.Scenario) []string {
	var all []string
	for _, x := range s.Phases {
		p, ok := j.phases[x.Name]
		// A phase ends when its time is over, never before.
		if short := p.End.Sub(p.Start) < x.For.D(); !ok || p.Interrupted || short {
			all = append(all, x.Name)
		}
	}
	return all
}

// hidden returns the data hidden from the rules, in the times of this run's phases.
func (j *judge) hidden() []alerting.Hidden {
	var all []alerting.Hidden
	for _, h := range j.proof.Hide {
		p, ok := j.phases[h.Phase]
		if !ok {
			continue
		}
		m := labels.MustNewMatcher(labels.MatchEqual, "job", h.Job)
		if h.Family != "" {
			m = labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, h.Family+"(_bucket|_sum|_count)?")
		}
		from := p.Start.Add(h.After)
		all = append(all, alerting.Hidden{Matchers: []*labels.Matcher{m}, From: from, To: from.Add(h.For)})
	}
	return all
}
