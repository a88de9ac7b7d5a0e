package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
)

// cpuUsage and memoryUsage are annotations that set a pod's CPU usage in cores and its memory usage in bytes, such as
// 500m and 64Mi. The pod's containers share this usage equally.
const (
	cpuUsage    = "stormglass.dev/cpu-usage"
	memoryUsage = "stormglass.dev/memory-usage"
)

// usageOf returns the CPU and memory usage of a running container. Its sources are, in order of precedence: the pod's
// demand (CPU only) and the pod's annotations, each divided equally among its containers; then 25% to 75% of the
// container's requests, chosen at random; then 10m and 32Mi.
func (k *kubelet) usageOf(pod *corev1.Pod, c *corev1.Container) (u usage) {
	share := 0.25 + draw(k.plan.Seed, "usage", string(pod.UID), c.Name)/2
	parts := float64(len(pod.Spec.Containers))
	used := func(annotation string, of corev1.ResourceName, little float64) float64 {
		if q, err := builtin.ParseQuantity(pod.Annotations[annotation]); err == nil {
			return q.AsApproximateFloat64() / parts
		}
		if q, ok := c.Resources.Requests[of]; ok {
			return q.AsApproximateFloat64() * share
		}
		return little
	}
	u.cores, u.bytes = used(cpuUsage, corev1.ResourceCPU, 0.01), used(memoryUsage, corev1.ResourceMemory, 32<<20)
	if k.plan.Use == nil {
		return u
	}
	if cores, seconds, ok := k.plan.Use(pod.Labels); ok {
		u.cores, u.demanded, u.follows = cores/parts, seconds/parts, true
	}
	return u
}

// usage is the CPU and memory usage of a container. If follows is true, a demand in the scenario determines the CPU
// usage. demanded is then this container's part of the demand's total CPU seconds so far.
type usage struct {
	use
	demanded float64
	follows  bool
}

// cpuCounter adds up the CPU time of a container from one read to the next. The sum is exact if the container follows a
// demand at both reads. Otherwise the usage at the second read counts for the whole time between the reads.
type cpuCounter struct {
	at       time.Time
	seconds  float64
	demanded float64
	follows  bool
}

func (c *cpuCounter) count(now time.Time, u usage) {
	if c.follows && u.follows {
		c.seconds += max(0, u.demanded-c.demanded)
	} else {
		c.seconds += u.cores * max(0, now.Sub(c.at).Seconds())
	}
	c.at, c.demanded, c.follows = now, u.demanded, u.follows
}

// systemCores and systemBytes are the usage of a node without pods. They are not 0, because metrics-server drops nodes
// with zero usage.
const (
	systemCores = 0.05
	systemBytes = 256 << 20
)

// Summary returns the simulated resource usage of the node and its pods, in the format of /stats/summary.
func (k *kubelet) Summary(now time.Time) *stats.Summary {
	s := &stats.Summary{Node: stats.NodeStats{NodeName: k.name}}
	node := use{cores: systemCores, bytes: systemBytes}
	pods := k.Pods()
	counters := map[string]cpuCounter{}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		p := stats.PodStats{PodRef: stats.PodReference{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID)}}
		if pod.Status.StartTime != nil {
			p.StartTime = *pod.Status.StartTime
		}
		var all use
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			start, end := startOf(pod, c.Name)
			if start.IsZero() || !end.IsZero() {
				continue
			}
			one := k.usageOf(pod, c)
			key := string(pod.UID) + "/" + c.Name
			counter, known := k.counters[key]
			if !known {
				counter.at = start
			}
			counter.count(now, one)
			one.seconds, counters[key] = counter.seconds, counter
			all.add(one.use)
			made := stats.ContainerStats{Name: c.Name, StartTime: metav1.NewTime(start)}
			made.CPU, made.Memory = one.use.stats(now)
			p.Containers = append(p.Containers, made)
		}
		p.CPU, p.Memory = all.stats(now)
		node.add(all)
		s.Pods = append(s.Pods, p)
	}
	k.counters = counters
	if k.life != nil { // nil before the first registration
		s.Node.StartTime = metav1.NewTime(k.life.began)
	}
	node.seconds = k.used.until(now, node.cores)
	s.Node.CPU, s.Node.Memory = node.stats(now)
	return s
}

// cpuTime adds up the CPU time of a node from one read to the next. It cannot be the sum of the pods' CPU times,
// because that sum would fall when pods end.
type cpuTime struct {
	at      time.Time
	seconds float64
}

func (t *cpuTime) until(now time.Time, cores float64) float64 {
	if !t.at.IsZero() {
		t.seconds += cores * max(0, now.Sub(t.at).Seconds())
	}
	t.at = now
	return t.seconds
}

// use holds cores and bytes in use, and CPU seconds used so far.
type use struct{ cores, bytes, seconds float64 }

func (u *use) add(v use) {
	u.cores, u.bytes, u.seconds = u.cores+v.cores, u.bytes+v.bytes, u.seconds+v.seconds
}

func (u use) stats(now time.Time) (*stats.CPUStats, *stats.MemoryStats) {
	at := metav1.NewTime(now)
	rate, total, bytes := uint64(u.cores*1e9), uint64(u.seconds*1e9), uint64(u.bytes)
	return &stats.CPUStats{Time: at, UsageNanoCores: &rate, UsageCoreNanoSeconds: &total},
		&stats.MemoryStats{Time: at, UsageBytes: &bytes, WorkingSetBytes: &bytes, RSSBytes: &bytes}
}
