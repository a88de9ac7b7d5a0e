package generator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// fakeThread writes the schedstat file of one thread: time on a processor, time on a run queue, and time slices.
func fakeThread(t *testing.T, proc string, pid, thread int, waited uint64) {
	t.Helper()
	dir := filepath.Join(proc, fmt.Sprint(pid), "task", fmt.Sprint(thread))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "schedstat"), fmt.Appendf(nil, "5000000000 %d 17\n", waited), 0o600); err != nil {
		t.Fatal(err)
	}
}

// delays returns the values of the run delay metric, by instance.
func delays(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if strings.HasPrefix(f.GetName(), "stormglass_process_run_delay") && l.GetName() == "component_instance" {
					values[l.GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
	}
	return values
}

// RunDelay adds up the threads of a process, including ended threads. A process that has ended has no value, and a
// restarted one continues from its last value.
func TestRunDelayNeverStepsBack(t *testing.T) {
	proc, registry := t.TempDir(), prometheus.NewRegistry()
	fakeThread(t, proc, 10, 10, 1e9)
	fakeThread(t, proc, 10, 11, 2e9)
	d, err := measureRunDelay(proc, registry, []Process{{"etcd", "etcd-0", 10}, {"kube-scheduler", "kube-scheduler-0", 99}})
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string, want map[string]float64) {
		t.Helper()
		if got := delays(t, registry); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	check("two threads", map[string]float64{"etcd-0": 3})
	fakeThread(t, proc, 10, 10, 15e8)
	if err := os.RemoveAll(filepath.Join(proc, "10", "task", "11")); err != nil {
		t.Fatal(err)
	}
	check("one has ended", map[string]float64{"etcd-0": 3.5})
	fakeThread(t, proc, 10, 11, 1e8)
	check("another has its number", map[string]float64{"etcd-0": 3.6})
	if err := os.RemoveAll(filepath.Join(proc, "10")); err != nil {
		t.Fatal(err)
	}
	check("the process is gone", map[string]float64{})
	fakeThread(t, proc, 20, 20, 4e8)
	d.Restarted("etcd-0", 20)
	check("it was started again", map[string]float64{"etcd-0": 4})
	if n := d.processes[0].sum.RunTimeslices; n != 4*17 { // four threads, one with the ID of an ended thread
		t.Errorf("%d time slices, want %d", n, 4*17)
	}
}

// If the kernel reports run delays, RunDelay exports one for this process.
func TestRunDelayOfThisProcess(t *testing.T) {
	registry := prometheus.NewRegistry()
	if _, err := MeasureRunDelay(registry, []Process{Self()}); err != nil {
		t.Fatal(err)
	}
	_, err := os.Stat(filepath.Join(procDir, "self", "schedstat"))
	if _, told := delays(t, registry)["loadgen"]; told != (err == nil) {
		t.Errorf("metric exists: %v; stat of /proc/self/schedstat: %v", told, err)
	}
}

// isStopped recognises a process that a signal or a debugger stopped, even if its name contains parentheses.
func TestStoppedProcessIsSeen(t *testing.T) {
	proc := t.TempDir()
	for state, want := range map[string]float64{"S": 0, "R": 0, "T": 1, "t": 1} {
		if err := os.MkdirAll(filepath.Join(proc, "10"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, "10", "stat"), []byte("10 (a) T b) "+state+" 1 10 10 0"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := isStopped(proc, 10); got != want {
			t.Errorf("%s: %v, want %v", state, got, want)
		}
	}
	if got := isStopped(proc, 11); got != 0 {
		t.Errorf("isStopped of an ended process: %v", got)
	}
}
