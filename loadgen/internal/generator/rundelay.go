package generator

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// procDir is the directory in which Linux describes processes. It does not exist on other systems.
const procDir = "/proc"

// Self returns the load generator's own process.
func Self() Process { return Process{Component: "loadgen", Instance: "loadgen", PID: os.Getpid()} }

// RunDelay exports how long runnable threads waited for a processor, and how often they were given a processor. These
// metrics show the processor time that a busy machine withholds from a process with work. RunDelay exports nothing if
// /proc/PID/task/*/schedstat does not exist. It is safe for concurrent use.
type RunDelay struct {
	proc                   string
	total, slices, stopped *prometheus.Desc

	mu        sync.Mutex
	processes []*delayed
}

// delayed holds the total wait of all threads of one process, including ended threads.
type delayed struct {
	Process
	threads map[string]schedstat // values at the last look, by thread
	sum     schedstat
}

// schedstat holds the kernel's values for a thread (Documentation/scheduler/sched-stats.rst).
type schedstat struct {
	waited uint64 // nanoseconds on a run queue
	slices uint64 // number of times that the thread was given a processor
}

// since returns the increase since an earlier reading. If a value decreased, a new thread has reused the ID of an ended
// one, and the whole value is the increase.
func (s schedstat) since(before schedstat) schedstat {
	if s.waited < before.waited || s.slices < before.slices {
		return s
	}
	return schedstat{s.waited - before.waited, s.slices - before.slices}
}

// MeasureRunDelay registers metrics of the run delay of processes.
func MeasureRunDelay(registry prometheus.Registerer, processes []Process) (*RunDelay, error) {
	return measureRunDelay(procDir, registry, processes)
}

func measureRunDelay(proc string, registry prometheus.Registerer, processes []Process) (*RunDelay, error) {
	labels := []string{"component", "component_instance"}
	d := &RunDelay{
		proc: proc,
		total: prometheus.NewDesc("stormglass_process_run_delay_seconds_total",
			"Seconds that threads of a process were runnable and waited for a processor.", labels, nil),
		slices:  prometheus.NewDesc("stormglass_process_timeslices_total", "Times that threads of a process were given a processor.", labels, nil),
		stopped: prometheus.NewDesc("stormglass_process_stopped", "1 if the process was stopped (state T) when it was looked at, else 0.", labels, nil),
	}
	for _, p := range processes {
		d.processes = append(d.processes, &delayed{Process: p, threads: map[string]schedstat{}})
	}
	return d, registry.Register(d)
}

// Restarted sets the PID of the process that replaced the previous process of an instance. The instance's counters
// continue from their last values.
func (d *RunDelay) Restarted(instance string, pid int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.processes {
		if p.Instance == instance && p.PID != pid {
			p.PID, p.threads = pid, map[string]schedstat{}
		}
	}
}

// Describe implements prometheus.Collector.
func (d *RunDelay) Describe(descs chan<- *prometheus.Desc) {
	descs <- d.total
	descs <- d.slices
	descs <- d.stopped
}

// Collect implements prometheus.Collector.
func (d *RunDelay) Collect(metrics chan<- prometheus.Metric) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.processes {
		if p.look(d.proc) {
			metrics <- prometheus.MustNewConstMetric(d.total, prometheus.CounterValue, float64(p.sum.waited)/1e9, p.Component, p.Instance)
			metrics <- prometheus.MustNewConstMetric(d.slices, prometheus.CounterValue, float64(p.sum.slices), p.Component, p.Instance)
			metrics <- prometheus.MustNewConstMetric(d.stopped, prometheus.GaugeValue, isStopped(d.proc, p.PID), p.Component, p.Instance)
		}
	}
}

// isStopped returns 1 if a process is stopped by a signal or a debugger, otherwise 0.
func isStopped(proc string, pid int) float64 {
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	_, fields, _ := strings.Cut(string(text[bytes.LastIndexByte(text, ')')+1:]), " ") // the name of a program may contain parentheses
	if strings.HasPrefix(fields, "T") || strings.HasPrefix(fields, "t") {
		return 1
	}
	return 0
}

// look adds each thread's wait since the last call. It returns false if the process has ended or if the kernel does not
// provide the values.
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
	now := make(map[string]schedstat, len(names))
	for _, thread := range names {
		of, ok := readSchedstat(filepath.Join(tasks, thread, "schedstat"))
		if !ok {
			continue // the thread has ended
		}
		now[thread] = of
		more := of.since(p.threads[thread])
		p.sum.waited += more.waited
		p.sum.slices += more.slices
	}
	p.threads = now
	return len(now) > 0
}

// readSchedstat reads the second and third value in a schedstat file.
func readSchedstat(file string) (s schedstat, ok bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return s, false
	}
	var ran uint64
	_, err = fmt.Sscan(string(text), &ran, &s.waited, &s.slices)
	return s, err == nil
}
