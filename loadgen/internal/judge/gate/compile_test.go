package gate

import (
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Errors in a gate are reported before anything starts, in one line with the file, line,
// field and a hint.
func TestCompileErrors(t *testing.T) {
	const at = "lab.yaml:19: gates.g."
	for gate, want := range map[string]string{
		"objective: mutating-latencies, max: 1s":                                        `objective: unknown objective "mutating-latencies" (did you mean "mutating-latency"?)`,
		"objective: blah, max: 1s":                                                      `objective: unknown objective "blah" (objectives: mutating-latency, `,
		"objective: mutating-latency, max: 5%":                                          "max: 5% is not in seconds, the unit of mutating-latency (write it as 1s or 250ms)",
		"objective: achieved, min: 1s":                                                  "min: 1s is not in ratio, the unit of achieved (write it as 5% or 0.05)",
		"expr: 'sum(rate(x[5m])', max: 1":                                               "expr: ",
		"expr: 'x[5m]', max: 1":                                                         "expr: the expression returns a range vector, not a number (it is PromQL",
		`expr: '{__name__=~"x.*"}', max: 1`:                                             `expr: {__name__=~"x.*"} names no metric`,
		"expr: 'max(stormglass_workload_pods_redy)', max: 1":                            `expr: Stormglass has no metric stormglass_workload_pods_redy (did you mean "stormglass_workload_pods_ready"?)`,
		"expr: '1 + 1', max: 1":                                                         "expr: the expression reads no metric",
		"objective: request-latency, load: patsh, max: 1s":                              `load: there is no load "patsh" that fits objective request-latency (loads it can judge: patch, news)`,
		"objective: request-latency, load: crowd, max: 1s":                              `load: there is no load "crowd" that fits objective request-latency`,
		"objective: watch-lost, max: 0, over: [calm]":                                   "over: no load that fits objective watch-lost runs in calm",
		"objective: request-errors, max: 100%":                                          "max: request-errors is never over 100%: the gate cannot fail (write less, or leave the gate out)",
		"objective: achieved, min: 0":                                                   "min: achieved is never under 0: the gate cannot fail (write more, or leave the gate out)",
		"objective: request-latency, max: 1us":                                          "max: request-latency is never 1us or less: the gate cannot pass (write more; to begin with, max: 1s)",
		"objective: wal-fsync, max: 0":                                                  "max: wal-fsync is never 0 or less: the gate cannot pass (write more; to begin with, max: 10ms)",
		"objective: request-latency, max: 99999h":                                       "max: 99999h is longer than any phase (at most 24h, the maximum length of a phase)",
		"expr: 'histogram_quantile(99, rate(a_bucket[1m]))', max: 1":                    "expr: histogram_quantile takes a quantile from 0 to 1, not 99 (write 0.99)",
		"expr: 'quantile(-1, a)', max: 1":                                               "expr: quantile takes a quantile from 0 to 1, not -1 (from 0 to 1, for example 0.99)",
		"expr: 'quantile_over_time((2), a[1m])', max: 1":                                "expr: quantile_over_time takes a quantile from 0 to 1, not 2 (write 0.02)",
		"expr: 'histogram_quantile(.9, (sum by (verb) (rate(a_bucket[1m]))))', max: 1":  "expr: sum drops the label le, which histogram_quantile needs to distinguish the buckets (write sum by (verb, le))",
		"expr: 'histogram_quantile(.9, sum without (le) (rate(a_bucket[1m])))', max: 1": "expr: sum drops the label le, which histogram_quantile needs to distinguish the buckets (remove le from without)",
		"expr: 'histogram_quantile(.9, sum by (le) (rate(a_count[1m])))', max: 1":       "expr: a_count has no buckets, which histogram_quantile reads (write a_bucket, summed by (le))",
		"objective: phase-duration, min: 31s, over: [calm]":                             `min: phase "calm" lasts 30s (at most 30s, or a longer phase)`,
		"objective: watch-lost, max: 0.5":                                               `max: 0.5 is not a whole number, and watch-lost is a count (write 0 or 1)`,
		"expr: 'max(a) / 0', max: 1":                                                    "expr: it divides by 0 (leave the division out)",
		"objective: request-latency, together: true, max: 1s":                           "together: objective request-latency is always measured for each phase separately (leave it out)",
		"objective: wal-fsync, load: patch, max: 1s":                                    "load: objective wal-fsync does not apply to loads",
	} {
		_, err := Compile(plan.Of(parse(t, "{name: g, "+gate+"}")))
		if err == nil || !strings.HasPrefix(err.Error(), at+want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\n got %v\nwant %s%s", gate, err, at, want)
		}
	}
	bare, err := scenario.Parse("bare.yaml", []byte("apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: bare\nphases: [{name: p, for: 1s}]\ngates:\n"+
		"  - {name: a, objective: missed-heartbeats, max: 0}\n  - {name: b, objective: time-to-recover, max: 1m}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Compile(plan.Of(bare))
	want := "bare.yaml:6: gates.a.objective: there are no simulated nodes (set nodes.count)\n" +
		"bare.yaml:7: gates.b.objective: no node fails in this scenario (add faults: [{kind: nodeFailure, fraction: 0.3}] to a phase)"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestCatalogueCompiles(t *testing.T) {
	for _, name := range scenario.Names() {
		s, err := scenario.Read(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{} // gates that are judged in some variant
		for _, s := range append(s.AllVariants(), s) {
			gates, err := Compile(plan.Of(s))
			if err != nil || len(gates) == 0 {
				t.Errorf("%s, variant %q: %d gates: %v", name, s.Variant, len(gates), err)
			}
			for _, g := range gates {
				seen[g.Name] = true
			}
		}
		if len(seen) != len(s.Gates) {
			t.Errorf("%s: %d of %d gates are judged in one variant or another: %v", name, len(seen), len(s.Gates), seen)
		}
	}
}

// A stricter check would refuse these by mistake.
func TestUsefulBoundsAndPromQLCompile(t *testing.T) {
	for _, gate := range []string{
		"objective: watch-lost, max: 0", "objective: unsent, max: 0", "objective: unsent, max: 0%", "objective: achieved, min: 100%", "objective: watch-delivery, max: 0s",
		"objective: request-errors, min: 100%", "objective: request-latency, max: 24h", "objective: phase-duration, min: 10s", "objective: too-many-requests, min: 1",
		"expr: 'histogram_quantile(0.99, sum by (le, verb) (rate(a_bucket[1m])))', max: 1", "expr: 'histogram_quantile(1, rate(a_bucket[1m]))', max: 1",
		"expr: 'histogram_quantile(0.9, sum without (verb) (rate(a_bucket[1m])))', max: 1", "expr: 'histogram_quantile(0.5, sum(rate(native_seconds[1m])))', max: 1",
		"expr: 'histogram_quantile(0.5, sum by (le) (label_replace(rate(a_bucket[1m]), \"x\", \"$1\", \"y\", \"(.*)\")))', max: 1",
		"expr: 'max(a) / (0 * max(b) + 1)', max: 0", "expr: 'sum(a) or vector(0)', min: 0",
	} {
		if _, err := Compile(plan.Of(parse(t, "{name: g, "+gate+"}"))); err != nil {
			t.Errorf("%s: %v", gate, err)
		}
	}
}

// Contradictions between gates are found for any layout of their PromQL.
func TestContradictionsAreFoundInThePromQL(t *testing.T) {
	const first = `{name: a, expr: 'max by (x, y) (rate(n{b="1", a="2"}[$window]))', max: 1}`
	for second, contradicts := range map[string]bool{
		`max  by(x,y)( rate(n{b="1",a="2"}[$window]) )`: true, `(max by (y, x) (rate(n{a="2", b="1"}[$window])))`: true,
		`max by (x, y) (rate(n{b="1", a="3"}[$window]))`: false, `min by (x, y) (rate(n{b="1", a="2"}[$window]))`: false,
	} {
		_, err := Compile(plan.Of(parse(t, first, "{name: b, expr: '"+second+"', min: 2}")))
		if got := err != nil && strings.Contains(err.Error(), "they cannot both pass"); got != contradicts {
			t.Errorf("%s: %v, want a contradiction: %v", second, err, contradicts)
		}
	}
}

func TestWarningsOfPromQL(t *testing.T) {
	for expr, want := range map[string]string{
		`sum(up{job="apiserver"})`: `lab.yaml:19: gates.g.expr: no data on the bundled control plane: it has no job "apiserver" (did you mean "kube-apiserver"?)`,
		`sum(up{job="kube-etcd"})`: `(did you mean "etcd"?)`, `sum(up{job=~"node.*"})`: `(jobs: etcd, kube-apiserver, `,
		`sum(up{job="etcd"})`: "", `sum(up{job=~"kube-.*|x"})`: "", `sum(up{job!="x"})`: "", `sum(up)`: "",
		`sum(up{instance="etcd-1"})`: `it has no instance "etcd-1" (did you mean "etcd-0"?)`, `sum(up{instance="etcd-0"})`: "", `sum(up{instance=~"kube.*-0"})`: "",
		`(max(up) > 5)`: "the expression has no value while the comparison is false (write > bool, which gives 0 or 1)", `max(up) > bool 5`: "", `sum(up == 1)`: "", `max(up) > max(up)`: "(write > bool",
		`max(rate(etcd_server_proposals_committed_total[1s]))`:      "a range of 1s seldom contains two scrapes: they are 5s apart (write $window)",
		`max(rate(etcd_server_proposals_committed_total[$window]))`: "", `max(rate(etcd_server_proposals_committed_total[30s]))`: "",
		`max(etcd_disk_wal_fsync_duration_second_bucket)`:  `no component is known to have a metric etcd_disk_wal_fsync_duration_second_bucket (did you mean "etcd_disk_wal_fsync_duration_seconds_bucket"?)`,
		`max(scheduler_pending_pod)`:                       `(did you mean "scheduler_pending_pods"?)`,
		`max(myapp_sessions)`:                              "(the metric has data if a target of --targets, your Prometheus or your collector exposes it)",
		`max(apiserver_admission_webhook_rejection_count)`: "", `max(go_goroutines)`: "", `max(stormglass_requests_total)`: "", `max({__name__=~"etcd_.*"})`: "",
	} {
		got := strings.Join(Warnings(plan.Of(parse(t, "{name: g, expr: '"+expr+"', max: 1}"))), "\n")
		if !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

// Families lists every metric that gates read.
func TestFamilies(t *testing.T) {
	got := Families(plan.Of(parse(t, "{name: a, objective: wal-fsync-slow, max: 1%}", "{name: b, expr: 'max(my_own_metric)', max: 1}",
		"{name: c, expr: 'max(my_own_metric) / scalar(other_total)', max: 1}")))
	want := []string{"etcd_disk_wal_fsync_duration_seconds_bucket", "etcd_disk_wal_fsync_duration_seconds_count", "my_own_metric", "other_total"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
