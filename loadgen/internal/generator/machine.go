package generator

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/loadgen/result"
)

// MeasureMachine begins to measure what the machine does; end tells, and is nil where that is not known.
func MeasureMachine() (end func() *result.Machine) {
	before := readMachine()
	return func() *result.Machine { return readMachine().since(before) }
}

// machine is what the machine has done since it started, in seconds; ok is false where that is not known.
type machine struct {
	busy, own, steal float64
	processors       int
	cpuWait, ioWait  *float64 // nil: not known
	ok               bool
}

// since is what the machine did between an earlier reading and this one; nil: not known.
func (m machine) since(before machine) *result.Machine {
	if !m.ok || !before.ok {
		return nil
	}
	between := func(now, then *float64) *float64 {
		if now == nil || then == nil {
			return nil
		}
		return new(max(0, *now-*then))
	}
	return &result.Machine{
		// The kernel's counters may step back, and processes that nobody waited for are lost.
		BusySeconds: max(0, m.busy-before.busy), OwnSeconds: max(0, m.own-before.own), StealSeconds: max(0, m.steal-before.steal),
		CPUWaitSeconds: between(m.cpuWait, before.cpuWait), IOWaitSeconds: between(m.ioWait, before.ioWait),
	}
}

// machineCollector exports what the machine of the generator does: the time of its processors, that of the generator
// and of all that it started, and what the hypervisor took. A container may use fewer processors than the machine has.
type machineCollector struct{ busy, own, steal, processors *prometheus.Desc }

func newMachineCollector() machineCollector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("stormglass_machine_"+name+"_seconds_total", help, nil, nil)
	}
	return machineCollector{
		busy:  desc("busy", "Processor seconds that were used on the load generator's machine."),
		own:   desc("own", "Processor seconds that the load generator and all that it started used."),
		steal: desc("steal", "Processor seconds that the hypervisor gave to others."),

		processors: prometheus.NewDesc("stormglass_machine_processors", "Processors of the load generator's machine.", nil, nil),
	}
}

func (c machineCollector) Describe(descs chan<- *prometheus.Desc) {
	descs <- c.busy
	descs <- c.own
	descs <- c.steal
	descs <- c.processors
}

func (c machineCollector) Collect(metrics chan<- prometheus.Metric) {
	now := readMachine()
	if !now.ok {
		return
	}
	for desc, v := range map[*prometheus.Desc]float64{c.busy: now.busy, c.own: now.own, c.steal: now.steal} {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, v)
	}
	metrics <- prometheus.MustNewConstMetric(c.processors, prometheus.GaugeValue, float64(now.processors))
}
