package timeline

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	"github.com/stormglass/stormglass/loadgen/result"
)

// TestMarks checks the metrics that a Grafana next to the run draws, after each event.
func TestMarks(t *testing.T) {
	line, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	registry := prometheus.NewRegistry()
	if err := line.Register(registry); err != nil {
		t.Fatal(err)
	}
	at := time.UnixMilli(1_800_000_000_500).UTC()
	for i, step := range []struct {
		event result.Event
		want  string
	}{
		{result.Event{Kind: "phase-start", Name: "storm"}, `stormglass_phase_active{phase="storm"} 1`},
		{result.Event{Kind: "fault-begin", Name: "slowFsync", Fault: "f1", On: []string{"etcd-1", "etcd-0"}}, `
			stormglass_fault_active{fault="slowFsync",on="etcd-0,etcd-1"} 1
			stormglass_fault_begin_timestamp_seconds{fault="slowFsync",on="etcd-0,etcd-1"} 1.8000000005e+09
			stormglass_phase_active{phase="storm"} 1`},
		{result.Event{Kind: "fault-begin", Name: "slowFsync", Fault: "f2", On: []string{"etcd-0", "etcd-1"}}, ""},
		{result.Event{Kind: "fault-end", Name: "slowFsync", Fault: "f1"}, `stormglass_fault_active{fault="slowFsync",on="etcd-0,etcd-1"} 1`},
		{result.Event{Kind: "fault-end", Name: "slowFsync", Fault: "f2"}, `stormglass_fault_active{fault="slowFsync",on="etcd-0,etcd-1"} 0`},
		{result.Event{Kind: "fault", Name: "nodeFailure"}, `stormglass_fault_active{fault="nodeFailure",on="nodes"} 1`},
		{result.Event{Kind: "fault", Name: "nodeRecovery"}, `stormglass_fault_active{fault="nodeFailure",on="nodes"} 0`},
		{result.Event{Kind: "note", Name: "nothing"}, ""},
		{result.Event{Kind: "phase-end", Name: "storm"}, `
			stormglass_fault_active{fault="nodeFailure",on="nodes"} 0
			stormglass_fault_active{fault="slowFsync",on="etcd-0,etcd-1"} 0
			stormglass_phase_active{phase="storm"} 0`},
	} {
		step.event.Time = at
		if err := line.Append(step.event); err != nil {
			t.Fatal(err)
		}
		got := exposed(t, registry)
		for want := range strings.Lines(step.want) {
			if want = strings.TrimSpace(want); want != "" && !strings.Contains(got, want+"\n") {
				t.Errorf("after event %d, the metrics lack %s:\n%s", i, want, got)
			}
		}
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

func exposed(t *testing.T, g prometheus.Gatherer) string {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}
