package generator

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
)

// procDir is the mount point of procfs on Linux. It does not exist on other systems.
const procDir = "/proc"

// Self returns this process, the load generator.
func Self() Process { return Process{Component: "loadgen", Instance: "loadgen", PID: os.Getpid()} }

// RunDelay exports how long the threads of processes ran, how long runnable threads waited for a CPU, and how often
// they got a CPU. These metrics show whether a busy machine prevents a process from running, even if the process does
// not respond. RunDelay exports nothing if /proc/PID/task/*/schedstat does not exist. It is safe for concurrent use.
type RunDelay struct {
	proc                        string
	fs                          procfs.FS
	ran, total, slices, stopped *prometheus.Desc

	mu        sync.Mutex
	processes []*delayed
}

// delayed holds the scheduling times of all threads of one process, including ended threads.
type delayed struct {
	Process
	threads map[int]procfs.ProcSchedstat // values at the last call of look, by thread ID
	sum     procfs.ProcSchedstat
}

// MeasureRunDelay registers metrics of the run delays of processes.
func MeasureRunDelay(registry prometheus.Registerer, processes []Process) (*RunDelay, error) {
	return measureRunDelay(procDir, registry, processes)
}

func measureRunDelay(proc string, registry prometheus.Registerer, processes []Process) (*RunDelay, error) {
	labels := []string{"component", "component_instance"}
	fs, _ := procfs.NewFS(proc) // if it fails, no thread is found later
	d := &RunDelay{
		proc: proc, fs: fs,
		ran: prometheus.NewDesc("stormglass_process_run_seconds_total", "Seconds that threads of a process ran on a processor.", labels, nil),
		total: prometheus.NewDesc("stormglass_process_run_delay_seconds_total",
			"Seconds that threads of a process were runnable and waited for a processor.", labels, nil),
		slices:  prometheus.NewDesc("stormglass_process_timeslices_total", "Times that the kernel scheduled threads of a process on a processor.", labels, nil),
		stopped: prometheus.NewDesc("stormglass_process_stopped", "1 if the process was stopped (state T) at the time of the scrape, otherwise 0.", labels, nil),
	}
	for _, p := range processes {
		d.processes = append(d.processes, &delayed{Process: p, threads: map[int]procfs.ProcSchedstat{}})
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
			p.PID, p.threads = pid, map[int]procfs.ProcSchedstat{}
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
		if p.look(d.fs) {
			metrics <- prometheus.MustNewConstMetric(d.ran, prometheus.CounterValue, float64(p.sum.RunningNanoseconds)/1e9, p.Component, p.Instance)
			metrics <- prometheus.MustNewConstMetric(d.total, prometheus.CounterValue, float64(p.sum.WaitingNanoseconds)/1e9, p.Component, p.Instance)
			metrics <- prometheus.MustNewConstMetric(d.slices, prometheus.CounterValue, float64(p.sum.RunTimeslices), p.Component, p.Instance)
			metrics <- prometheus.MustNewConstMetric(d.stopped, prometheus.GaugeValue, isStopped(d.proc, p.PID), p.Component, p.Instance)
		}
	}
}

// isStopped returns 1 if a process is stopped by a signal or a debugger, otherwise 0.
func isStopped(proc string, pid int) float64 {
	if fields := statFields(filepath.Join(proc, strconv.Itoa(pid), "stat")); len(fields) > 0 && strings.EqualFold(fields[0], "T") {
		return 1
	}
	return 0
}

// statFields returns the fields after the program's name in a file /proc/PID/stat, or nil if the process has ended. The
// name may contain any character.
func statFields(file string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// look adds the increase of each thread's values since the last call to the sum of the process. It returns false if the
// process has ended or the kernel does not provide the values.
func (p *delayed) look(fs procfs.FS) bool {
	threads, _ := fs.AllThreads(p.PID) // fails if the process has ended
	now := make(map[int]procfs.ProcSchedstat, len(threads))
	for _, thread := range threads {
		s, err := thread.Schedstat()
		if err != nil {
			continue // the thread has ended
		}
		now[thread.PID] = s
		more := increase(p.threads[thread.PID], s)
		p.sum.RunningNanoseconds += more.RunningNanoseconds
		p.sum.WaitingNanoseconds += more.WaitingNanoseconds
		p.sum.RunTimeslices += more.RunTimeslices
	}
	p.threads = now
	return len(now) > 0
}

// increase returns the difference between two readings. If a value has decreased, a new thread has the ID of an ended
// one; increase then returns the reading `now` unchanged.
func increase(before, now procfs.ProcSchedstat) procfs.ProcSchedstat {
	if now.RunningNanoseconds < before.RunningNanoseconds || now.WaitingNanoseconds < before.WaitingNanoseconds || now.RunTimeslices < before.RunTimeslices {
		return now
	}
	return procfs.ProcSchedstat{
		RunningNanoseconds: now.RunningNanoseconds - before.RunningNanoseconds,
		WaitingNanoseconds: now.WaitingNanoseconds - before.WaitingNanoseconds,
		RunTimeslices:      now.RunTimeslices - before.RunTimeslices,
	}
}
