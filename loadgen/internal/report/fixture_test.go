package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// A made-up run with the shape of a real one: a node-failure storm on a
// bundled plane whose disk stalls during the recovery.

var began = time.Date(2026, 11, 21, 3, 4, 5, 0, time.UTC)

func at(s float64) time.Time { return began.Add(time.Duration(s * float64(time.Second))) }

func ptr(v float64) *float64 { return &v }

func lat(n int64, p50 float64) result.Latency {
	return result.Latency{Count: n, Mean: p50 * 1.2, P50: p50, P90: p50 * 2.1, P95: p50 * 3.1, P99: p50 * 5.3, P999: p50 * 9, Max: p50 * 14}
}

func load(name, verb, resource string, seconds, rate, p50 float64, unsent int64) result.Requests {
	offered := int64(seconds * rate)
	sent := offered - unsent
	bad := sent / 400
	return result.Requests{
		Load: name, Verb: verb, Resource: resource, Offered: offered, Sent: sent, Unsent: unsent, Succeeded: sent - bad,
		Outcomes: map[string]int64{"200": sent - bad, "429": bad}, OfferedRate: rate, AchievedRate: float64(sent-bad) / seconds,
		Latency: lat(sent, p50), Service: lat(sent, p50*0.97), Lag: lat(sent, 90e-6),
	}
}

type stretch struct {
	name     string
	from, to float64
	until    string
	slow     float64
}

func stretches() []stretch {
	return []stretch{
		{"fill", 22, 118.4, "podsReady", 2}, {"steady", 118.6, 148.6, "", 1}, {"storm", 149, 201.7, "nodesNotReady", 3},
		{"recovery", 202, 371.3, "podsReady", 9}, {"return", 371.6, 391.2, "nodesReady", 2},
	}
}

func phases() []result.Phase {
	var out []result.Phase
	for _, s := range stretches() {
		p := result.Phase{Name: s.name, Start: at(s.from), End: at(s.to), Until: s.until, ConditionMet: s.until != ""}
		sec := p.Seconds()
		p.Requests = []result.Requests{
			load("get-configmap", "get", "configmaps", sec, 10, 0.0021*s.slow, 0),
			load("patch-configmap", "patch", "configmaps", sec, 5, 0.0078*s.slow, int64(s.slow/9)*12),
		}
		p.Workload = &result.Workload{ToScheduled: lat(0, 0), ToReady: lat(0, 0), Startup: lat(0, 0)}
		if s.name == "fill" || s.name == "recovery" {
			p.Workload = &result.Workload{PodsCreated: 2000, PodsReady: 2000, PodsDeleted: 3, ToScheduled: lat(2000, .4), ToReady: lat(2000, .09), Startup: lat(2000, .52)}
		}
		switch s.name {
		case "storm":
			p.Workload.NotReadyAfter = ptr(52.3)
		case "recovery":
			p.Workload.RecoveredAfter = ptr(169.3)
			p.Workload.PodsCreated, p.Workload.PodsReady, p.Workload.PodsDeleted = 604, 604, 604
		}
		out = append(out, p)
	}
	return out
}

func gate(name, objective string, v result.Verdict, value *float64, op string, bound float64, unit scenario.Unit, over ...string) result.Gate {
	return result.Gate{Name: name, Objective: objective, Verdict: v, Value: value, Op: op, Bound: bound, Unit: string(unit), Over: over}
}

func keyMetrics() []result.KeyMetric {
	verb := func(name string, p50, n float64) result.KeyRow {
		return result.KeyRow{Label: name, P50: ptr(p50), P99: ptr(p50 * 9), Count: n}
	}
	return []result.KeyMetric{
		{Name: keyFsync, Rows: []result.KeyRow{{Label: "etcd-0", P50: ptr(.00092), P99: ptr(.0247), Count: 48211}}},
		{Name: keyRequests, Rows: []result.KeyRow{
			verb("APPLY", .004, 31), verb("DELETE", .012, 1208), verb("GET", .0011, 81240), verb("LIST", .019, 2210), verb("PATCH", .0091, 24110), verb("POST", .0083, 31040),
			verb("PUT", .0079, 60210), {Label: "WATCH", P50: ptr(280), P99: ptr(598), Count: 9120},
		}},
		{Name: keyScheduling, Rows: []result.KeyRow{verb("error", .0002, 12), verb("scheduled", .0034, 2604), verb("unschedulable", .0009, 310)}},
		{Name: keyLeaders, Rows: []result.KeyRow{{Label: "etcd-0", Value: ptr(0), Count: 0}}},
	}
}

