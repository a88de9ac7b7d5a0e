package breakdown

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
)

// The histograms of the API server from which parts are computed. The recorder keeps them (scrape/keep.go).
const (
	famRequest    = "apiserver_request_duration_seconds"
	famSLI        = "apiserver_request_sli_duration_seconds"
	famFilter     = "apiserver_request_filter_duration_seconds"
	famAdmission  = "apiserver_admission_step_admission_duration_seconds"
	famWebhook    = "apiserver_admission_webhook_admission_duration_seconds"
	famController = "apiserver_admission_controller_admission_duration_seconds"
	famWait       = "apiserver_flowcontrol_request_wait_duration_seconds"
	famEtcd       = "etcd_request_duration_seconds"
	famReadWait   = "apiserver_watch_cache_read_wait_seconds"
)

func families() []string {
	return []string{famRequest, famSLI, famFilter, famAdmission, famWebhook, famController, famWait, famEtcd, famReadWait}
}

type total struct{ sum, count float64 }

func (t total) mean() float64 {
	if t.count == 0 {
		return 0
	}
	return t.sum / t.count
}

func (t total) plus(o total) total { return total{t.sum + o.sum, t.count + o.count} }

// series is the increase of one histogram in a phase, on one instance.
type series struct {
	labels map[string]string
	total
}

// server holds the histograms of all API servers in a phase, by family (metric name). A family that was not recorded
// has no entry.
type server struct {
	// missing is the reason why there is no data. It is "" if there is data.
	missing  string
	families map[string][]series
}

func (s server) recorded(family string) bool { return len(s.families[family]) > 0 }

func (s server) total(family string, want func(l map[string]string) bool) total {
	var t total
	for _, one := range s.families[family] {
		if want(one.labels) {
			t = t.plus(one.total)
		}
	}
	return t
}

// by adds up the histograms of a family for which want returns true, grouped by the values of a label. It skips
// histograms without observations.
func (s server) by(family, label string, want func(l map[string]string) bool) map[string]total {
	wanted := slices.DeleteFunc(slices.Clone(s.families[family]), func(one series) bool { return !want(one.labels) })
	return sumBy(wanted, func(l map[string]string) string { return l[label] })
}

// readServer reads the increases of the API servers' histograms in a phase: the exact differences
// between the scrapes at the boundaries of the phase, without extrapolation. It fails only if ctx
// ends; server.missing holds any other error.
func readServer(ctx context.Context, a *archive.Archive, p result.Phase, outages timeline.Outages) (server, error) {
	if a == nil {
		return server{missing: "there is no archive of metrics"}, nil
	}
	s := server{families: map[string][]series{}}
	var err error
	if s.missing, err = unfit(ctx, a, control.KindAPIServer, p, outages); err == nil && s.missing == "" {
		for _, family := range families() {
			if err = s.read(ctx, a, p, family); err != nil {
				break
			}
		}
	}
	switch {
	case ctx.Err() != nil:
		return s, ctx.Err()
	case err != nil:
		s.missing = err.Error()
	case s.missing == "" && !s.recorded(famRequest):
		s.missing = famRequest + " was not recorded"
	}
	return s, nil
}

func (s server) read(ctx context.Context, a *archive.Archive, p result.Phase, family string) error {
	all, err := histograms(ctx, a, control.KindAPIServer, p, family)
	if len(all) > 0 {
		s.families[family] = all
	}
	return err
}

// histograms returns the increases, in a phase, of the histograms with the given metric name and job. It sorts them by
// their labels, so that sums are reproducible to the last bit.
func histograms(ctx context.Context, a *archive.Archive, job string, p result.Phase, family string) ([]series, error) {
	sums, err := gained(ctx, a, job, p, family+"_sum")
	if err != nil {
		return nil, err
	}
	counts, err := gained(ctx, a, job, p, family+"_count")
	if err != nil {
		return nil, err
	}
	var all []series
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		c := counts[key]
		all = append(all, series{labels: c.labels, total: total{sum: sums[key].gain, count: c.gain}})
	}
	return all, nil
}

type counter struct {
	labels map[string]string
	gain   float64
}

// gained returns the increase of each counter with the given name and job in a phase. The keys of the map are the
// labels. A counter without a value at the start of the phase was zero then.
func gained(ctx context.Context, a *archive.Archive, job string, p result.Phase, name string) (map[string]counter, error) {
	at := func(t time.Time) ([]archive.Series, error) {
		return a.Samples(ctx, t, t, archive.Equal(model.MetricNameLabel, name), archive.Equal("job", job))
	}
	before, err := at(p.Start)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	after, err := at(p.End)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	all := map[string]counter{}
	for _, s := range after {
		delete(s.Labels, model.MetricNameLabel)
		all[labels.FromMap(s.Labels).String()] = counter{s.Labels, s.Points[0].V}
	}
	for _, s := range before {
		delete(s.Labels, model.MetricNameLabel)
		key := labels.FromMap(s.Labels).String()
		if c, ok := all[key]; ok {
			c.gain -= s.Points[0].V
			all[key] = c
		}
	}
	return all, nil
}

// unfit returns the reason why the counters of a job at the start and the end of a phase cannot be compared, or "" if
// they can. They cannot be compared if a process restarted, or was not scraped at both times, even if a fault of the
// scenario was the cause. The reason then names the fault.
func unfit(ctx context.Context, a *archive.Archive, kind string, p result.Phase, outages timeline.Outages) (string, error) {
	job := archive.Equal("job", kind)
	instances, err := a.Instances(ctx, p.Start, p.End, archive.Equal(model.MetricNameLabel, "up"), job)
	if err != nil {
		return "", err
	}
	if len(instances) == 0 {
		return kind + " was not scraped", nil
	}
	for _, instance := range instances {
		var started [2]float64
		for i, t := range []time.Time{p.Start, p.End} {
			value := func(name string) (float64, error) {
				found, err := a.Samples(ctx, t, t, archive.Equal(model.MetricNameLabel, name), job, archive.Equal("instance", instance))
				if err != nil || len(found) == 0 {
					return 0, err
				}
				return found[0].Points[0].V, nil
			}
			up, err := value("up")
			if err != nil {
				return "", err
			}
			if up == 0 {
				return fmt.Sprintf("%s was not scraped at the boundaries of %s", instance, p.Name) + because(outages.Fault(instance, t, t)), nil
			}
			if started[i], err = value("process_start_time_seconds"); err != nil {
				return "", err
			}
		}
		switch {
		case started[0] == 0 || started[1] == 0:
			return fmt.Sprintf("%s exposed no process_start_time_seconds, so a restart could not be detected", instance), nil
		case !archive.SameProcess(started[0], started[1]):
			return fmt.Sprintf("%s restarted in %s", instance, p.Name) + because(outages.Fault(instance, p.Start, p.End)), nil
		}
	}
	return "", nil
}

// because returns text to append to a reason: the fault in parentheses, or "" if fault is "".
func because(fault string) string {
	if fault == "" {
		return ""
	}
	return " (" + fault + ")"
}
