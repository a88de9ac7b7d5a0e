package generator

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// procDir is where Linux tells of processes; elsewhere there is nothing.
const procDir = "/proc"

// Self is the load generator's own process.
func Self() Process { return Process{Component: "loadgen", Instance: "loadgen", PID: os.Getpid()} }

// RunDelay exports for how long the threads of processes were runnable and waited for a processor: what a busy machine
// takes from a process that has work. Without /proc/PID/task/*/schedstat nothing is exported. It is safe for concurrent use.
type RunDelay struct {
	proc  string
	total *prometheus.Desc

	mu        sync.Mutex
	processes []*delayed
}

// delayed is what the threads of one process have waited so far, those that have ended too.
type delayed struct {
	Process
	threads     map[string]uint64 // nanoseconds at the last look, by thread
	nanoseconds uint64
}

// MeasureRunDelay exports the run delay of processes.
func MeasureRunDelay(registry prometheus.Registerer, processes []Process) (*RunDelay, error) {
	return measureRunDelay(procDir, registry, processes)
}

func measureRunDelay(proc string, registry prometheus.Registerer, processes []Process) (*RunDelay, error) {
	d := &RunDelay{proc: proc, total: prometheus.NewDesc("stormglass_process_run_delay_seconds_total",
		"Seconds that threads of a process were runnable and waited for a processor.", []string{"component", "component_instance"}, nil)}
	for _, p := range processes {
		d.processes = append(d.processes, &delayed{Process: p, threads: map[string]uint64{}})
	}
	return d, registry.Register(d)
}

// Restarted says under which PID the process of an instance runs now. Its counter goes on from where it was.
func (d *RunDelay) Restarted(instance string, pid int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.processes {
		if p.Instance == instance && p.PID != pid {
			p.PID, p.threads = pid, map[string]uint64{}
		}
	}
}

// Describe is of prometheus.Collector.
func (d *RunDelay) Describe(descs chan<- *prometheus.Desc) { descs <- d.total }

// Collect is of prometheus.Collector.
func (d *RunDelay) Collect(metrics chan<- prometheus.Metric) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.processes {
		if p.look(d.proc) {
			metrics <- prometheus.MustNewConstMetric(d.total, prometheus.CounterValue, float64(p.nanoseconds)/1e9, p.Component, p.Instance)
		}
	}
}

// look adds what each thread has waited since the last look. False: the process is gone, or the kernel does not tell.
func (p *delayed) look(proc string) bool {
	tasks := filepath.Join(proc, strconv.Itoa(p.PID), "task")
	dir, err := os.Open(tasks)
	if err != nil {
		return false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return false
	}
	now := make(map[string]uint64, len(names))
	for _, thread := range names {
		waited, ok := runDelay(filepath.Join(tasks, thread, "schedstat"))
		if !ok {
			continue // it has ended since
		}
		now[thread] = waited
		if before := p.threads[thread]; before <= waited {
			waited -= before
		} // else another thread has its number
		p.nanoseconds += waited
	}
	p.threads = now
	return len(now) > 0
}

// runDelay reads the second figure of a schedstat file (Documentation/scheduler/sched-stats.rst): nanoseconds on a run queue.
func runDelay(file string) (nanoseconds uint64, ok bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, false
	}
	n, err := strconv.ParseUint(fields[1], 10, 64)
	return n, err == nil
}