// stormRun failed two gates and has no data for one.
func stormRun() result.Result {
	over := []string{"storm", "recovery"}
	all := []string{"fill", "steady", "storm", "recovery", "return"}
	gates := []result.Gate{
		gate("not-ready", "time-to-not-ready", result.Pass, ptr(52.3), "<=", 120, scenario.Seconds, "storm"),
		gate("recovered", "time-to-recover", result.Pass, ptr(169.3), "<=", 300, scenario.Seconds, "recovery"),
		gate("nodes-return", "phase-duration", result.Pass, ptr(19.6), "<=", 60, scenario.Seconds, "return"),
		gate("mutating-latency", "mutating-latency", result.Fail, ptr(1.84), "<=", 1, scenario.Seconds, over...),
		gate("request-latency", "request-latency", result.Pass, ptr(.372), "<=", 1, scenario.Seconds, over...),
		gate("request-errors", "request-errors", result.Fail, ptr(.0024), "<=", .001, scenario.Ratio, all...),
		gate("unsent", "unsent", result.Pass, ptr(0), "<=", 0, scenario.Ratio, all...),
		gate("leader-changes", "leader-changes", result.NoData, nil, "<=", 1, scenario.PerHour, all...),
		gate("missed-heartbeats", "missed-heartbeats", result.Pass, ptr(0), "<=", 0, scenario.Count, all...),
	}
	gates[3].Expr = `max(histogram_quantile(0.99, sum by (le, verb) (rate(apiserver_request_duration_seconds_bucket{verb=~"POST|PUT|PATCH|DELETE"}[222s]))))`
	gates[3].Detail = "PATCH configmaps is the worst of 14 series"
	gates[7].Detail = "no series etcd_server_leader_changes_seen_total in storm and recovery: etcd-0 was not scraped"
	return result.Result{
		Breakdown: splitOf(phases()),
		Schema:    result.Schema, Verdict: result.Fail, ExitCode: 1,
		Reasons: []string{"mutating-latency: 1.84 s is over 1 s", "request-errors: 0.24% is over 0.1%", "leader-changes: no data"},
		Gates:   gates, Key: keyMetrics(),
		Run: result.Run{
			ID: "20261121-030405-3f9a", Scenario: "node-failure-storm", Started: began, Ended: at(404), Seed: 42, Overrides: []string{"nodes.count=500", "gates.recovered.max=5m"},
			Versions: result.Versions{Stormglass: "v0.1.0", Kubernetes: "v1.37.1", Etcd: "3.7.0", Go: "go1.26.8"},
			Host:     result.Host{OS: "linux/amd64", Kernel: "6.1.0-13-amd64", CPUs: 8, CPUModel: "AMD EPYC 7763", MemoryBytes: 33_700_000_000, Descriptors: 1048576},
			Cluster: result.Cluster{
				Bundled: true, Name: "bundled", Server: "https://127.0.0.1:41233", ReadySeconds: 4.1, Targets: []string{"etcd-0", "kube-apiserver-0", "kube-controller-manager-0", "kube-scheduler-0", "loadgen"},
				Deviations: []control.Deviation{
					{Component: "kube-controller-manager", Setting: "--node-eviction-rate", Value: "5", Default: "0.1", Reason: "set by the user"},
					{Component: "kube-apiserver", Setting: "--service-account-lookup", Value: "true", Default: "(unset)", Reason: "service accounts of a deleted namespace must not stay valid"},
				},
			},
		},
		Measurements: result.Measurements{
			Phases:    phases(),
			Nodes:     &result.Nodes{Count: 500, Fidelity: "kubelet", ReadySeconds: 13.4, Heartbeats: 15220, MissedByServer: 31, Heartbeat: lat(15220, .0041), StatusWrites: 1004, PodsStarted: 2604, PodsStopped: 604, Watches: 9000, Reconnects: 2700, Errors: map[string]int64{"patch pods/status 409": 12}},
			Generator: result.Generator{CPUSeconds: 41.2, MaxRSSBytes: 164_000_000, MaxGoroutines: 5120, MaxDescriptors: 640, GCPauseP99: .00031, SchedulingLag: lat(40000, .00021)},
			Scrapes:   result.Scrapes{Done: 410, Failed: map[string]int64{"kube-scheduler-0": 2}},
		},
		Components: []result.ComponentCost{
			{Name: "kube-apiserver-0", CPUSeconds: 181.3, CPUShare: .47, MaxRSSBytes: 712e6, MaxDescriptors: 1124},
			{Name: "kube-controller-manager-0", CPUSeconds: 61.2, CPUShare: .16, MaxRSSBytes: 211e6, MaxDescriptors: 31},
			{Name: "etcd-0", CPUSeconds: 58.8, CPUShare: .15, MaxRSSBytes: 187e6, MaxDescriptors: 94},
			{Name: "kube-scheduler-0", CPUSeconds: 43.1, CPUShare: .11, MaxRSSBytes: 142e6, MaxDescriptors: 24},
			{Name: "loadgen", CPUSeconds: 41.2, CPUShare: .11, MaxRSSBytes: 164e6, MaxDescriptors: 640},
		},
	}
}

