package capacity

import (
	"cmp"
	"context"
	"math"
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

// bottleneck is the resource that most bad trials point to; nil: none was near its limit in any.
func bottleneck(trials []result.Trial) *result.Bottleneck {
	before := lightest(trials)
	found := map[resourceOf]*result.Bottleneck{}
	var best *result.Bottleneck
	for _, t := range trials {
		if t.Outcome != nameOf(Bad) {
			continue
		}
		u, rank := limiting(t.Uses, before)
		if rank == notFull {
			continue
		}
		if found[of(u)] == nil {
			found[of(u)] = &result.Bottleneck{Use: u}
		}
		b := found[of(u)]
		b.Trials++
		b.Share = max(b.Share, u.Share)
		b.AlsoBefore = b.AlsoBefore || rank == fullBefore
		if best == nil || b.Trials > best.Trials {
			best = b
		}
	}
	return best
}

// How much a resource that is full in a bad trial has to do with its load, from the most on.
const (
	fullNow    = iota // it was not at the lightest load that held
	fuller            // it was, and is more so
	fullBefore        // it was, as much: what is short for another reason at any load, or a range that begins near its end
	notFull
)

// fullerBy is by how much a resource that was full at the lightest load has to be fuller.
const fullerBy = 0.02

// limiting is the resource to which a bad trial points, of those that are full in it.
func limiting(uses []result.Use, before map[resourceOf]float64) (most result.Use, rank int) {
	rank = notFull
	for _, u := range uses {
		is := fullNow
		switch was := before[of(u)]; {
		case u.Share < fullFrom:
			continue
		case was >= fullFrom && u.Share < was+fullerBy:
			is = fullBefore
		case was >= fullFrom:
			is = fuller
		}
		if is < rank || is == rank && u.Share > most.Share {
			most, rank = u, is
		}
	}
	return most, rank
}

// lightest are the shares of resources in the trial with the least load that held.
func lightest(trials []result.Trial) map[resourceOf]float64 {
	shares := map[resourceOf]float64{}
	least := math.Inf(1)
	for _, t := range trials {
		if t.Outcome != nameOf(Good) || t.Load >= least {
			continue
		}
		least = t.Load
		clear(shares)
		for _, u := range t.Uses {
			shares[of(u)] = u.Share
		}
	}
	return shares
}
