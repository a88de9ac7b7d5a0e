package node

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/internal/atomicmax"
	"github.com/stormglass/stormglass/internal/metricopts"
	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
)

// ledger counts the nodes' requests, renewals, pods and watches, for the results and the metrics.
type ledger struct {
	ready, failed            atomic.Int64
	podsRunning              atomic.Int64
	unready, held            overdue
	podsStarted, podsStopped atomic.Int64
	heartbeats, statusWrites atomic.Int64
	missedHere, missedThere  atomic.Int64
	delayed                  atomic.Int64
	reconnects, relists      atomic.Int64
	watches, watchesPeak     atomic.Int64

	heartbeat *latency.Histogram
	seconds   prometheus.Histogram
	samples   *samples.Streams
	requests  *prometheus.CounterVec
	lives     *prometheus.CounterVec

	mu       sync.Mutex
	errors   map[string]int64
	podLives map[string]map[string]int64
}

func newLedger(r prometheus.Registerer, leaseRenew time.Duration) (*ledger, error) {
	l := &ledger{
		errors: map[string]int64{},
		// The heartbeat cancels a renewal when the next one is due, so longer latencies are rare.
		heartbeat: latency.New(4 * leaseRenew),
		seconds: prometheus.NewHistogram(metricopts.Histogram("stormglass_node_heartbeat_seconds",
			"Lease renewals, from the intended start to the acknowledgement.",
			[]float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 40})),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stormglass_node_requests_total", Help: "Requests of the simulated nodes, by status of the response.",
		}, []string{"verb", "resource", "code"}),
		lives: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stormglass_node_pod_life_events_total", Help: "Events in the lifecycle of pods with a PodLife (nodes.podLives), by PodLife and event.",
		}, []string{"life", "event"}),
	}
	if r == nil {
		return l, nil
	}
	gauge := func(name, help string, value func() int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	counter := func(name, help, label, value string, v *atomic.Int64) prometheus.Collector {
		o := prometheus.CounterOpts{Name: name, Help: help}
		if label != "" {
			o.ConstLabels = prometheus.Labels{label: value}
		}
		return prometheus.NewCounterFunc(o, func() float64 { return float64(v.Load()) })
	}
	const missed, missedHelp = "stormglass_node_heartbeats_missed_total", "Lease renewals that were not acknowledged before the next was due, by cause."
	const restarts, restartsHelp = "stormglass_node_watch_restarts_total", "Watches that resumed from a resourceVersion, or started again with a list."
	for _, c := range []prometheus.Collector{
		gauge("stormglass_nodes_ready", "Simulated nodes that are Ready.", l.ready.Load),
		gauge("stormglass_node_pods_running", "Pods whose simulated containers run.", l.podsRunning.Load),
		gauge("stormglass_node_pods_unready", "Pods that have been on a simulated node for over 15 s and are not Ready.", l.unready.countNow),
		gauge("stormglass_node_pods_held", "Pods that their simulated node removed over 15 s ago and that still exist because finalizers hold them.", l.held.countNow),
		gauge("stormglass_node_watches", "Watches held by the simulated nodes.", l.watches.Load),
		counter("stormglass_node_heartbeats_total", "Acknowledged lease renewals.", "", "", &l.heartbeats),
		counter(missed, missedHelp, "cause", "generator", &l.missedHere),
		counter(missed, missedHelp, "cause", "server", &l.missedThere),
		counter("stormglass_node_heartbeats_delayed_total", "Lease renewals that began more than 1.05 intervals after the previous one.", "", "", &l.delayed),
		counter(restarts, restartsHelp, "kind", "reconnect", &l.reconnects),
		counter(restarts, restartsHelp, "kind", "relist", &l.relists),
		l.seconds, l.requests, l.lives,
	} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register the nodes' metrics: %w", err)
		}
	}
	return l, nil
}

// request counts one request. code is the HTTP status of the response, or the kind of failure if there was no response.
func (l *ledger) request(verb, resource, code string) {
	l.requests.WithLabelValues(verb, resource, code).Inc()
	// 404 is a success for a deletion, and a valid answer to a read.
	if code[0] == '2' || code == "404" && (verb == "delete" || verb == "get") {
		return
	}
	l.mu.Lock()
	l.errors[verb+" "+resource+" "+code]++
	l.mu.Unlock()
}

// lived counts an event, such as a restart, of a pod with a PodLife. life is the name of the PodLife.
func (l *ledger) lived(life, event string) {
	l.lives.WithLabelValues(life, event).Inc()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.podLives[life] == nil {
		if l.podLives == nil {
			l.podLives = map[string]map[string]int64{}
		}
		l.podLives[life] = map[string]int64{}
	}
	l.podLives[life][event]++
}

// renewed counts an acknowledged renewal. It records the latency before it counts the renewal, so that readers of the
// count never miss a latency.
func (l *ledger) renewed(since time.Duration) {
	l.took(since)
	l.heartbeats.Add(1)
}

func (l *ledger) missed(by *atomic.Int64, since time.Duration) {
	l.took(since)
	by.Add(1)
}

func (l *ledger) took(since time.Duration) {
	l.heartbeat.Record(since)
	l.seconds.Observe(since.Seconds())
}

func (l *ledger) watchOpened() {
	atomicmax.Raise(&l.watchesPeak, l.watches.Add(1))
}

func (l *ledger) watchClosed() { l.watches.Add(-1) }

func (l *ledger) results() result.Nodes {
	l.mu.Lock()
	errs := maps.Clone(l.errors)
	var lives map[string]map[string]int64
	for life, events := range l.podLives {
		if lives == nil {
			lives = map[string]map[string]int64{}
		}
		lives[life] = maps.Clone(events)
	}
	l.mu.Unlock()
	return result.Nodes{
		Heartbeats: l.heartbeats.Load(), MissedByGenerator: l.missedHere.Load(), MissedByServer: l.missedThere.Load(), Delayed: l.delayed.Load(),
		Heartbeat: l.heartbeat.Latency(), StatusWrites: l.statusWrites.Load(),
		PodsStarted: l.podsStarted.Load(), PodsStopped: l.podsStopped.Load(),
		Watches: l.watchesPeak.Load(), Reconnects: l.reconnects.Load(), Relists: l.relists.Load(), Errors: errs, PodLives: lives,
	}
}
