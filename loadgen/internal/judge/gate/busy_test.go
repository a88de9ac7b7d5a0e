package gate

import (
	"context"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

const busyWhy = "other programs used 1.0 of 2 processors"

// judgedBusy judges a gate of a run whose machine was busy in the storm, on a bundled control plane or a user's cluster.
func judgedBusy(t *testing.T, gate string, a *archive.Archive, m result.Measurements, bundled bool) result.Result {
	t.Helper()
	m.Phases[1].Machine = &result.Machine{Busy: busyWhy}
	rec := &rundir.Recorded{Archive: a, Measurements: m}
	rec.Run.Cluster.Bundled = bundled
	res, err := Judge(context.Background(), compiled(t, "{name: g, "+gate+"}"), rec)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// expectBusy checks a verdict. For the verdict "no data", the reason must be the busy machine, the value must be
// withheld, and the exit code must be 3.
func expectBusy(t *testing.T, gate string, res result.Result, want result.Verdict) {
	t.Helper()
	g := res.Gates[0]
	if g.Verdict != want {
		t.Errorf("%s: %s (%s), want %s", gate, g.Verdict, g.Detail, want)
	}
	if want != result.NoData || g.Verdict != want {
		return
	}
	if !strings.Contains(g.Detail, "measured on a busy machine: "+busyWhy+" in storm") || g.Withheld == nil || res.ExitCode != exitcode.NoData {
		t.Errorf("%s: %q, withheld %v, exit %d", gate, g.Detail, g.Withheld, res.ExitCode)
	}
}

// A duration that the generator measured on a busy machine is withheld if it breaks its bound. Durations within their
// bounds, durations of quiet phases, counts and ratios keep their verdict.
func TestBusyMachineBreaksNoMeasuredTime(t *testing.T) {
	for gate, want := range map[string]result.Verdict{
		"objective: request-latency, max: 500ms, load: patch":                   result.NoData,
		"objective: request-latency, max: 1s":                                   result.Pass,
		"objective: request-latency, max: 300ms, load: patch, over: [recovery]": result.Fail,
		"objective: request-latency, max: 300ms, load: patch":                   result.Fail, // in recovery, which was quiet
		"objective: watch-delivery, max: 49ms":                                  result.NoData,
		"objective: pod-startup, max: 2s, over: [storm]":                        result.NoData,
		"objective: time-to-not-ready, max: 40s":                                result.NoData,
		"objective: time-to-recover, max: 1m":                                   result.NoData, // since the failure in the storm
		"objective: phase-duration, max: 40s, over: [storm]":                    result.NoData,
		"objective: phase-duration, max: 60s":                                   result.Fail,
		"objective: nodes-ready, max: 3s":                                       result.Fail, // the first phase was quiet
		"objective: request-errors, max: 0.1%":                                  result.Fail,
		"objective: unsent, max: 0%, load: patch":                               result.Fail,
		"objective: watch-duplicated, max: 0":                                   result.Fail,
		"objective: request-latency, min: 2s, load: patch, over: [storm]":       result.Fail, // a lower bound
	} {
		expectBusy(t, gate, judgedBusy(t, gate, nil, told(), true), want)
		if !strings.Contains(gate, "pod-startup") { // the generator saw it, wherever the cluster runs
			expectBusy(t, gate+", a user's cluster", judgedBusy(t, gate, nil, told(), false), want)
		}
	}
}

// Durations that components measured are withheld too if the components ran on the same machine. The unit of the bound,
// or the metrics that are read, show whether an expression is a duration.
func TestBusyMachineBreaksNoScrapedTime(t *testing.T) {
	lab, m := stormy(t, scrape.Options{})
	a := lab.Archive()
	const median = `histogram_quantile(0.5, sum by (le) (increase(etcd_disk_wal_fsync_duration_seconds_bucket[$window])))`
	const mean = `sum(increase(apiserver_request_sli_duration_seconds_sum[$window])) / sum(increase(apiserver_request_sli_duration_seconds_count[$window]))`
	for gate, want := range map[string]result.Verdict{
		"objective: mutating-latency, max: 700ms, over: [storm, recovery]":       result.NoData,
		"objective: mutating-latency, max: 700ms, over: [storm], together: true": result.NoData,
		"objective: mutating-latency, max: 1s, over: [storm]":                    result.Pass,
		"objective: wal-fsync, max: 1ms, over: [calm]":                           result.Fail,
		"objective: wal-fsync-slow, max: 1%":                                     result.Fail,
		"objective: too-many-requests, max: 6, over: [storm]":                    result.Fail,
		"objective: leader-changes, max: 1/h":                                    result.Fail,
		"expr: '" + median + "', max: 1ms, over: [storm]":                        result.NoData,
		"expr: '" + median + "', max: 0.001, over: [storm]":                      result.NoData,
		"expr: '" + mean + "', max: 0.001, over: [storm]":                        result.NoData,
		"expr: 'max(process_open_fds)', max: 41, over: [storm]":                  result.Fail,
		"expr: 'max(" + mean + ") > bool 0', max: 0.5, over: [storm]":            result.Fail, // 1 for yes
		"expr: 'sum(rate(process_cpu_seconds_total[$window]))', max: 0.001":      result.Fail, // processors
	} {
		expectBusy(t, gate, judgedBusy(t, gate, a, m, true), want)
		if want == result.NoData {
			expectBusy(t, gate+", a user's cluster", judgedBusy(t, gate, a, m, false), result.Fail)
		}
	}
}

// A condition that was not met in time on a busy machine is neither a failure nor a pass.
func TestConditionOnABusyMachine(t *testing.T) {
	m := told()
	m.Phases[1].ConditionMet = false
	res := judgedBusy(t, "objective: watch-lost, max: 1000", nil, m, true)
	if res.ExitCode != exitcode.NoData || len(res.Reasons) == 0 || !strings.Contains(res.Reasons[0], "nodesNotReady was not met in 50 s, measured on a busy machine: "+busyWhy) {
		t.Errorf("exit %d, %q", res.ExitCode, res.Reasons)
	}
}