// splitOf is a made-up breakdown of every load: writes wait for etcd, reads for the
// network. In the fourth phase the server's mean includes slower requests of others.
func splitOf(phases []result.Phase) []result.Breakdown {
	var out []result.Breakdown
	for i, p := range phases {
		for _, l := range p.Requests {
			m := l.Latency.Mean
			b := result.Breakdown{
				Phase: p.Name, Load: l.Load, Verb: l.Verb, Resource: l.Resource, Count: l.Latency.Count, ClientMean: m, ClientP99: l.Latency.P99,
				ServerMean: ptr(m * .8), ServerSource: "metrics", OurShare: ptr(1), UnexplainedNote: "API server: decoding, encoding, waiting for CPU",
			}
			shares := []float64{.02, .01, .17, .04, .1, .06, .4, .02}
			if i == 3 {
				shares[2], b.OurShare, b.Warnings = -.05, ptr(.88), []string{"the server's mean times include requests of other clients: 12.0% of the requests", "wire is negative"}
				b.Slow = &result.SlowRequests{Count: 1, Mean: .7, Layers: map[string]float64{"etcd": .6}}
			}
			left := m
			for j, name := range []string{
				result.PartLag, result.PartConnect, result.PartWire, result.PartFilters, result.PartFairness, result.PartAdmission, result.PartEtcd, result.PartCache,
			} {
				b.Parts = append(b.Parts, result.BreakdownPart{Name: name, Seconds: shares[j] * m, Of: "our requests", Source: "made up"})
				left -= shares[j] * m
			}
			b.Unexplained = left
			out = append(out, b)
		}
	}
	return out
}

// floodRun passed all its gates; it simulated no nodes and made no pods.
func floodRun() result.Result {
	r := stormRun()
	r.Run.Scenario, r.Run.Overrides, r.Verdict, r.ExitCode, r.Reasons = "watch-flood", nil, result.Pass, 0, nil
	r.Measurements.Nodes, r.Measurements.Scrapes.Failed = nil, nil
	r.Measurements.Phases = []result.Phase{
		{Name: "steady", Start: at(6), End: at(26)}, {Name: "flood", Start: at(26.2), End: at(36.9), Until: "watchesOpen", ConditionMet: true},
		{Name: "fan-out", Start: at(37), End: at(97)}, {Name: "settle", Start: at(97.1), End: at(112.1)},
	}
	r.Run.Ended = at(114)
	for i := range r.Measurements.Phases {
		p := &r.Measurements.Phases[i]
		p.Requests = []result.Requests{load("get-configmap", "get", "configmaps", p.Seconds(), 10, .002, 0)}
		if i > 0 {
			w := result.Watches{Load: "crowd", Resource: "configmaps", Wanted: 2000, Open: 2000, OpenLatency: lat(2000, .004), Events: 4100}
			if i == 2 {
				w.Expected, w.Delivered, w.Delivery, w.Events = 36000, 36000, lat(36000, .0052), 36000
				p.Changes = []result.Changes{{Requests: load("news", "update", "configmaps", 60, 3, .009, 0), Acknowledged: 180}}
			}
			p.Watches = []result.Watches{w}
		}
	}
	r.Breakdown = splitOf(r.Measurements.Phases)
	r.Gates = []result.Gate{
		gate("watches-open", "watches-open", result.Pass, ptr(1), ">=", 1, scenario.Ratio, "flood"),
		gate("lost", "watch-lost", result.Pass, ptr(0), "<=", 0, scenario.Count, "fan-out"),
		gate("duplicated", "watch-duplicated", result.Pass, ptr(0), "<=", 0, scenario.Count, "fan-out"),
		gate("delivery", "watch-delivery", result.Pass, ptr(.0276), "<=", 1, scenario.Seconds, "fan-out"),
		gate("request-latency", "request-latency", result.Pass, ptr(.0106), "<=", 1, scenario.Seconds, "flood", "fan-out"),
		gate("generator-memory", "generator-memory", result.Pass, ptr(121e6), "<=", 200e6, scenario.Size, "steady", "flood", "fan-out", "settle"),
	}
	return r
}

