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

// Instant evaluates a PromQL expression on the series of the cluster, for a condition that ends a run. (Gates use only
// the archive.) The expression uses Stormglass's job names. The result has the labels of the Prometheus server.
func (s *Source) Instant(ctx context.Context, expr string, at time.Time) ([]archive.Sample, error) {
	theirs, err := s.translate(expr)
	if err != nil {
		return nil, err
	}
	return s.ask(ctx, theirs, at)
}

// Firing reports whether an alert of the Prometheus server's own rules fires for the cluster. summary contains the
// alert's severity, if known.
func (s *Source) Firing(ctx context.Context, alert string, at time.Time) (fires bool, summary string, err error) {
	series := s.selector(archive.Equal(model.MetricNameLabel, "ALERTS"), archive.Equal("alertname", alert), archive.Equal("alertstate", "firing"))
	found, err := s.ask(ctx, series, at)
	if err != nil || len(found) == 0 {
		return false, "", err
	}
	if severity := found[0].Labels["severity"]; severity != "" {
		summary = "severity " + severity
	}
	return true, summary, nil
}

func (s *Source) ask(ctx context.Context, expr string, at time.Time) ([]archive.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	v, _, err := s.api.Query(ctx, expr, at.Add(s.Ahead()))
	if err != nil {
		return nil, fmt.Errorf("%s: %s", s.url, oneLine(err))
	}
	switch v := v.(type) {
	case model.Vector:
		var all []archive.Sample
		for _, one := range v {
			all = append(all, archive.Sample{Labels: labelsOf(one.Metric), V: float64(one.Value)})
		}
		return all, nil
	case *model.Scalar:
		return []archive.Sample{{V: float64(v.Value)}}, nil
	}
	return nil, fmt.Errorf("%s: returns a %s, not a vector or a scalar", expr, v.Type())
}

// Alerts returns the sorted names of the alerts in the Prometheus server's rules. It returns an error if the server
// does not support the API for rules.
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
