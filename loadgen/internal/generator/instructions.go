package generator

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Process is a process whose CPU use the generator measures.
type Process struct {
	Component, Instance string
	PID                 int
}

// Instructions exports the number of instructions that processes execute in user space. Of all measures of CPU cost, it
// varies least between runs. It needs hardware counters, which few virtual machines provide. Without them, Instructions
// exports nothing.
type Instructions struct {
	total     *prometheus.Desc
	processes []counted
}

type counted struct {
	Process
	counters []*counter
}

// CountInstructions starts to count the instructions of processes. After a restart, the instructions of the new process
// are not counted.
func CountInstructions(registry prometheus.Registerer, processes []Process) (*Instructions, error) {
	return count(registry, processes, instructions)
}

func count(registry prometheus.Registerer, processes []Process, what event) (*Instructions, error) {
	i := &Instructions{total: prometheus.NewDesc("stormglass_instructions_total", "Instructions that a process executed in user space.", []string{"component", "component_instance"}, nil)}
	for _, p := range processes {
		if counters := open(p.PID, what); len(counters) > 0 {
			i.processes = append(i.processes, counted{p, counters})
		}
	}
	return i, registry.Register(i)
}

// Describe implements prometheus.Collector.
func (i *Instructions) Describe(descs chan<- *prometheus.Desc) { descs <- i.total }

// Collect implements prometheus.Collector.
func (i *Instructions) Collect(metrics chan<- prometheus.Metric) {
	for _, p := range i.processes {
		if n, ok := p.read(); ok {
			metrics <- prometheus.MustNewConstMetric(i.total, prometheus.CounterValue, n, p.Component, p.Instance)
		}
	}
}

// read returns the sum of the counters of all threads of a process. ok is false if a counter cannot be read.
func (c counted) read() (sum float64, ok bool) {
	for _, counter := range c.counters {
		n, err := counter.read()
		if err != nil {
			return 0, false
		}
		sum += float64(n)
	}
	return sum, true
}

// Close stops the counting.
func (i *Instructions) Close() (err error) {
	for _, p := range i.processes {
		for _, c := range p.counters {
			err = errors.Join(err, c.close())
		}
	}
	return err
}
