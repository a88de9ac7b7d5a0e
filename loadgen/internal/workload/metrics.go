package workload

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/internal/metricopts"
	"github.com/stormglass/stormglass/loadgen/result"
)

func newStartup() prometheus.Histogram {
	return prometheus.NewHistogram(metricopts.Histogram("stormglass_pod_startup_seconds",
		"Time from a pod's first event to the event that says it is Ready, as they arrived at the generator.",
		[]float64{.1, .25, .5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600})) // 5 s is the objective of the Kubernetes SLO for stateless pods
}

func newDeletion() prometheus.Histogram {
	return prometheus.NewHistogram(metricopts.Histogram("stormglass_namespace_deletion_seconds",
		"Time from the event that marks a namespace as Terminating to its DELETED event, as received by the generator.",
		[]float64{1, 2.5, 5, 7.5, 10, 15, 20, 30, 60, 120, 300, 600}))
}

func registerNamespaces(r prometheus.Registerer, deletion prometheus.Histogram, live func() Live) error {
	return errors.Join(r.Register(deletion), r.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stormglass_namespaces_terminating", Help: "Namespaces that the run's loads have deleted and that still exist.",
	}, func() float64 { return float64(live().NamespacesTerminating) })))
}

func register(r prometheus.Registerer, startup prometheus.Histogram, live func() Live, rollouts func() []result.Rollout, states func() []state) error {
	gauge := func(name, help string, value func(Live) int64) error {
		return r.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "stormglass", Subsystem: "workload", Name: name, Help: help,
		}, func() float64 { return float64(value(live())) }))
	}
	return errors.Join(
		r.Register(startup),
		r.Register(hopCollector{rollouts}),
		r.Register(stateCollector{states}),
		gauge("pods_wanted", "Pods that the run's workloads require: the requested replicas, or more if a CPU demand needs more; one per node for a DaemonSet; the missing completions of a Job.", func(l Live) int64 { return l.PodsWanted }),
		gauge("pods_ready", "Pods that are Ready, on nodes that have not failed.", func(l Live) int64 { return l.PodsReady }),
		gauge("pods_pending", "Pods that have not been Ready yet.", func(l Live) int64 { return l.PodsPending }),
		gauge("pods_unscheduled", "Pods that have no node yet.", func(l Live) int64 { return l.PodsUnscheduled }),
		gauge("nodes_used", "Simulated nodes that hold a pod of the run's workloads.", func(l Live) int64 { return l.NodesUsed }),
		gauge("pods_terminating", "Pods that are being deleted.", func(l Live) int64 { return l.PodsTerminating }),
		gauge("nodes_ready", "Simulated nodes that the API server reports as Ready.", func(l Live) int64 { return l.NodesReady }),
	)
}

// hopCollector exports when the last rollout of each workload reached each hop (a step such as the binding of pods).
type hopCollector struct{ rollouts func() []result.Rollout }

func hopDesc() *prometheus.Desc {
	return prometheus.NewDesc("stormglass_workload_rollout_hop_seconds",
		"Time from the last change of a workload until the first and the last of its objects reached a step of the rollout, such as the binding of pods.",
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

type stateCollector struct{ states func() []state }

type stateDescs struct{ missing, stuck, recovery, jobs, runsMissed *prometheus.Desc }

func newStateDescs() stateDescs {
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc("stormglass_workload_"+name, help, append([]string{"workload", "kind"}, more...), nil)
	}
	return stateDescs{
		missing:    desc("pods_missing", "Missing pods of a workload: pods that the workload needs and that are not Ready on a node that has not failed."),
		stuck:      desc("pods_stuck", "Pods that are being deleted on nodes that have failed."),
		recovery:   desc("recovery_seconds", "Time from a failure or return of nodes until the workload was whole again, or until now if it is not whole yet; 0 if it stayed whole."),
		jobs:       desc("jobs", "Jobs so far, by state; waiting: enough pods have succeeded, but the Job is not complete yet.", "state"),
		runsMissed: desc("runs_missed", "Runs of a CronJob that were due over 10 s ago and have not begun."),
	}
}

func (c stateCollector) Describe(out chan<- *prometheus.Desc) {
	d := newStateDescs()
	for _, desc := range []*prometheus.Desc{d.missing, d.stuck, d.recovery, d.jobs, d.runsMissed} {
		out <- desc
	}
}

func (c stateCollector) Collect(out chan<- prometheus.Metric) {
	d := newStateDescs()
	for _, s := range c.states() {
		gauge := func(desc *prometheus.Desc, value float64, more ...string) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{s.name, s.kind}, more...)...)
		}
		gauge(d.missing, float64(s.missing))
		gauge(d.stuck, float64(s.stuck))
		if s.recovery != nil {
			gauge(d.recovery, s.recovery.Seconds())
		}
		if j := s.jobs; j != nil {
			gauge(d.jobs, float64(j.active), "active")
			gauge(d.jobs, float64(j.waiting), "waiting")
			gauge(d.jobs, float64(j.complete), "complete")
			gauge(d.jobs, float64(j.failed), "failed")
		}
		if s.runsMissed != nil {
			gauge(d.runsMissed, float64(*s.runsMissed))
		}
	}
}
