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

// resource is what a control plane can run out of.
type resource struct {
	name, what string
	// expr is the share of it in use in a time, $window; component is the label that says whose it is.
	expr, component string
}

// resources by the USE method: how much of each is used. Where requests wait for a limit, one of them at a time is all
// of it.
var resources = []resource{
	{"machine", "the machine's processors", `sum(rate(stormglass_machine_busy_seconds_total[$window])) / scalar(max(stormglass_machine_processors))`, ""},
	{"processors", "processors it may use", `rate(process_cpu_seconds_total{job!="loadgen"}[$window]) / (go_sched_gomaxprocs_threads > 0)`, "instance"},
	{"wal", "time in fsync of etcd's log", `rate(etcd_disk_wal_fsync_duration_seconds_sum[$window])`, "instance"},
	{"commit", "time in commits of etcd's database", `rate(etcd_disk_backend_commit_duration_seconds_sum[$window])`, "instance"},
	{"seats", "seats of a priority level", `max by (priority_level) (avg_over_time(apiserver_flowcontrol_current_executing_seats{priority_level!="exempt"}[$window])) / on (priority_level) max by (priority_level) (apiserver_flowcontrol_current_limit_seats > 0)`, "priority_level"},
	{"client-limit", "waiting for the limit of a client", `clamp_max(sum by (job) (rate(rest_client_rate_limiter_duration_seconds_sum{job=~"kube-controller-manager|kube-scheduler"}[$window])), 1)`, "job"},
	{"descriptors", "open files", `process_open_fds / (process_max_fds > 0)`, "instance"},
}

const (
	// fullFrom is the share from which a resource is the bottleneck.
	fullFrom = 0.8
	// mostUses is the number of resources that are kept of a trial.
	mostUses = 3
)

// uses are the resources of which most was used in a time, the fullest first.
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
	return all[:min(mostUses, len(all))], nil
}

// coresUsed are the processors that each component used in a time.
func coresUsed(ctx context.Context, a *archive.Archive, from, to time.Time) (map[string]float64, error) {
	samples, err := a.Instant(ctx, "sum by (instance) (rate(process_cpu_seconds_total["+archive.Window(from, to)+"]))", to)
	cores := map[string]float64{}
	for _, s := range samples {
		cores[s.Labels["instance"]] = s.V
	}
	return cores, err
}

// resourceKey tells the resources of a control plane apart.
type resourceKey struct{ resource, component string }

func keyOf(u result.Use) resourceKey { return resourceKey{u.Resource, u.Component} }

// bottleneck is the resource that limits more of the bad trials than any other; nil: none was near its limit.
func bottleneck(trials []result.Trial) *result.Bottleneck {
	light := usesWhenLight(trials)
	found := map[resourceKey]*result.Bottleneck{}
	var best *result.Bottleneck
	for _, t := range trials {
		if t.Outcome != nameOf(Bad) {
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

// relation is how a full resource compares with itself at the lightest load that held. A smaller one points more to the load.
type relation int

const (
	notWhenLight  relation = iota // it was not full then
	lessWhenLight                 // it was full, but less so
	sameWhenLight                 // it was as full
)

// fullerBy is the least difference of shares between two full resources.
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

// limiting is the full resource of a trial that points most to the load; false: none is full.
func limiting(uses []result.Use, light map[resourceKey]float64) (most result.Use, ok bool) {
	for _, u := range uses { // the fullest first
		if u.Share >= fullFrom && (!ok || relationTo(light, u) < relationTo(light, most)) {
			most, ok = u, true
		}
	}
	return most, ok
}

// usesWhenLight are the shares of resources in the trial with the least load that held.
func usesWhenLight(trials []result.Trial) map[resourceKey]float64 {
	var lightest result.Trial
	for _, t := range trials {
		if t.Outcome == nameOf(Good) && (lightest.Load == 0 || t.Load < lightest.Load) {
			lightest = t
		}
	}
	shares := map[resourceKey]float64{}
	for _, u := range lightest.Uses {
		shares[keyOf(u)] = u.Share
	}
	return shares
}
