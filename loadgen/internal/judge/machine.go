package judge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/machine"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// fillMachine puts into each phase of a recorded run the facts of its machine: the requests of other clients from the archive, the facts in
// words, and why it was busy. What an earlier judgement filled in counts for nothing. An error means that ctx ended.
func fillMachine(ctx context.Context, rec *rundir.Recorded) error {
	ours := machine.Ours(rec.Run)
	phases := slices.Clone(rec.Measurements.Phases)
	for i := range phases {
		p := &phases[i]
		if p.Machine == nil {
			continue
		}
		m := *p.Machine
		p.Machine, m.ClientRequests, m.Busy, m.Notes = &m, nil, "", nil
		if ours && rec.Archive != nil {
			var err error
			if m.ClientRequests, err = clientRequests(ctx, rec.Archive, *p); err != nil {
				return err
			}
		}
		if f, ok := machine.Of(&m, p.Seconds(), rec.Run.Host.CPUs, ours); ok {
			m.Busy, m.Notes = f.Busy(), f.Notes()
		}
	}
	rec.Measurements.Phases = phases
	return nil
}

// The requests of a window, by the counts of those who sent or answered them. Watches and connections that last are left out:
// they are counted when they end.
const (
	served = `sum(increase(apiserver_request_total{job="kube-apiserver", verb!~"WATCH|CONNECT", subresource!~"/(livez|readyz|healthz).*"}[$window]))`
	// A component's client counts requests to webhooks too: only the API servers send such requests.
	components = `sum(increase(rest_client_requests_total{job=~"kube-scheduler|kube-controller-manager|cloud-controller-manager|metrics-server"}[$window]))`
	loopback   = `sum(increase(rest_client_requests_total{job="kube-apiserver", host=~"\\[::1\\]:.*|localhost:.*"}[$window]))`
	loads      = `sum(increase(stormglass_requests_total[$window]))`
	histories  = `sum(increase(stormglass_history_requests_total[$window]))`
	nodes      = `sum(increase(stormglass_node_requests_total{verb!="watch"}[$window]))`
	own        = `sum(increase(stormglass_own_requests_total[$window]))`
)

// clientRequests are those that the API servers answered to others than the run and the plane's components; nil: not known, as
// in runs that did not count their own.
func clientRequests(ctx context.Context, a *archive.Archive, p result.Phase) (*float64, error) {
	sum := func(expr string) (v float64, known bool, err error) {
		samples, err := a.Instant(ctx, strings.ReplaceAll(expr, "$window", archive.Window(p.Start, p.End)), p.End)
		if err != nil || len(samples) == 0 {
			return 0, false, ctx.Err()
		}
		return samples[0].V, true, nil
	}
	all, known, err := sum(served)
	if err != nil || !known {
		return nil, err
	}
	for _, theirs := range []string{own, components, loopback, loads, histories, nodes} {
		n, known, err := sum(theirs)
		if err != nil {
			return nil, fmt.Errorf("count the requests of phase %s: %w", p.Name, err)
		}
		if theirs == own && !known {
			return nil, nil
		}
		all -= n
	}
	return new(max(0, all)), nil
}
