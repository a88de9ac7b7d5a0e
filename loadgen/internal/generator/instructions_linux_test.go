package generator

import (
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/sys/unix"
)

// TestInstructionsOfAllThreads checks that a counter includes existing threads and threads that start later. The test
// counts processor time, because every kernel with counters supports that, and compares it with the kernel's own value
// for this process.
func TestInstructionsOfAllThreads(t *testing.T) {
	registry := prometheus.NewRegistry()
	self := []Process{{"loadgen", "loadgen", os.Getpid()}}
	i, err := count(registry, self, event{unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	before := cpuSeconds()
	var burning sync.WaitGroup
	for range 3 {
		burning.Go(func() {
			runtime.LockOSThread() // no unlock, so the thread ends with the goroutine
			var start, now unix.Timespec
			_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &start)
			for now = start; time.Duration(now.Nano()-start.Nano()) < 200*time.Millisecond; {
				_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now)
			}
		})
	}
	burning.Wait()
	used := cpuSeconds() - before
	if len(i.processes) == 0 { // a kernel without counters
		if n, err := testutil.GatherAndCount(registry); n != 0 || err != nil {
			t.Errorf("%d metrics without counters, want 0 (%v)", n, err)
		}
		return
	}
	n, ok := i.processes[0].read()
	if seconds := n / 1e9; !ok || seconds < 0.59 || seconds > used+0.1 {
		t.Errorf("counted %.2f s of processor time (%v); the kernel reports %.2f s, and 3 threads used 0.2 s each", n/1e9, ok, used)
	}
	if n, err := testutil.GatherAndCount(registry, "stormglass_instructions_total"); n != 1 || err != nil {
		t.Errorf("%d metrics, want 1 (%v)", n, err)
	}
}

// TestInstructionsWhereThereAreNone: without a process or without hardware counters, there is no metric.
func TestInstructionsWhereThereAreNone(t *testing.T) {
	registry := prometheus.NewRegistry()
	i, err := CountInstructions(registry, []Process{{"etcd", "etcd-0", 1 << 30}})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	if n, err := testutil.GatherAndCount(registry); n != 0 || err != nil {
		t.Errorf("%d metrics, want 0 (%v)", n, err)
	}
}
