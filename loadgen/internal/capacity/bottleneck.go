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
	{"machine", "the machine's processors", `sum(rate(stormglass_machine_busy_seconds_total[$window])) / scalar(max(go_sched_gomaxprocs_threads{job="loadgen"}))`, ""},
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

type resourceOf struct{ resource, component string }

func of(u result.Use) resourceOf { return resourceOf{u.Resource, u.Component} }

// bottleneck is the resource that was the fullest in more of the bad trials than any other, without those that are full at
// a light load as well.
func bottleneck(trials []result.Trial) *result.Bottleneck {
	always := fullWhenLight(trials)
	found := map[resourceOf]*result.Bottleneck{}
	var best *result.Bottleneck
	for _, t := range trials {
		if t.Outcome != nameOf(Bad) {
			continue
		}
		n := slices.IndexFunc(t.Uses, func(u result.Use) bool { return !always[of(u)] })
		if n < 0 || t.Uses[n].Share < fullFrom {
			continue
		}
		u := t.Uses[n]
		if found[of(u)] == nil {
			found[of(u)] = &result.Bottleneck{Use: u}
		}
		b := found[of(u)]
		b.Trials++
		b.Share = max(b.Share, u.Share)
		if best == nil || b.Trials > best.Trials {
			best = b
		}
	}
	return best
}

// fullWhenLight are the resources that were full in the lightest trial that held, at a load that is at most half of any bad one.
func fullWhenLight(trials []result.Trial) map[resourceOf]bool {
	full := map[resourceOf]bool{}
	var lightest *result.Trial
	for i, t := range trials {
		if t.Outcome == nameOf(Good) && (lightest == nil || t.Load < lightest.Load) {
			lightest = &trials[i]
		}
	}
	for _, t := range trials {
		if lightest == nil || t.Outcome == nameOf(Bad) && t.Load < 2*lightest.Load {
			return full
		}
	}
	for _, u := range lightest.Uses {
		full[of(u)] = u.Share >= fullFrom
	}
	return full
}