// blindRun recorded nothing at all: no gate can be judged.
func blindRun() result.Result {
	r := floodRun()
	r.Verdict, r.ExitCode = result.NoData, 3
	r.Reasons = []string{"the archive is empty: no metrics were recorded", "generator saturated: timer delay p99 61 ms is over 50 ms"}
	r.Measurements.Generator.Saturated = []string{"timer delay p99 61 ms is over 50 ms"}
	for i := range r.Gates {
		r.Gates[i].Verdict, r.Gates[i].Value, r.Gates[i].Detail = result.NoData, nil, "generator saturated: timer delay p99 61 ms is over 50 ms"
	}
	for i := range r.Key {
		r.Key[i].Rows, r.Key[i].Missing = nil, "no metrics were recorded"
	}
	r.Components = nil
	for i := range r.Breakdown {
		b := &r.Breakdown[i]
		b.Parts, b.ServerMean, b.OurShare = b.Parts[:2], nil, nil
		b.Unexplained = b.ClientMean - b.Parts[0].Seconds - b.Parts[1].Seconds
		b.Warnings = []string{"not split: there is no archive of metrics"}
	}
	return r
}

// cutRun was interrupted in its third phase.
func cutRun() result.Result {
	r := stormRun()
	r.Verdict, r.ExitCode = result.NoData, 3
	r.Run.Interrupted, r.Run.Ended = true, at(171)
	r.Reasons = []string{"interrupted in phase storm after 19.4 s", "leader-changes: no data"}
	r.Measurements.Phases = r.Measurements.Phases[:3]
	r.Breakdown = splitOf(r.Measurements.Phases)
	last := &r.Measurements.Phases[2]
	last.End, last.Interrupted, last.ConditionMet = at(168.4), true, false
	for i := range r.Gates {
		r.Gates[i].Verdict, r.Gates[i].Value, r.Gates[i].Detail = result.NoData, nil, "the run was interrupted"
	}
	return r
}

// events is the timeline of a run.
func events(r result.Result) []result.Event {
	out := []result.Event{{Time: at(4.3), Kind: "note", Name: "register nodes", Detail: "500"}, {Time: at(17.7), Kind: "note", Name: "nodes ready", Detail: "500"}}
	if r.Measurements.Nodes == nil {
		out = nil
	}
	for _, p := range r.Measurements.Phases {
		out = append(out, result.Event{Time: p.Start, Kind: "phase-start", Name: p.Name})
		switch p.Name {
		case "fill":
			out = append(out, result.Event{Time: p.Start.Add(time.Millisecond * 40), Kind: "action", Name: "deploy web", Detail: "2000 replicas"})
		case "storm":
			out = append(out, result.Event{Time: p.Start.Add(time.Millisecond * 70), Kind: "fault", Name: "nodeFailure", Detail: "150 of 500 nodes stop"})
		case "return":
			out = append(out, result.Event{Time: p.Start.Add(time.Millisecond * 70), Kind: "fault", Name: "nodeRecovery", Detail: "all failed nodes come back"})
		}
		out = append(out, result.Event{Time: p.End, Kind: "phase-end", Name: p.Name, Detail: p.Until})
	}
	if r.Run.Interrupted {
		out = append(out, result.Event{Time: r.Run.Ended.Add(-2 * time.Second), Kind: "note", Name: "interrupted"})
	}
	return out
}

func fixed(label string, names ...string) func() []map[string]string {
	return func() []map[string]string {
		var out []map[string]string
		for _, n := range names {
			out = append(out, map[string]string{label: n})
		}
		return out
	}
}

func manyQueues(n int) func() []map[string]string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("controller-%02d", i))
	}
	return fixed("name", names...)
}

func hasAny(s string, subs ...string) bool {
	for _, sub := range subs {
		if strings.Contains(s, sub) {
			return true
		}
	}
	return false
}

func noisy(rng *rand.Rand, v, share float64) float64 { return v * math.Exp(rng.NormFloat64()*share) }
