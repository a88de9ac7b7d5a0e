package workload

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	startup prometheus.Histogram
}

func newMetrics() *metrics {
	return &metrics{startup: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "stormglass_pod_startup_seconds",
		Help: "Time from a pod's first event to the event that says it is Ready, as they arrived at the generator.",
		// 5 s is the objective of the Kubernetes SLO for stateless pods.
		Buckets:                         []float64{.1, .25, .5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600},
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  160,
		NativeHistogramMinResetDuration: 0,
	})}
}

func (m *metrics) register(r prometheus.Registerer, live func() Live) error {
	gauge := func(name, help string, value func(Live) int64) error {
		return r.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "stormglass", Subsystem: "workload", Name: name, Help: help,
		}, func() float64 { return float64(value(live())) }))
	}
	return errors.Join(
		r.Register(m.startup),
		gauge("pods_wanted", "Replicas asked for, over all Deployments of the run.", func(l Live) int64 { return l.PodsWanted }),
		gauge("pods_ready", "Pods that are Ready, on nodes that have not failed.", func(l Live) int64 { return l.PodsReady }),
		gauge("pods_pending", "Pods that have not been Ready yet.", func(l Live) int64 { return l.PodsPending }),
		gauge("pods_unscheduled", "Pods that have no node yet.", func(l Live) int64 { return l.PodsUnscheduled }),
		gauge("pods_terminating", "Pods that are being deleted.", func(l Live) int64 { return l.PodsTerminating }),
		gauge("nodes_ready", "Simulated nodes that the API server says are Ready.", func(l Live) int64 { return l.NodesReady }),
	)
}
