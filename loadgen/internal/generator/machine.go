package generator

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/loadgen/result"
)

// MeasureMachine starts to measure the use of this machine's CPUs. end returns the use since the call of
// MeasureMachine, or nil if it is unknown.
func MeasureMachine() (end func() *result.Machine) {
	before := readMachine()
	return func() *result.Machine { return readMachine().since(before) }
}

// usage is the use of the machine's CPUs since the machine started, in CPU seconds. busy is the time that all programs
// used, own is the time of this process and its descendants, and steal is the time that the hypervisor took. ok is
// false if these times are unknown.
type usage struct {
	busy, own, steal float64
	generator        float64 // the part of own that this process used
	processors       int
	// cpuWait, memoryWait and ioWait are the seconds in which at least one process waited for a processor, for memory
	// or for a disk, according to the kernel's pressure stall information (PSI). They are nil if unknown.
	cpuWait, memoryWait, ioWait *float64
	ok                          bool
}

// since returns the use of the machine's CPUs between an earlier reading and this one, or nil if one of the two is
// unknown.
func (m usage) since(before usage) *result.Machine {
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
		Processors: m.processors, GeneratorSeconds: max(0, m.generator-before.generator),
		// Replace negative differences by 0: the kernel's counters may decrease, and they omit ended processes whose
		// parents did not wait for them.
		BusySeconds: max(0, m.busy-before.busy), OwnSeconds: max(0, m.own-before.own), StealSeconds: max(0, m.steal-before.steal),
		CPUWaitSeconds: between(m.cpuWait, before.cpuWait), MemoryWaitSeconds: between(m.memoryWait, before.memoryWait), IOWaitSeconds: between(m.ioWait, before.ioWait),
	}
}

// machineCollector exports how the CPUs of the generator's machine are used: the time of all programs, the time of the
// generator and its descendants, the time that the hypervisor took, and the time that processes waited. Even in a
// container that may use fewer CPUs, the values are for the whole machine.
type machineCollector struct {
	counters   []machineCounter
	processors *prometheus.Desc
}

// machineCounter is one metric of the machine, in seconds. read returns nil if the kernel does not report the metric.
type machineCounter struct {
	desc *prometheus.Desc
	read func(usage) *float64
}

func newMachineCollector() machineCollector {
	c := machineCollector{processors: prometheus.NewDesc("stormglass_machine_processors", "Processors of the load generator's machine.", nil, nil)}
	add := func(name, help string, read func(usage) *float64) {
		desc := prometheus.NewDesc("stormglass_machine_"+name+"_seconds_total", help, nil, nil)
		c.counters = append(c.counters, machineCounter{desc, read})
	}
	add("busy", "Processor seconds that were used on the load generator's machine.", func(m usage) *float64 { return &m.busy })
	add("own", "Processor seconds that the load generator and its descendant processes used.", func(m usage) *float64 { return &m.own })
	add("steal", "Processor seconds that the hypervisor took from the machine (steal time).", func(m usage) *float64 { return &m.steal })
	add("cpu_wait", "Seconds in which some process of the machine waited for a processor (pressure stall information).", func(m usage) *float64 { return m.cpuWait })
	add("memory_wait", "Seconds in which some process of the machine waited for memory (pressure stall information).", func(m usage) *float64 { return m.memoryWait })
	add("io_wait", "Seconds in which some process of the machine waited for a disk (pressure stall information).", func(m usage) *float64 { return m.ioWait })
	return c
}

func (c machineCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, one := range c.counters {
		descs <- one.desc
	}
	descs <- c.processors
}

func (c machineCollector) Collect(metrics chan<- prometheus.Metric) {
	now := readMachine()
	if !now.ok {
		return
	}
	for _, one := range c.counters {
		if v := one.read(now); v != nil {
			metrics <- prometheus.MustNewConstMetric(one.desc, prometheus.CounterValue, *v)
		}
	}
	metrics <- prometheus.MustNewConstMetric(c.processors, prometheus.GaugeValue, float64(now.processors))
}
