package workload

import (
	"maps"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// rollout tracks one change of a workload on its way through the control plane. A hop is a step on this way, such as
// the creation or the binding of pods. The rollout records when the first and the last object reached each hop. A
// rollout is over when all new pods are Ready and, with a Service, in its EndpointSlices.
type rollout struct {
	action, revision string
	pods             int64 // number of new pods that the change requires
	service, over    bool
	direct           bool  // whether the workload creates its pods without a ReplicaSet
	scaled           int64 // the ReplicaSet's replicas when last seen

	asked time.Time // time just before the request for the change was sent
	hops  [hopCount]span
}

const (
	hopAPIWrite = iota
	hopReplicaSet
	hopPods
	hopBinding
	hopReady
	hopEndpoints
	hopCount
)

func hopNames() [hopCount]string {
	return [hopCount]string{"api write", "replicaset", "pods", "binding", "ready", "endpointslice"}
}

// span holds the earliest and the latest of several times, which may be added in any order.
type span struct {
	first, last time.Time
	count       int64
}

func (s *span) add(at time.Time) {
	if s.count == 0 || at.Before(s.first) {
		s.first = at
	}
	if at.After(s.last) {
		s.last = at
	}
	s.count++
}

func (t *tracker) begin(name, action string, pods int64, revision string, service bool, at time.Time) {
	d := t.of(name)
	d.rollout = &rollout{
		action: action, revision: revision, pods: pods, service: service || d.service, direct: d.workload() != scenario.Deployment, asked: at,
	}
	d.service = d.rollout.service
	t.phase.rollouts = append(t.phase.rollouts, named{name, d.rollout})
}

type named struct {
	name string
	*rollout
}

// of reports whether a pod belongs to the rollout. revision is the pod's revision; firstSeen is when its first event
// arrived.
func (r *rollout) of(revision string, firstSeen time.Time) bool {
	return r != nil && !r.over && revision == r.revision && !firstSeen.Before(r.asked)
}

func (t *tracker) reach(p *pod, hop int, at time.Time) {
	r := t.of(p.deployment).rollout
	if !p.measured || !r.of(p.revision, p.firstSeen) {
		return
	}
	r.hops[hop].add(at)
	r.over = r.hops[hopReady].count >= r.pods && (!r.service || r.hops[hopEndpoints].count >= r.pods)
}

// sawReplicaSet processes an event of a ReplicaSet. A rolling update scales a ReplicaSet in several steps, and
// sawReplicaSet records each of them.
func (t *tracker) sawReplicaSet(o object, at time.Time, listed bool) {
	r := t.of(o.deployment).rollout
	if listed || o.deployment == "" || r == nil || r.over || o.revision != r.revision {
		return
	}
	if s := &r.hops[hopReplicaSet]; s.count == 0 || o.specReplicas != r.scaled {
		s.add(at)
	}
	r.scaled = o.specReplicas
}

// sawSlice processes an event of an EndpointSlice, and records when each pod first was a ready endpoint.
func (t *tracker) sawSlice(o object, at time.Time, listed bool) {
	for _, uid := range o.endpoints {
		p := t.pods[uid]
		switch {
		case p == nil && !listed: // the pod's own events will arrive later, from the pod watch
			if _, early := t.endpoints[uid]; !early {
				t.forgetEarly(at)
				t.endpoints[uid] = at
			}
		case p != nil && p.endpointAt.IsZero():
			t.served(p, at, listed)
		}
	}
}

// earlyFor and maxEarly limit early endpoints. An endpoint is early if the pod watch has not delivered its pod yet, or
// has already reported the pod's deletion.
const (
	earlyFor = time.Minute
	maxEarly = 1000 // forgetEarly drops old endpoints only from this number on
)

// forgetEarly drops endpoints that have been early for more than earlyFor, if there are at least maxEarly early
// endpoints.
func (t *tracker) forgetEarly(now time.Time) {
	if len(t.endpoints) < maxEarly {
		return
	}
	maps.DeleteFunc(t.endpoints, func(_ string, at time.Time) bool { return now.Sub(at) > earlyFor })
}

func (t *tracker) served(p *pod, at time.Time, listed bool) {
	p.endpointAt = at
	if listed || !p.measured {
		return
	}
	t.reach(p, hopEndpoints, at)
	t.toEndpoint(p)
}

// toEndpoint records the time from the moment at which a pod became Ready until an EndpointSlice listed it, once both
// are known. The time is 0 if the slice came first.
func (t *tracker) toEndpoint(p *pod) {
	if p.measured && !p.endpointAt.IsZero() && !p.readyAt.IsZero() {
		p.phase.toEndpoint.Record(max(0, p.endpointAt.Sub(p.readyAt)))
	}
}

func (r named) result() result.Rollout {
	out := result.Rollout{Deployment: r.name, Action: r.action, Pods: r.pods, Began: r.asked.UTC(), Complete: r.over}
	for i, name := range hopNames() {
		s := r.hops[i]
		if i == hopEndpoints && !r.service || i == hopReplicaSet && r.direct {
			continue
		}
		hop := result.Hop{Name: name, Count: s.count}
		if s.count > 0 {
			hop.First, hop.Last = new(s.first.Sub(r.asked).Seconds()), new(s.last.Sub(r.asked).Seconds())
		}
		out.Hops = append(out.Hops, hop)
	}
	return out
}

// lastRollouts returns the last rollout of each workload, which may still be in progress.
func (t *tracker) lastRollouts() []result.Rollout {
	var all []result.Rollout
	for name, d := range t.deployments {
		if d.rollout != nil {
			all = append(all, named{name, d.rollout}.result())
		}
	}
	return all
}
