package timeline

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/loadgen/result"
)

// onNodes is the label "on" of faults of simulated nodes, which are on no component.
const onNodes = "nodes"

// marks exposes the phases and faults of a timeline as metrics, for dashboards: a
// Grafana beside the run draws them into its panels. A fault without length, as a
// kill, is in force at no scrape: only the time of its begin shows it.
type marks struct {
	mu     sync.Mutex
	phases map[string]bool // whether it goes on, by name
	faults faults
}

func newMarks() *marks { return &marks{phases: map[string]bool{}} }

func (m *marks) add(e result.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e.Kind {
	case result.EventPhaseStart:
		m.phases[e.Name] = true
	case result.EventPhaseEnd:
		m.phases[e.Name] = false
	}
	m.faults.add(e)
}

var (
	phaseDesc = prometheus.NewDesc("stormglass_phase_active", "1 while the phase goes on, 0 after it.", []string{"phase"}, nil)
	faultDesc = prometheus.NewDesc("stormglass_fault_active", "1 while such a fault is in force, 0 after it.", []string{"fault", "on"}, nil)
	beginDesc = prometheus.NewDesc("stormglass_fault_begin_timestamp_seconds", "When the last such fault began, in Unix time.", []string{"fault", "on"}, nil)
)

// Describe implements prometheus.Collector.
func (m *marks) Describe(out chan<- *prometheus.Desc) {
	out <- phaseDesc
	out <- faultDesc
	out <- beginDesc
}

// Collect implements prometheus.Collector.
func (m *marks) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for name, active := range m.phases {
		gauge(phaseDesc, one(active), name)
	}
	type labels struct{ fault, on string }
	begins, active := map[labels]time.Time{}, map[labels]bool{}
	for _, f := range m.faults.all {
		of := labels{f.Kind, onNodes}
		if !f.ofNodes() {
			of.on = strings.Join(slices.Sorted(slices.Values(f.On)), ",")
		}
		begins[of], active[of] = f.Begin, active[of] || f.End == nil
	}
	for of, at := range begins {
		gauge(faultDesc, one(active[of]), of.fault, of.on)
		gauge(beginDesc, float64(at.UnixMilli())/1000, of.fault, of.on)
	}
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
