package capacity

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/result"
)

// resource is a resource whose exhaustion can limit a control plane.
type resource struct {
	name, what string
	// expr is the PromQL for the fraction of the resource that was in use over $window. component is the label with the
	// name of the component that uses the resource, or "" for a resource of the whole machine.
	expr, component string
}

// resources lists the resources that may be the bottleneck. Each expression is the utilisation of a resource, as in the
// USE method. The exception is the client-side rate limit: its expression is the time per second for which requests
// waited, limited to 1. A single request that waits all the time thus counts as full use.
var resources = []resource{
	{"machine", "the machine's processors", `sum(rate(stormglass_machine_busy_seconds_total[$window])) / scalar(max(stormglass_machine_processors))`, ""},
	{"processors", "processors that the component may use", `rate(process_cpu_seconds_total{job!="loadgen"}[$window]) / (go_sched_gomaxprocs_threads > 0)`, "instance"},
	{"wal", "time in fsync of etcd's log", `rate(etcd_disk_wal_fsync_duration_seconds_sum[$window])`, "instance"},
	{"commit", "time in commits of etcd's database", `rate(etcd_disk_backend_commit_duration_seconds_sum[$window])`, "instance"},
	{"seats", "seats of a priority level", `max by (priority_level) (avg_over_time(apiserver_flowcontrol_current_executing_seats{priority_level!="exempt"}[$window])) / on (priority_level) max by (priority_level) (apiserver_flowcontrol_current_limit_seats > 0)`, "priority_level"},
	{"client-limit", "waiting for the component's own (client-side) rate limit", `clamp_max(sum by (job) (rate(rest_client_rate_limiter_duration_seconds_sum{job=~"kube-controller-manager|kube-scheduler"}[$window])), 1)`, "job"},
	{"descriptors", "open files", `process_open_fds / (process_max_fds > 0)`, "instance"},
}

const (
	// fullFrom is the lowest utilisation at which a resource counts as full.
	fullFrom = 0.8
	// maxUses is the maximum number of resources that a trial records.
	maxUses = 3
)

// uses returns the maxUses resources with the highest utilisation between from and to, the highest first.
func uses(ctx context.Context, a *archive.Archive, from, to time.Time) (all []result.Use, err error) {
	window := archive.Window(from, to)
	for _, r := range resources {
		samples, err := a.Instant(ctx, strings.ReplaceAll(r.expr, "$window", window), to)
		if err != nil {
			return nil, err
		}
		for _, s := range samples {
			all = append(all, result.Use{Resource: r.name, What: r.what, Component: s.Labels[r.component], Share: s.V})
		}
	}
	slices.SortStableFunc(all, func(a, b result.Use) int { return cmp.Compare(b.Share, a.Share) })
	return all[:min(maxUses, len(all))], nil
}

// coresUsed returns the mean number of processors that each component used between from and to.
func coresUsed(ctx context.Context, a *archive.Archive, from, to time.Time) (map[string]float64, error) {
	samples, err := a.Instant(ctx, "sum by (instance) (rate(process_cpu_seconds_total["+archive.Window(from, to)+"]))", to)
	cores := map[string]float64{}
	for _, s := range samples {
		cores[s.Labels["instance"]] = s.V
	}
	return cores, err
}

type resourceKey struct{ resource, component string }

func keyOf(u result.Use) resourceKey { return resourceKey{u.Resource, u.Component} }

// bottleneck returns the resource that was the limit in the largest number of bad trials, or nil if no resource was
// full in any bad trial.
func bottleneck(trials []result.Trial) *result.Bottleneck {
	light := usesWhenLight(trials)
	found := map[resourceKey]*result.Bottleneck{}
	var best *result.Bottleneck
	for _, t := range trials {
		if t.Outcome != string(Bad) {
			continue
		}
		u, ok := limiting(t.Uses, light)
		if !ok {
			continue
		}
		if found[keyOf(u)] == nil {
			found[keyOf(u)] = &result.Bottleneck{Use: u}
		}
		b := found[keyOf(u)]
		b.Trials++
		b.Share = max(b.Share, u.Share)
		if best == nil || b.Trials > best.Trials {
			best = b
		}
	}
	if best != nil {
		best.FullWhenLight = relationTo(light, best.Use) == sameWhenLight
	}
	return best
}

// relation compares the utilisation of a full resource with its utilisation at the lightest load whose gates passed.
// Smaller values mean that the resource more likely became full because of the load.
type relation int

const (
	notWhenLight  relation = iota // not full at the lightest load
	lessWhenLight                 // full at the lightest load, but with a lower utilisation
	sameWhenLight                 // equally full at the lightest load
)

// fullerBy is the minimum increase in utilisation at which a full resource counts as fuller than at the lightest load.
const fullerBy = 0.02

func relationTo(light map[resourceKey]float64, u result.Use) relation {
	switch was := light[keyOf(u)]; {
	case was < fullFrom:
		return notWhenLight
	case u.Share >= was+fullerBy:
		return lessWhenLight
	}
	return sameWhenLight
}

// limiting returns the full resource that most likely limits the load. light holds the utilisation at the lightest load
// whose gates passed. ok is false if no resource is full.
func limiting(uses []result.Use, light map[resourceKey]float64) (most result.Use, ok bool) {
	for _, u := range uses { // the fullest first
		if u.Share >= fullFrom && (!ok || relationTo(light, u) < relationTo(light, most)) {
			most, ok = u, true
		}
	}
	return most, ok
}

// usesWhenLight returns the utilisation of each resource at the lightest load whose gates passed.
func usesWhenLight(trials []result.Trial) map[resourceKey]float64 {
	var lightest result.Trial
	for _, t := range trials {
		if t.Outcome == string(Good) && (lightest.Load == 0 || t.Load < lightest.Load) {
			lightest = t
		}
	}
	shares := map[resourceKey]float64{}
	for _, u := range lightest.Uses {
		shares[keyOf(u)] = u.Share
	}
	return shares
}
