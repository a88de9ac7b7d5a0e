package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stormglass/stormglass/internal/bools"
	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/load/object"
	"github.com/stormglass/stormglass/loadgen/internal/load/replay"
	"github.com/stormglass/stormglass/loadgen/internal/manifest"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// forecast fills a Preview with the objects that a run creates and the requests that it sends.
type forecast struct {
	*Preview
	t    *Target
	s    *plan.Plan
	look *lookup
}

const inCluster, inRun = "cluster", "run"

// creates adds n objects with the purpose `what` to the Preview. It merges rows of one kind, place and purpose.
func (f forecast) creates(kind string, n int, how plan.Certainty, where, what string) {
	i := slices.IndexFunc(f.Creates, func(x PreviewObjects) bool { return x.Kind == kind && x.Where == where && x.For == what })
	switch {
	case n == 0 && how != plan.Unknown:
	case i < 0:
		f.Creates = append(f.Creates, PreviewObjects{kind, n, how, where, what})
	default:
		x := &f.Creates[i]
		x.Count, x.Certainty = x.Count+n, x.Certainty.Or(how)
	}
}

// sends adds requests to the Preview. It merges rows with the same load, phase, verb and resource.
func (f forecast) sends(r PreviewRequests) {
	if r.Certainty == plan.Unknown {
		r.Total = -1
	}
	i := slices.IndexFunc(f.Requests, func(x PreviewRequests) bool {
		return x.Load == r.Load && x.Phase == r.Phase && x.Verb == r.Verb && x.Resource == r.Resource
	})
	if i < 0 {
		f.Requests = append(f.Requests, r)
		return
	}
	x := &f.Requests[i]
	if x.Certainty = x.Certainty.Or(r.Certainty); x.Certainty == plan.Unknown {
		x.Total = -1
		return
	}
	x.Total += r.Total
}

// where returns inCluster for cluster-scoped resources, and inRun for all others.
func (f forecast) where(resource string) string {
	if namespaced, err := f.look.namespaced(schema.ParseGroupResource(resource)); err == nil && !namespaced {
		return inCluster
	}
	return inRun
}

// identities adds to the Preview the objects that Setup creates before the scenario's own objects, such as namespaces
// and ServiceAccounts.
func (f forecast) identities(listed Plan, o PreviewOptions) {
	namespaces := len(f.t.namespaces)
	granted := func(to string) {
		f.creates("ClusterRole", 1, plan.Exact, inCluster, to)
		f.creates("ClusterRoleBinding", 1, plan.Exact, inCluster, to)
		f.creates("Role", namespaces, plan.Exact, inRun, to)
		f.creates("RoleBinding", namespaces, plan.Exact, inRun, to)
	}
	f.creates("Namespace", namespaces, plan.Exact, inCluster, "the run and its loads")
	switch {
	case listed.Account != "":
		f.creates("ServiceAccount", 1, plan.Exact, inRun, "the load")
		granted("the load")
		if !o.NoLock {
			f.creates("Lease", 1, plan.Exact, lockNamespace, "the lock of the cluster")
		}
	case f.t.tenants:
		granted("tenants of loads")
	}
	if f.t.credentials.tokens {
		f.creates("Namespace", 1, plan.Exact, inCluster, "accounts of simulated nodes")
		f.creates("ServiceAccount", listed.Nodes+bools.Int(f.s.Nodes.KubeProxy), plan.Exact, f.t.accountNamespace(), "simulated nodes")
		granted("simulated nodes")
	}
	if f.t.widgets {
		f.creates(scenario.DefinitionKind, 1, plan.Exact, inCluster, "the custom resource of loads")
	}
	if !o.CleanupJob {
		return
	}
	for _, object := range (CleanupOptions{Image: "image", Namespace: f.t.Namespace + "-cleanup", run: f.t.runID}).Objects() {
		if u, err := manifest.Plain(object); err == nil {
			f.creates(u.GetKind(), 1, plan.Exact, cmp.Or(u.GetNamespace(), inCluster), "the Job that cleans up")
		}
	}
}

