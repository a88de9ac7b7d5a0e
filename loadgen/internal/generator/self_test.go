package generator

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/loadgen/result"
)

func TestSaturation(t *testing.T) {
	limits := Limits{MemoryBytes: 1e9, Descriptors: 1000}
	lag := func(p99 float64) result.Latency { return result.Latency{Count: 100, P99: p99} }
	for name, c := range map[string]struct {
		g    result.Generator
		l    Limits
		want string
	}{
		"at every bound":    {result.Generator{SchedulingLag: lag(0.1), MaxRSSBytes: 8e8, MaxDescriptors: 900, GCCPU: 25, CPUSeconds: 100, GCPauseMax: 0.1}, limits, ""},
		"late timers":       {result.Generator{SchedulingLag: lag(0.101)}, limits, "timers fired 101 ms late"},
		"memory":            {result.Generator{MaxRSSBytes: 8e8 + 1}, limits, "800 MB of memory"},
		"descriptors":       {result.Generator{MaxDescriptors: 901}, limits, "901 open file descriptors"},
		"garbage":           {result.Generator{GCCPU: 60, CPUSeconds: 100, GCPauseMax: 0.12}, limits, ""},
		"no limits known":   {result.Generator{MaxRSSBytes: 1e15, MaxDescriptors: 1e9}, Limits{}, ""},
		"no lag measured":   {result.Generator{SchedulingLag: result.Latency{P99: 9}}, limits, ""},
		"the worst machine": {result.Generator{SchedulingLag: lag(1), MaxRSSBytes: 1e9, MaxDescriptors: 1000}, limits, "descriptors"},
	} {
		got := strings.Join(Saturation(c.g, c.l), "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A stall of 35 ms delays four ticks, not one.
func TestMissedTicksCountAsLate(t *testing.T) {
	m, err := NewSelfMeter(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	due := time.UnixMilli(1_800_000_000_000)
	if next := m.ticked(due, due.Add(35*time.Millisecond)); !next.Equal(due.Add(40 * time.Millisecond)) {
		t.Errorf("the next tick is due %v after the late one", next.Sub(due))
	}
	lag := m.Results().SchedulingLag
	if lag.Count != 4 || lag.Max != 0.035 || lag.Mean != 0.020 {
		t.Errorf("recorded %+v, want 35, 25, 15 and 5 ms", lag)
	}
}

func TestSelfMeter(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewSelfMeter(registry)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- m.Run(ctx) }()
	for m.Results().SchedulingLag.Count == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	g := m.Results()
	if g.SchedulingLag.Count == 0 || g.MaxRSSBytes < 1<<20 || g.MaxGoroutines == 0 || g.MaxDescriptors == 0 || g.CPUSeconds < 0 {
		t.Errorf("measured %+v", g)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, f := range families {
		have[f.GetName()] = true
	}
	for _, name := range []string{"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds", "go_sched_latencies_seconds", "stormglass_scheduling_lag_seconds"} {
		if !have[name] {
			t.Errorf("%s is not exported", name)
		}
	}
	if _, err := NewSelfMeter(registry); err == nil {
		t.Error("NewSelfMeter succeeded twice with one registry")
	}
}
