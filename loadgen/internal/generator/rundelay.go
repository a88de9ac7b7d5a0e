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

// procDir is the mount point of procfs on Linux. It does not exist on other systems.
const procDir = "/proc"

// Self returns this process, the load generator.
func Self() Process { return Process{Component: "loadgen", Instance: "loadgen", PID: os.Getpid()} }

// RunDelay exports how long the threads of processes ran, how long runnable threads waited for a CPU, and how often
// they got one. These metrics show whether a busy machine prevents a process from running, even if the process does not
// answer. RunDelay exports nothing if /proc/PID/task/*/schedstat does not exist. It is safe for concurrent use.
type RunDelay struct {
	proc                        string
	ran, total, slices, stopped *prometheus.Desc

	mu        sync.Mutex
	processes []*delayed
}

// delayed holds the scheduling times of all threads of one process, including ended threads.
type delayed struct {
	Process
	threads map[string]schedstat // values at the last call of look, by thread
	sum     schedstat
}

// schedstat contains the kernel's values for a thread (Documentation/scheduler/sched-stats.rst).
type schedstat struct {
	ran    uint64 // nanoseconds on a CPU
	waited uint64 // nanoseconds on a run queue
	slices uint64 // number of times that the thread got a CPU
}

// since returns the increase since an earlier reading. If a value has decreased, a new thread has the ID of an ended
// one, and since returns s unchanged.
func (s schedstat) since(before schedstat) schedstat {
	if s.ran < before.ran || s.waited < before.waited || s.slices < before.slices {
		return s
	}
	return schedstat{s.ran - before.ran, s.waited - before.waited, s.slices - before.slices}
}

// MeasureRunDelay registers metrics of the run delays of processes.
func MeasureRunDelay(registry prometheus.Registerer, processes []Process) (*RunDelay, error) {
	return measureRunDelay(procDir, registry, processes)
}

func measureRunDelay(proc string, registry prometheus.Registerer, processes []Process) (*RunDelay, error) {
	labels := []string{"component", "component_instance"}
	d := &RunDelay{
		proc: proc,
		ran:  prometheus.NewDesc("stormglass_process_run_seconds_total", "Seconds that threads of a process ran on a processor.", labels, nil),
		total: prometheus.NewDesc("stormglass_process_run_delay_seconds_total",
			"Seconds that threads of a process were runnable and waited for a processor.", labels, nil),
		slices:  prometheus.NewDesc("stormglass_process_timeslices_total", "Times that threads of a process were given a processor.", labels, nil),
		stopped: prometheus.NewDesc("stormglass_process_stopped", "1 if the process was stopped (state T) at the time of the scrape, otherwise 0.", labels, nil),
	}
	for _, p := range processes {
		d.processes = append(d.processes, &delayed{Process: p, threads: map[string]schedstat{}})
	}
	return d, registry.Register(d)
}

// Restarted sets the PID of an instance's new process after a restart. The instance's metrics continue from their last
// values.
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
	descs <- d.ran
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
			metrics <- prometheus.MustNewConstMetric(d.ran, prometheus.CounterValue, float64(p.sum.ran)/1e9, p.Component, p.Instance)
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
	_, fields, _ := strings.Cut(string(text[bytes.LastIndexByte(text, ')')+1:]), " ") // skip the program's name, which may contain parentheses
	if strings.HasPrefix(fields, "T") || strings.HasPrefix(fields, "t") {
		return 1
	}
	return 0
}

// look adds to sum how much each thread's values have increased since the last call. It returns false if the process
// has ended or the kernel does not provide the values.
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
		p.sum.ran += more.ran
		p.sum.waited += more.waited
		p.sum.slices += more.slices
	}
	p.threads = now
	return len(now) > 0
}

func readSchedstat(file string) (s schedstat, ok bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return s, false
	}
	_, err = fmt.Sscan(string(text), &s.ran, &s.waited, &s.slices)
	return s, err == nil
}