// nodes adds to the Preview the simulated nodes, and their requests that do not depend on pods.
func (f forecast) nodes(listed Plan) {
	n, spec := listed.Nodes, f.s.Nodes
	if n == 0 {
		return
	}
	for _, p := range spec.AllPools() {
		what := "simulated nodes, " + listed.Fidelity
		if p.Name != "" {
			what += ", " + p.Text()
		}
		f.creates("Node", p.Count, plan.Exact, inCluster, what)
	}
	f.creates("Lease", n, plan.Exact, leaseNamespace, "heartbeats of simulated nodes")
	f.creates("CSINode", n, plan.Exact, inCluster, "simulated nodes")
	if listed.Fidelity != node.Shared && !f.t.Cluster.Bundled && !f.t.credentials.tokens {
		f.creates("CertificateSigningRequest", n*(1+bools.Int(spec.KubeProxy)), plan.Exact, inCluster, "certificates of simulated nodes")
	}
	if listed.DeviceClass != "" {
		f.creates("ResourceSlice", n, plan.Exact, inCluster, "devices of simulated nodes")
		f.creates("DeviceClass", 1, plan.Exact, inCluster, "devices of simulated nodes")
	}
	const of = "simulated nodes"
	f.sends(PreviewRequests{Load: of, Verb: "create", Resource: "nodes", PeakPerSecond: float64(spec.RegisterRate), Total: int64(n)})
	for _, x := range []struct {
		verb, resource string
		every          scenario.Duration
	}{{"update", "leases.coordination.k8s.io", spec.LeaseRenew}, {"patch", "nodes/status", spec.StatusReport}} {
		rate := float64(n) / max(x.every.D().Seconds(), 1)
		f.sends(PreviewRequests{Load: of, Verb: x.verb, Resource: x.resource, PeakPerSecond: rate, Total: int64(rate * f.LongestSeconds), Certainty: plan.Ending(f.s.Phases...)})
	}
	f.Notes = append(f.Notes, "the numbers of requests include neither the watches of simulated nodes and controllers nor their requests for each pod")
}

