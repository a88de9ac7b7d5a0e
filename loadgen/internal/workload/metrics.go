package workload

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/loadgen/result"
)

func newStartup() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "stormglass_pod_startup_seconds",
		Help: "Time from a pod's first event to the event that says it is Ready, as they arrived at the generator.",
		// 5 s is the objective of the Kubernetes SLO for stateless pods.
		Buckets:                         []float64{.1, .25, .5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600},
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  160,
		NativeHistogramMinResetDuration: 0,
	})
}

func newDeletion() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:                            "stormglass_namespace_deletion_seconds",
		Help:                            "Time from the event that says that a namespace is being deleted to that of its end, as they arrived at the generator.",
		Buckets:                         []float64{1, 2.5, 5, 7.5, 10, 15, 20, 30, 60, 120, 300, 600},
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  160,
		NativeHistogramMinResetDuration: 0,
	})
}

func registerNamespaces(r prometheus.Registerer, deletion prometheus.Histogram, live func() Live) error {
	return errors.Join(r.Register(deletion), r.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stormglass_namespaces_terminating", Help: "Namespaces that the run's loads have deleted and that are still there.",
	}, func() float64 { return float64(live().NamespacesTerminating) })))
}

func register(r prometheus.Registerer, startup prometheus.Histogram, live func() Live, rollouts func() []result.Rollout) error {
	gauge := func(name, help string, value func(Live) int64) error {
		return r.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "stormglass", Subsystem: "workload", Name: name, Help: help,
		}, func() float64 { return float64(value(live())) }))
	}
	return errors.Join(
		r.Register(startup),
		r.Register(hopCollector{rollouts}),
		gauge("pods_wanted", "Replicas asked for, or that demands need if these are more, over all Deployments of the run.", func(l Live) int64 { return l.PodsWanted }),
		gauge("pods_ready", "Pods that are Ready, on nodes that have not failed.", func(l Live) int64 { return l.PodsReady }),
		gauge("pods_pending", "Pods that have not been Ready yet.", func(l Live) int64 { return l.PodsPending }),
		gauge("pods_unscheduled", "Pods that have no node yet.", func(l Live) int64 { return l.PodsUnscheduled }),
		gauge("pods_terminating", "Pods that are being deleted.", func(l Live) int64 { return l.PodsTerminating }),
		gauge("nodes_ready", "Simulated nodes that the API server says are Ready.", func(l Live) int64 { return l.NodesReady }),
	)
}

// hopCollector shows how far the last rollout of each Deployment has come.
type hopCollector struct{ rollouts func() []result.Rollout }

func hopDesc() *prometheus.Desc {
	return prometheus.NewDesc("stormglass_workload_rollout_hop_seconds",
		"Time from the change of a Deployment until the first and the last piece of it arrived at a hop, of its last rollout.",
		[]string{"deployment", "hop", "piece"}, nil)
}

func (c hopCollector) Describe(out chan<- *prometheus.Desc) { out <- hopDesc() }

func (c hopCollector) Collect(out chan<- prometheus.Metric) {
	desc := hopDesc()
	for _, r := range c.rollouts() {
		for _, h := range r.Hops {
			if h.Count > 0 {
				out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, *h.First, r.Deployment, h.Name, "first")
				out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, *h.Last, r.Deployment, h.Name, "last")
			}
		}
	}
}
