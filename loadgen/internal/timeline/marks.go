package timeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/result"
)

// onNodes is what faults of simulated nodes are on: they have no component.
const onNodes = "nodes"

// marks are the phases and faults of a timeline as metrics, for dashboards: a
// Grafana beside the run draws them into its panels. A fault without length,
// as a kill, is never in force at a scrape: the time of its begin tells of it.
type marks struct {
	mu     sync.Mutex
	phases map[string]bool // whether it goes on, by name
	faults map[string]key  // those in force, by ID; those of nodes by their kind
	begins map[key]time.Time
}

// key is the labels of a fault: its kind, and the components that it hits.
type key struct{ fault, on string }

func newMarks() *marks {
	return &marks{phases: map[string]bool{}, faults: map[string]key{}, begins: map[key]time.Time{}}
}

// note takes an event in.
func (m *marks) note(e result.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	begin := func(id string, k key) {
		m.faults[id], m.begins[k] = k, e.Time
	}
	switch e.Kind {
	case "phase-start":
		m.phases[e.Name] = true
	case "phase-end":
		m.phases[e.Name] = false
	case "fault-begin":
		on := slices.Clone(e.On)
		slices.Sort(on)
		begin(e.Fault, key{e.Name, strings.Join(on, ",")})
	case "fault-end":
		delete(m.faults, e.Fault)
	case "fault": // of nodes: those end with their recovery, all at once
		if control.EndsNodeFaults(e.Name) {
			maps.DeleteFunc(m.faults, func(_ string, k key) bool { return k.on == onNodes })
		} else {
			begin("nodes: "+e.Name, key{e.Name, onNodes})
		}
	}
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
	inForce := map[key]bool{}
	for _, k := range m.faults {
		inForce[k] = true
	}
	for k, at := range m.begins {
		gauge(faultDesc, one(inForce[k]), k.fault, k.on)
		gauge(beginDesc, float64(at.UnixMilli())/1000, k.fault, k.on)
	}
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// Register shows the timeline's phases and faults as metrics: see marks.
func (t *Timeline) Register(r prometheus.Registerer) error {
	if err := r.Register(t.marks); err != nil {
		return fmt.Errorf("register the timeline's metrics: %w", err)
	}
	return nil
}
