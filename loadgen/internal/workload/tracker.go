package workload

import (
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// tracker derives the state of the run's objects from watch events. It has no clock, no lock and no I/O.
type tracker struct {
	deployments map[string]*deployment
	pods        map[string]*pod  // by UID, because a name may be reused
	nodes       map[string]*node // the run's simulated nodes, by name
	held        map[string]int64 // number of existing pods by node name
	up          int64            // number of nodes that have not failed
	failed      map[string]bool  // names of nodes that the run has stopped
	failures    []*failure
	clocks      bool                 // whether any workload is recovering from a failure of nodes
	terminating map[string]time.Time // when the tracker first saw each namespace being deleted, by UID
	endpoints   map[string]time.Time // early endpoints: when a slice first listed a pod that was not seen yet, by pod UID

	phases map[string]*phase
	phase  *phase

	live Live
	// onStartup receives each measured startup time of a pod. onDeletion receives each measured deletion time of a
	// namespace.
	onStartup, onDeletion func(time.Duration)
	// stalled returns how long the generator was stalled, in total, before the given time.
	stalled func(time.Time) time.Duration
}

// deployment is a workload of any kind: the requested state, the reported status, and the state of its pods. Pods on
// failed nodes count only in `stuck`.
type deployment struct {
	replicas   int64 // requested replicas; for a Job, and each Job of a CronJob, the completions
	revision   string
	generation int64 // metadata.generation that the status must have observed, or the constant deleted

	deploy *scenario.Action // the action that created the workload
	// needed is the number of replicas for the CPU demand. enough is the smallest number of replicas that satisfies the
	// autoscaler. Both are 0 without a demand.
	needed, enough int64

	exists bool // whether the object exists, according to the watch
	status object

	service bool     // whether the workload has a Service
	rollout *rollout // rollout of the last change; nil before the first

	good  int64 // pods that are Ready, have the current revision and are not being deleted
	other int64 // all other existing pods: old, starting, terminating
	stuck int64 // pods that are being deleted on failed nodes

	jobs  map[string]*job // the Job itself, or the Jobs of a CronJob, by name
	ended jobCounts       // numbers of deleted Jobs of a CronJob, by state
	runs  schedule        // due and started runs of a CronJob

	recovery clock // time that the workload took to recover after nodes last failed or returned
}

type pod struct {
	deployment         string
	job                string
	revision, nodeName string

	ready, deleting, ended, succeeded bool

	phase *phase // phase in which the pod was first seen
	// measured reports whether the startup time can be measured: the pod was first seen in a watch event, not in a
	// list.
	measured bool
	// These fields are the arrival times of the events in which the pod was first seen, bound, Ready, and in an
	// EndpointSlice. Zero means not yet.
	firstSeen, boundAt, readyAt, endpointAt time.Time
	stalledBefore                           time.Duration // total length of the generator's stalls before firstSeen
}

type node struct{ ready bool }

// failure is a failure of nodes, with two time measurements.
type failure struct {
	at    time.Time
	nodes []string
	// awaitsNotReady is true until the tracker has seen all of the nodes NotReady. awaitsRecovery is true until all
	// workloads again have all their pods Ready.
	awaitsNotReady, awaitsRecovery bool
}

type phase struct {
	created, ready, deleted, unmeasured int64
	reconnects, relists                 int64
	toScheduled, toReady, toEndpoint    *latency.Histogram
	startup, external                   *latency.Histogram
	rollouts                            []named
	notReadyAfter, recoveredAfter       *float64
}

func newTracker(onStartup func(time.Duration), stalled func(time.Time) time.Duration) *tracker {
	t := &tracker{
		deployments: map[string]*deployment{},
		pods:        map[string]*pod{},
		nodes:       map[string]*node{},
		failed:      map[string]bool{},
		held:        map[string]int64{},
		terminating: map[string]time.Time{},
		endpoints:   map[string]time.Time{},
		phases:      map[string]*phase{},
		onStartup:   onStartup,
		onDeletion:  func(time.Duration) {},
		stalled:     stalled,
	}
	t.beginPhase("")
	return t
}

// longest is the longest duration that the histograms distinguish. Longer durations are clamped.
const longest = time.Hour

func (t *tracker) beginPhase(name string) {
	p, again := t.phases[name]
	if !again {
		p = &phase{
			toScheduled: latency.New(longest), toReady: latency.New(longest), toEndpoint: latency.New(longest),
			startup: latency.New(longest), external: latency.New(longest),
		}
		t.phases[name] = p
	}
	t.phase = p
}

func (t *tracker) results() map[string]result.Workload {
	out := make(map[string]result.Workload, len(t.phases))
	for name, p := range t.phases {
		w := result.Workload{
			PodsCreated: p.created, PodsReady: p.ready, PodsDeleted: p.deleted, PodsUnmeasured: p.unmeasured,
			Reconnects: p.reconnects, Relists: p.relists,
			ToScheduled: p.toScheduled.Latency(), ToReady: p.toReady.Latency(), ToEndpoint: p.toEndpoint.Latency(),
			Startup: p.startup.Latency(), External: p.external.Latency(),
			NotReadyAfter: p.notReadyAfter, RecoveredAfter: p.recoveredAfter,
		}
		for _, r := range p.rollouts {
			w.Rollouts = append(w.Rollouts, r.result())
		}
		out[name] = w
	}
	return out
}

// want records the state that a change requests. Call it before the request is sent: otherwise the tracker could
// mistake the old state for the new one.
func (t *tracker) want(name string, replicas int64, revision string) {
	d := t.of(name)
	if replicas == 0 {
		d.needed, d.enough = 0, 0
	}
	t.scaled(d, replicas, d.needed)
	d.revision = revision
	t.wantJobs(name, d)
	// No status has observed such a high generation. The response to the request replaces it by the real generation.
	d.generation = 1 << 62
	t.recount()
}

func (t *tracker) accepted(name string, generation int64, at time.Time) {
	d := t.of(name)
	d.generation = generation
	d.runs.begin(d, at)
	if generation != deleted && d.rollout != nil {
		d.rollout.hops[hopAPIWrite].add(at)
	}
}

func (t *tracker) of(name string) *deployment {
	d, ok := t.deployments[name]
	if !ok {
		d = &deployment{}
		t.deployments[name] = d
	}
	return d
}

// saw processes an object that arrived at the time `at`. listed is true if the object came from a list; such an object
// may have existed for a long time.
func (t *tracker) saw(o object, at time.Time, listed bool) {
	switch o.kind {
	case podKind:
		t.sawPod(o, at, listed)
	case nodeKind:
		n, ok := t.nodes[o.name]
		if !ok {
			n = &node{}
			t.nodes[o.name] = n
			t.live.Nodes++
			t.up += step(t.failed[o.name], true)
		}
		t.live.NodesReady += step(n.ready, o.ready)
		n.ready = o.ready
	case deploymentKind, statefulSetKind, daemonSetKind, cronJobKind:
		if o.deployment == "" {
			return // the object has the run's label, but no deploy action created it
		}
		d := t.of(o.name)
		d.exists, d.status = true, o
		t.sawScale(d, o, at)
	case jobKind:
		t.sawJob(o)
	case replicaSetKind:
		t.sawReplicaSet(o, at, listed)
	case sliceKind:
		t.sawSlice(o, at, listed)
	case namespaceKind:
		t.sawNamespace(o, at)
	}
	t.check(at)
}

func (t *tracker) sawPod(o object, at time.Time, listed bool) {
	p, known := t.pods[o.uid]
	if known {
		t.count(p, -1)
	} else {
		p = &pod{deployment: o.deployment, job: o.job, phase: t.phase, measured: !listed, firstSeen: at, stalledBefore: t.stalled(at)}
		t.pods[o.uid] = p
		t.phase.created++
		if listed {
			t.phase.unmeasured++
		}
	}
	if o.succeeded && !p.succeeded && !p.deleting {
		t.succeeded(p)
	}
	p.revision, p.nodeName, p.ready, p.deleting, p.ended, p.succeeded = o.revision, o.nodeName, o.ready, o.deleting, o.ended, o.succeeded
	if !known {
		t.reach(p, hopPods, at)
	}
	if p.nodeName != "" && p.boundAt.IsZero() {
		p.boundAt = at
		t.reach(p, hopBinding, at)
		if p.measured {
			p.phase.toScheduled.Record(at.Sub(p.firstSeen))
		}
	}
	if p.ready && p.readyAt.IsZero() {
		p.readyAt = at
		t.phase.ready++
		t.reach(p, hopReady, at)
		t.toEndpoint(p)
		if p.measured {
			p.phase.toReady.Record(at.Sub(p.boundAt))
			p.phase.startup.Record(at.Sub(p.firstSeen))
			p.phase.external.Record(at.Sub(p.firstSeen) - (t.stalled(at) - p.stalledBefore))
			t.onStartup(at.Sub(p.firstSeen))
		}
	}
	if served, early := t.endpoints[o.uid]; early {
		delete(t.endpoints, o.uid)
		t.served(p, served, listed)
	}
	t.count(p, 1)
}

func (t *tracker) sawNamespace(o object, at time.Time) {
	if _, known := t.terminating[o.uid]; !known && o.deleting {
		t.terminating[o.uid] = at
		t.live.NamespacesTerminating++
	}
}

func (t *tracker) namespaceGone(uid string, at time.Time) {
	if since, known := t.terminating[uid]; known {
		delete(t.terminating, uid)
		t.live.NamespacesTerminating--
		t.onDeletion(at.Sub(since))
	}
}

func (t *tracker) gone(o object, at time.Time) {
	switch o.kind {
	case podKind:
		if p, ok := t.pods[o.uid]; ok {
			t.count(p, -1)
			delete(t.pods, o.uid)
			delete(t.endpoints, o.uid)
			t.phase.deleted++
		}
	case nodeKind:
		if n, ok := t.nodes[o.name]; ok {
			t.live.Nodes--
			t.live.NodesReady += step(n.ready, false)
			t.up += step(!t.failed[o.name], false)
			delete(t.nodes, o.name)
		}
	case deploymentKind, statefulSetKind, daemonSetKind, cronJobKind:
		if d, ok := t.deployments[o.name]; ok && d.status.uid == o.uid {
			d.exists = false
		}
	case jobKind:
		t.jobGone(o)
	case namespaceKind:
		t.namespaceGone(o.uid, at)
	}
	t.check(at)
}

// replace processes a complete list. Known objects that the list lacks have been deleted.
func (t *tracker) replace(k kind, objects []object, at time.Time) {
	listed := make(map[string]bool, len(objects))
	for _, o := range objects {
		listed[o.key()] = true
	}
	for _, o := range t.known(k) {
		if !listed[o.key()] {
			t.gone(o, at)
		}
	}
	for _, o := range objects {
		t.saw(o, at, true)
	}
}

// known returns the known objects of a kind, with only the fields that the method gone needs. It returns nil for kinds
// whose deletions do not matter.
func (t *tracker) known(k kind) (all []object) {
	switch k {
	case podKind:
		for uid := range t.pods {
			all = append(all, object{kind: k, uid: uid})
		}
	case namespaceKind:
		for uid := range t.terminating {
			all = append(all, object{kind: k, uid: uid})
		}
	case nodeKind:
		for name := range t.nodes {
			all = append(all, object{kind: k, name: name})
		}
	case deploymentKind, statefulSetKind, daemonSetKind, cronJobKind:
		for name, d := range t.deployments {
			if kindOf(d.workload()) == k {
				all = append(all, object{kind: k, name: name, uid: d.status.uid})
			}
		}
	case jobKind:
		for name, d := range t.deployments {
			for of, j := range d.jobs {
				all = append(all, object{kind: k, name: of, deployment: name, uid: j.uid})
			}
		}
	}
	return all
}

func (o object) key() string {
	if o.kind == podKind || o.kind == namespaceKind {
		return o.uid
	}
	return o.name
}