// workloads adds to the Preview the objects that deploy actions create, and the objects that controllers create for
// them.
func (f forecast) workloads(listed Plan) {
	for _, made := range []map[string]int{listed.Workloads, listed.Companions} {
		for _, kind := range slices.Sorted(maps.Keys(made)) {
			f.creates(kind, made[kind], plan.Exact, inRun, "workloads")
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(listed.ByControllers)) {
		n, how, what := listed.ByControllers[kind], listed.Replaced, "workloads, by controllers"
		switch {
		case kind == "ReplicaSet":
			how = plan.Exact
		case kind == "Pod" && n != listed.Pods:
			what += fmt.Sprintf("; at most %s at a time", number(float64(listed.Pods)))
		}
		f.creates(kind, n, how, inRun, what)
	}
}

// manifests adds to the Preview the objects that the setup and actions create from single manifests.
func (f forecast) manifests() {
	add := func(phase string, all []scenario.Manifest) {
		for _, m := range all {
			n, where := max(m.Count, 1)*len(f.t.namespacesOf(m)), inCluster
			if m.Namespaced {
				where = inRun
			}
			f.creates(m.Kind, n, plan.Exact, where, phase+" creates "+m.Name)
			f.sends(PreviewRequests{Load: "action create " + m.Name, Phase: phase, Verb: "create", Resource: m.Resource.GroupResource().String(), Total: int64(n)})
		}
	}
	add("setup", f.s.SetupManifests())
	for i := range f.s.Phases {
		add(f.s.Phases[i].Name, f.s.Phases[i].Manifests())
	}
}

// maxDrawn is the maximum number of requests of a load that the forecast simulates one by one. If a load sends more,
// the forecast estimates the counts from the configured shares.
const maxDrawn = 20_000_000

// loads adds to the Preview the requests of loads, and the objects that loads create: before they start, and by their
// requests.
func (f forecast) loads() {
	for _, l := range f.s.Loads {
		own := madeBy(l.Load)
		for _, resource := range slices.Sorted(maps.Keys(own)) {
			f.creates(f.s.KindOf(resource), l.Objects, plan.Exact, f.where(resource), "load "+l.Name+", before it starts")
		}
		if l.Recorded != nil {
			f.replay(l)
			continue
		}
		n, how := f.s.Arrivals(l)
		var drawn map[[2]string]int64
		if l.Kind == "requests" && n <= maxDrawn {
			drawn = object.Count(f.s.Seed, *l.Load, n)
		}
		for _, share := range f.s.Shares(l) {
			r := PreviewRequests{
				Load: l.Name, Phase: l.Phase, Verb: share.Verb, Resource: share.Resource, PeakPerSecond: l.Peak * share.Part,
				Total: int64(float64(n)*share.Part + 0.5), Certainty: how,
			}
			if drawn != nil {
				r.Total = drawn[[2]string{share.Verb, share.Resource}]
			}
			f.sends(r)
			f.createdBy(l, r)
			f.bytes(l, r.PeakPerSecond, share.Sent, share.Answered)
		}
	}
	f.Bytes.Kept = f.s.Kept
}

func (f forecast) bytes(l plan.Load, rate, sent, answered float64) {
	if l.Phase == "" || l.Phase == f.PeakPhase {
		f.Bytes.SentPerSecond += rate * sent
		f.Bytes.AnsweredPerSecond += rate * answered
	}
}

// createdBy adds to the Preview the objects that the requests r of a load create, and the objects that the load creates
// again after its requests deleted them.
func (f forecast) createdBy(l plan.Load, r PreviewRequests) {
	resource, sub, _ := strings.Cut(r.Resource, "/")
	n, again, how := int(r.Total), ", recreated after its requests deleted them", r.Certainty.Or(plan.AtMost)
	switch {
	case l.Kind != "requests" && l.Kind != "objects" || builtin.IsReview(resource):
		return
	case r.Verb == "create" && sub == "":
		again, how = ", by its requests", r.Certainty
	case r.Verb == "deletecollection":
		each := (l.Objects + l.Namespaces - 1) / max(l.Namespaces, 1)
		for _, o := range l.Operations() {
			if o.Verb == r.Verb && o.Limit > 0 {
				each = min(each, o.Limit)
			}
		}
		n *= each
	case r.Verb != "delete" && sub != "eviction":
		return
	}
	f.creates(f.s.KindOf(resource), n, how, f.where(resource), "load "+l.Name+again)
}

// replay adds to the Preview the requests that a replay of a recording sends to this cluster, and a note on the
// recorded requests that it does not send.
func (f forecast) replay(l plan.Load) {
	namespaced, err := namespacedBy(f.look.discovery)
	if err != nil {
		f.Notes = append(f.Notes, "the requests of load "+l.Name+" are not known: "+oneLine(err))
		return
	}
	for _, c := range f.s.Defined {
		namespaced[c.Name] = c.Namespaced
	}
	length, how := plan.LongestOf(l.Phases...), plan.Ending(l.Phases...)
	x := replay.Expect(l.Recorded, replay.OptionsOf(*l.Load, f.s.Seed), namespaced, length)
	if how == plan.About && x.Last < length-plan.Moment {
		how = plan.Exact
	}
	total := int64(0)
	for _, r := range x.Requests {
		total += r.Count
	}
	for _, r := range x.Requests {
		if r.Count > 0 {
			rate := l.Peak * float64(r.Count) / float64(total)
			f.sends(PreviewRequests{Load: l.Name, Phase: l.Phase, Verb: r.Verb, Resource: r.Resource, Mapped: r.Mapped, PeakPerSecond: rate, Total: r.Count, Certainty: how})
			f.bytes(l, rate, r.Sent, 0)
		}
	}
	for i := range f.Phases {
		if p := &f.Phases[i]; l.Phase == "" || l.Phase == p.Name {
			p.Watches += x.Watches
			f.Watches = max(f.Watches, p.Watches)
		}
	}
	f.Notes = append(f.Notes, "the data received and stored by load "+l.Name+" are not known before the run")
	for _, resource := range slices.Sorted(maps.Keys(x.Made)) {
		f.creates(f.s.KindOf(resource), x.Made[resource], plan.Exact, inRun, "load "+l.Name+", before it starts")
	}
	for _, resource := range slices.Sorted(maps.Keys(x.Created)) {
		f.creates(f.s.KindOf(resource), x.Created[resource], how.Or(plan.About), inRun, "load "+l.Name+", by its requests")
	}
	for _, why := range slices.Sorted(maps.Keys(x.LeftOut)) {
		f.Notes = append(f.Notes, fmt.Sprintf("load %s does not send %s of the recording: %s", l.Name, count(int(x.LeftOut[why]), "request"), why))
	}
	for _, size := range slices.Sorted(maps.Keys(x.Cut)) {
		f.Notes = append(f.Notes, fmt.Sprintf("load %s cuts the bodies of %s of the recording to %s bytes, the most that the API server accepts", l.Name, count(int(x.Cut[size]), "request"), size))
	}
}
