package kubeletapi

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// resources exports a node's Summary as the metrics that a kubelet serves at /metrics/resource
// (pkg/kubelet/metrics/collectors/resource_metrics.go).
type resources struct{ *stats.Summary }

var (
	ofContainer = []string{"container", "pod", "namespace"}
	ofPod       = []string{"pod", "namespace"}

	nodeCPU         = prometheus.NewDesc("node_cpu_usage_seconds_total", "Cumulative cpu time consumed by the node in core-seconds", nil, nil)
	nodeMemory      = prometheus.NewDesc("node_memory_working_set_bytes", "Current working set of the node in bytes", nil, nil)
	containerStart  = prometheus.NewDesc("container_start_time_seconds", "Start time of the container since unix epoch in seconds", ofContainer, nil)
	containerCPU    = prometheus.NewDesc("container_cpu_usage_seconds_total", "Cumulative cpu time consumed by the container in core-seconds", ofContainer, nil)
	containerMemory = prometheus.NewDesc("container_memory_working_set_bytes", "Current working set of the container in bytes", ofContainer, nil)
	podCPU          = prometheus.NewDesc("pod_cpu_usage_seconds_total", "Cumulative cpu time consumed by the pod in core-seconds", ofPod, nil)
	podMemory       = prometheus.NewDesc("pod_memory_working_set_bytes", "Current working set of the pod in bytes", ofPod, nil)
	scrapeError     = prometheus.NewDesc("resource_scrape_error", "1 if there was an error while getting container metrics, 0 otherwise", nil, nil)
)

// Describe sends no descriptors: the collector is used for one scrape only.
func (resources) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics of one Summary.
func (r resources) Collect(to chan<- prometheus.Metric) {
	used := func(cpu, memory *prometheus.Desc, c *stats.CPUStats, m *stats.MemoryStats, labels ...string) {
		if c != nil && c.UsageCoreNanoSeconds != nil {
			seconds := float64(*c.UsageCoreNanoSeconds) / float64(time.Second)
			to <- prometheus.NewMetricWithTimestamp(c.Time.Time, prometheus.MustNewConstMetric(cpu, prometheus.CounterValue, seconds, labels...))
		}
		if m != nil && m.WorkingSetBytes != nil {
			bytes := float64(*m.WorkingSetBytes)
			to <- prometheus.NewMetricWithTimestamp(m.Time.Time, prometheus.MustNewConstMetric(memory, prometheus.GaugeValue, bytes, labels...))
		}
	}
	used(nodeCPU, nodeMemory, r.Node.CPU, r.Node.Memory)
	for _, p := range r.Pods {
		for _, c := range p.Containers {
			start := float64(c.StartTime.UnixNano()) / float64(time.Second)
			to <- prometheus.MustNewConstMetric(containerStart, prometheus.GaugeValue, start, c.Name, p.PodRef.Name, p.PodRef.Namespace)
			used(containerCPU, containerMemory, c.CPU, c.Memory, c.Name, p.PodRef.Name, p.PodRef.Namespace)
		}
		used(podCPU, podMemory, p.CPU, p.Memory, p.PodRef.Name, p.PodRef.Namespace)
	}
	to <- prometheus.MustNewConstMetric(scrapeError, prometheus.GaugeValue, 0)
}

func serve(w http.ResponseWriter, r *http.Request, c prometheus.Collector) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}

func serveResources(w http.ResponseWriter, r *http.Request, n Node) {
	serve(w, r, resources{n.Summary(time.Now())})
}

// running exports the name of a node, and the number of running pods and containers on it.
type running struct{ Node }

var (
	nodeName       = prometheus.NewDesc("kubelet_node_name", "The node's name. The count is always 1.", []string{"node"}, nil)
	podsRunning    = prometheus.NewDesc("kubelet_running_pods", "Number of pods that have a running pod sandbox", nil, nil)
	containersLive = prometheus.NewDesc("kubelet_running_containers", "Number of containers currently running", []string{"container_state"}, nil)
)

// Describe sends no descriptors: the collector is used for one scrape only.
func (running) Describe(chan<- *prometheus.Desc) {}

// Collect counts the pods and containers in the node's Summary.
func (n running) Collect(to chan<- prometheus.Metric) {
	pods := n.Summary(time.Now()).Pods
	containers := 0
	for _, p := range pods {
		containers += len(p.Containers)
	}
	to <- prometheus.MustNewConstMetric(nodeName, prometheus.GaugeValue, 1, n.Name())
	to <- prometheus.MustNewConstMetric(podsRunning, prometheus.GaugeValue, float64(len(pods)))
	to <- prometheus.MustNewConstMetric(containersLive, prometheus.GaugeValue, float64(containers), "running")
}

func serveMetrics(w http.ResponseWriter, r *http.Request, n Node) { serve(w, r, running{n}) }
