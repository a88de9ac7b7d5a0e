package promimport

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// liveTimeout is the timeout of a query during a run.
const liveTimeout = 5 * time.Second

// Live queries the Prometheus during a run, to evaluate conditions that end the run. Gates use only the archive.
type Live struct{ source *Source }

// Live returns a Live for the source.
func (s *Source) Live() Live { return Live{s} }

// Instant evaluates a PromQL expression on the series of the cluster. The expression uses our job names. The result has
// the labels of the Prometheus.
func (l Live) Instant(ctx context.Context, expr string, at time.Time) ([]archive.Sample, error) {
	theirs := expr
	if !l.source.ours {
		var err error
		if theirs, err = l.source.translate(expr); err != nil {
			return nil, err
		}
	}
	return l.ask(ctx, theirs, at)
}

// Firing reports whether an alert of the Prometheus' own rules fires for the cluster. summary contains the alert's
// severity, if known.
func (l Live) Firing(ctx context.Context, alert string, at time.Time) (fires bool, summary string, err error) {
	series := l.source.selector(archive.Equal(model.MetricNameLabel, "ALERTS"), archive.Equal("alertname", alert), archive.Equal("alertstate", "firing"))
	found, err := l.ask(ctx, series, at)
	if err != nil || len(found) == 0 {
		return false, "", err
	}
	if severity := found[0].Labels["severity"]; severity != "" {
		summary = "severity " + severity
	}
	return true, summary, nil
}

func (l Live) ask(ctx context.Context, expr string, at time.Time) ([]archive.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	v, _, err := l.source.api.Query(ctx, expr, at.Add(l.source.Ahead()))
	if err != nil {
		return nil, fmt.Errorf("%s: %s", l.source.url, oneLine(err))
	}
	switch v := v.(type) {
	case model.Vector:
		var all []archive.Sample
		for _, s := range v {
			named := map[string]string{}
			for name, value := range s.Metric {
				named[string(name)] = string(value)
			}
			all = append(all, archive.Sample{Labels: named, V: float64(s.Value)})
		}
		return all, nil
	case *model.Scalar:
		return []archive.Sample{{V: float64(v.Value)}}, nil
	}
	return nil, fmt.Errorf("%s: returns a %s, not a vector or a scalar", expr, v.Type())
}

// Alerts returns the sorted names of the alerts in the Prometheus' rules. It returns an error if the server does not
// support the API for rules.
func (s *Source) Alerts(ctx context.Context) (names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	rules, err := s.api.Rules(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.url, explain(err, askTimeout))
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if alert, ok := r.(v1.AlertingRule); ok && !slices.Contains(names, alert.Name) {
				names = append(names, alert.Name)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}
