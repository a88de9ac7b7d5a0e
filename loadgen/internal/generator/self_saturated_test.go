package generator

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/loadgen/result"
)

// starved is the environment variable that makes the test binary run as a generator that lacks CPU time.
const starved = "STORMGLASS_TEST_STARVED"

// A generator that gets almost no CPU time reports that: it has one processor, and another goroutine uses it for over a
// tenth of a second each time.
func TestStarvedOfCPU(t *testing.T) {
	if os.Getenv(starved) != "" {
		starve(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestStarvedOfCPU$", "-test.v")
	cmd.Env = append(os.Environ(), starved+"=1", "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("generator saturated: loadgen's timers fired")) {
		t.Errorf("%v; the process printed:\n%s", err, out)
	}
}

// starve measures until the lag of the meter's timer is certain.
func starve(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m, err := NewSelfMeter(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- m.Run(ctx) }()
	for m.Results().SchedulingLag.Count < 300 { // 3 s worth
		spin(2 * MaxSchedulingLag)
		runtime.Gosched()
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Log(strings.Join(m.Results().Saturated, "\n"))
}

// spin uses the processor for at least the given time. Its loop has no call at which the scheduler could preempt it.
func spin(atLeast time.Duration) {
	sum := 0
	for start, turns := time.Now(), 1<<26; time.Since(start) < atLeast; turns *= 2 {
		start = time.Now()
		for i := range turns {
			sum += i & turns
		}
	}
	runtime.KeepAlive(sum)
}

func TestLoadSaturation(t *testing.T) {
	lag := func(p99 time.Duration) result.Requests {
		return result.Requests{Load: "gets", Verb: "get", Resource: "pods", Lag: result.Latency{Count: 100, P99: p99.Seconds()}}
	}
	late, tenant := lag(MaxRequestLag+time.Millisecond), lag(time.Second)
	tenant.Tenant = "blue"
	few := late
	few.Lag.Count--
	p := result.Phase{
		Name: "storm", Requests: []result.Requests{lag(MaxRequestLag), late, tenant, few},
		Changes: []result.Changes{{Requests: late}},
	}
	got := LoadSaturation(p)
	if len(got) != 3 || !strings.Contains(got[0], "load gets started its requests (get pods) 101 ms late in phase storm (p99; limit 100 ms), because ") ||
		!strings.Contains(got[1], "(get pods as blue)") {
		t.Errorf("got %q", got)
	}
}

// A stop counts in the phase in which it happened. One short stall is not saturation: package stall handles it.
func TestSaturationOfAPhase(t *testing.T) {
	m, err := NewSelfMeter(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	due := time.Now()
	at := due
	tick := func(after time.Duration, times int) {
		for range times {
			at = at.Add(after)
			due = m.ticked(due, at)
		}
	}
	tick(lagTick, 10)
	for _, p := range []struct {
		name string
		stop time.Duration
	}{{"calm", 0}, {"hiccup", 300 * time.Millisecond}, {"stopped", 700 * time.Millisecond}, {"after", 0}} {
		m.BeginPhase(p.name)
		tick(lagTick, 400)
		tick(p.stop+lagTick, 1)
		tick(lagTick, 400)
	}
	for _, name := range []string{"calm", "hiccup", "after"} {
		if got := m.PhaseSaturation(name); len(got) != 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := m.PhaseSaturation("stopped"); len(got) != 1 || !strings.Contains(got[0], "generator saturated in stopped: loadgen's timers fired") {
		t.Errorf("phase with a stop: %q", got)
	}
	if got := m.Results().Saturated; len(got) != 0 {
		t.Errorf("outside of all phases: %q", got)
	}
}
