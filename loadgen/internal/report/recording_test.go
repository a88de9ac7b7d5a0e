package report

import (
	"context"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
)

// recording is a chart.Source whose series follow the phases of a run.
type recording struct {
	result result.Result
	empty  string // metrics with this in their name have no series
	err    error
}

// shape describes one metric: its series, its level at rest, and how much a storm
// raises it.
type shape struct {
	metric string
	series func() []map[string]string
	level  float64
	lift   float64 // the level in the worst phase divided by the level at rest
	noise  float64
	pods   bool // follows the number of pods
}

func shapes() []shape {
	verbs := fixed("verb", "GET", "LIST", "WATCH", "POST", "PUT", "PATCH", "DELETE", "APPLY")
	timed := fixed("verb", "GET", "LIST", "POST", "PUT", "PATCH", "DELETE")
	processes := fixed("instance", "etcd-0", "kube-apiserver-0", "kube-scheduler-0", "kube-controller-manager-0", "loadgen")
	return []shape{
		{metric: `apiserver_request_total{code`, series: fixed("code", "404", "409", "429"), level: .4, lift: 30, noise: .5},
		{metric: "apiserver_request_total", series: verbs, level: 40, lift: 7, noise: .12},
		{metric: keyRequests, series: timed, level: .004, lift: 160, noise: .3},
		{metric: "apiserver_current_inflight", series: fixed("request_kind", "mutating", "readOnly"), level: 4, lift: 12, noise: .3},
		{metric: "apiserver_flowcontrol", series: fixed("priority_level", "global-default", "leader-election", "node-high", "system", "workload-high", "workload-low"), level: .00005, lift: 400, noise: .5},
		{metric: keyFsync, series: fixed("instance", "etcd-0"), level: .0014, lift: 30, noise: .2},
		{metric: "etcd_request_duration", series: fixed("operation", "get", "list", "update", "create", "delete"), level: .002, lift: 60, noise: .3},
		{metric: keyLeaders, series: fixed("instance", "etcd-0"), level: 1, lift: 1},
		{metric: keyScheduling, series: fixed("result", "scheduled", "unschedulable"), level: .003, lift: 12, noise: .25},
		{metric: "scheduler_pending_pods", series: fixed("queue", "active", "backoff", "gated", "unschedulable"), level: 2, lift: 200, noise: .3},
		{metric: "workqueue_depth", series: manyQueues(31), level: 1, lift: 300, noise: .6},
		{metric: "stormglass_workload_nodes_ready", series: fixed("", ""), level: 500, lift: .7},
		{metric: "stormglass_nodes_ready", series: fixed("", ""), level: 500, lift: .7},
		{metric: "pods_wanted", series: fixed("", ""), level: 2000, lift: 1},
		{metric: "pods_ready", series: fixed("", ""), level: 2000, lift: .68, pods: true},
		{metric: "pods_unscheduled", series: fixed("", ""), level: 1, lift: 400, noise: .2},
		{metric: "pods_terminating", series: fixed("", ""), level: 1, lift: 600, noise: .1},
		{metric: "heartbeats_missed", series: fixed("cause", "generator", "server"), level: 0, lift: 1},
		{metric: "stormglass_requests_total", series: fixed("", ""), level: 15, lift: .96, noise: .05},
		{metric: "requests_unsent", series: fixed("", ""), level: 0, lift: 1},
		{metric: "stormglass_request_seconds", series: fixed("load", "get-configmap", "patch-configmap"), level: .006, lift: 120, noise: .3},
		{metric: "watches_open", series: fixed("load", "crowd"), level: 2000, lift: 1},
		{metric: "watch_events", series: fixed("", ""), level: 6000, lift: 1, noise: .05},
		{metric: "watch_delivered", series: fixed("", ""), level: 5990, lift: 1, noise: .05},
		{metric: "watch_delivery", series: fixed("load", "crowd"), level: .011, lift: 4, noise: .3},
		{metric: "process_cpu", series: processes, level: .25, lift: 9, noise: .15},
		{metric: "process_resident", series: processes, level: 150e6, lift: 3, noise: .02},
		{metric: "process_open_fds", series: processes, level: 90, lift: 2, noise: .02},
		{metric: "scheduling_lag", series: fixed("load", "get-configmap", "patch-configmap"), level: .0004, lift: 6, noise: .4},
	}
}

func (r recording) Range(_ context.Context, expr string, start, end time.Time, step time.Duration) ([]chart.Series, error) {
	if r.err != nil {
		return nil, r.err
	}
	for _, s := range shapes() {
		if !strings.Contains(expr, s.metric) {
			continue
		}
		if r.empty != "" && strings.Contains(s.metric, r.empty) {
			return nil, nil
		}
		var out []chart.Series
		for i, labels := range s.series() {
			h := fnv.New64a()
			h.Write([]byte(expr + strings.Repeat("x", i)))
			rng := rand.New(rand.NewPCG(h.Sum64(), 7))
			series := chart.Series{Labels: labels}
			for t := start; !t.After(end); t = t.Add(step) {
				if v := r.value(s, i, t, rng); !math.IsNaN(v) {
					series.Points = append(series.Points, chart.Point{T: t, V: v})
				}
			}
			out = append(out, series)
		}
		return out, nil
	}
	return nil, nil
}

// value rises and falls within the phases; a few scrapes in the fourth phase
// are lost.
func (r recording) value(s shape, i int, t time.Time, rng *rand.Rand) float64 {
	n := noisy(rng, 1, s.noise)
	stir := 0.0
	for k, p := range r.result.Measurements.Phases {
		if t.Before(p.Start) || t.After(p.End) {
			continue
		}
		part := t.Sub(p.Start).Seconds() / max(p.Seconds(), 1)
		stir = []float64{.5, 0, .8, 1, .3}[k%5] * math.Sin(math.Pi*math.Pow(part, .6))
		if k == 3 && part > .55 && part < .6 && hasAny(s.metric, "etcd", "apiserver") {
			return math.NaN()
		}
	}
	if s.pods && t.Before(at(118)) {
		return s.level * min(max(t.Sub(at(24)).Seconds()/90, 0), 1)
	}
	level := s.level / (1 + .55*float64(i))
	v := level * (1 + (s.lift-1)*stir*stir) * n
	if s.level >= 1 && s.level == math.Trunc(s.level) && s.noise == 0 {
		v = math.Round(v)
	}
	return v
}
