package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/manifest"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Preview lists what a run would make and send. A preview itself makes nothing.
type Preview struct {
	Scenario string `json:"scenario"`
	Variant  string `json:"variant,omitempty"`
	// Cluster is the cluster that was inspected. Nil means that a control plane would be started for the run.
	Cluster *PreviewCluster `json:"cluster,omitempty"`
	// LongestSeconds is the maximum time of all phases.
	LongestSeconds float64        `json:"longestSeconds"`
	Phases         []PreviewPhase `json:"phases"`
	// Creates are the objects that the run itself creates, with the most that exist at a time.
	Creates []PreviewObjects `json:"creates"`
	// Requests of loads and of the simulated nodes' heartbeats.
	Requests []PreviewRequests `json:"requests"`
	// PeakPerSecond is the highest rate of the loads, reached in PeakPhase; openings of watches count.
	PeakPerSecond float64 `json:"peakPerSecond"`
	PeakPhase     string  `json:"peakPhase"`
	// Watches is the maximum number of open watches of loads.
	Watches int          `json:"watches"`
	Bytes   PreviewBytes `json:"bytes"`
	Faults  []string     `json:"faults"`
	// Commands are run on this machine, Profiles taken of components.
	Commands []string `json:"commands"`
	Profiles []string `json:"profiles"`
	AbortOn  []string `json:"abortOn"`
	// Permissions that the run needs, or would need on a user's cluster if Cluster is nil.
	Permissions []Permission `json:"permissions"`
	// Left describes what stays after a run that ends in order.
	Left  []string `json:"left"`
	Notes []string `json:"notes"`
}

// PreviewCluster is the cluster of a Preview.
type PreviewCluster struct {
	Name    string `json:"name"`
	Server  string `json:"server"`
	Version string `json:"version"`
	User    string `json:"user"`
}

// PreviewPhase is one phase.
type PreviewPhase struct {
	Name           string  `json:"name"`
	LongestSeconds float64 `json:"longestSeconds"`
	Until          string  `json:"until,omitempty"`
	PeakPerSecond  float64 `json:"peakPerSecond"`
	Watches        int     `json:"watches"`
}

// PreviewObjects are objects of one kind.
type PreviewObjects struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	// Where: "cluster", "run" (in its namespaces) or the name of another namespace.
	Where string `json:"where"`
	For   string `json:"for"`
}

// PreviewRequests are the requests of a load for one verb and resource.
type PreviewRequests struct {
	Load     string `json:"load"`
	Phase    string `json:"phase,omitempty"` // empty: all
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	// PeakPerSecond and Total are maximums; a negative Total is unknown before the run.
	PeakPerSecond float64 `json:"peakPerSecond"`
	Total         int64   `json:"total"`
}

// PreviewBytes are rough sizes, of the payloads of loads' own objects.
type PreviewBytes struct {
	Kept              float64 `json:"kept"`
	SentPerSecond     float64 `json:"sentPerSecond"`     // at the peak
	AnsweredPerSecond float64 `json:"answeredPerSecond"` // at the peak
}

// Permission is one permission that a run needs.
type Permission struct {
	Permission string `json:"permission"`
	// Allowed says whether the user has it; nil: not checked.
	Allowed *bool `json:"allowed,omitempty"`
}

// PreviewOptions say what a run would do in addition to its scenario.
type PreviewOptions struct {
	NoLock     bool
	CleanupJob bool
	AbortOn    []string
}

// PreviewOf returns the preview of a run on a plane that is started for it. It sends no request.
func PreviewOf(s *scenario.Scenario, o PreviewOptions) Preview {
	t := newTarget("RUN", s)
	t.Cluster.Bundled, t.own = true, true
	p := t.preview(o)
	needs, err := t.allNeeds(newLookup(offline{}, s))
	if err != nil {
		p.Notes = append(p.Notes, "the permissions on a cluster of yours are known when it is asked: "+oneLine(err))
		return p
	}
	p.permit(append(needs, lockNeeds()...), nil)
	return p
}

// Inspect returns the preview of a run on a user's cluster. It reads only the cluster's version, resources and permissions.
func Inspect(ctx context.Context, k Kubeconfig, s *scenario.Scenario, o PreviewOptions, tell func(string)) (Preview, error) {
	t := newTarget("RUN", s)
	client, user, err := t.reachFrom(ctx, k, tell)
	if err != nil {
		return Preview{}, err
	}
	t.own = k.ownPlane(t.Admin)
	defer Waiting(tell, "the cluster to say what we may do")()
	needs, err := t.allNeeds(newLookup(client.Discovery(), s))
	if err != nil {
		return Preview{}, fmt.Errorf("cluster %s: %w", t.Cluster.Name, err)
	}
	if !o.NoLock {
		needs = append(needs, lockNeeds()...)
	}
	if o.CleanupJob {
		needs = append(needs, slices.Concat(each("create", "", "serviceaccounts", t.Namespace+"-cleanup"), each("create", "batch", "jobs", t.Namespace+"-cleanup"),
			each("create", "rbac.authorization.k8s.io", "roles", leaseNamespace), each("create", "rbac.authorization.k8s.io", "rolebindings", leaseNamespace),
			each("create", "rbac.authorization.k8s.io", "roles", lockNamespace), each("create", "rbac.authorization.k8s.io", "rolebindings", lockNamespace), cleanupNeeds())...)
	}
	allowed, err := askAccess(ctx, client, needs)
	if err != nil {
		return Preview{}, fmt.Errorf("cluster %s: %s %w", t.Cluster.Name, user, err)
	}
	t.describe(ctx, k, client)
	p := t.preview(o)
	p.Cluster = &PreviewCluster{Name: t.Cluster.Name, Server: t.Cluster.Server, Version: t.KubernetesVersion, User: user}
	p.permit(needs, allowed)
	return p, nil
}

// Missing lists the permissions that the user lacks.
func (p Preview) Missing() (all []string) {
	for _, x := range p.Permissions {
		if x.Allowed != nil && !*x.Allowed {
			all = append(all, x.Permission)
		}
	}
	return all
}

func (p *Preview) permit(needs []need, allowed []bool) {
	at := map[string]int{}
	for i, n := range needs {
		text := n.String()
		if _, twice := at[text]; twice {
			continue
		}
		at[text] = len(p.Permissions)
		x := Permission{Permission: text}
		if allowed != nil {
			x.Allowed = &allowed[i]
		}
		p.Permissions = append(p.Permissions, x)
	}
}

func (t *Target) preview(o PreviewOptions) Preview {
	s := t.scenario
	plan := t.Plan(s)
	p := Preview{
		Scenario: s.Name, Variant: s.Variant, LongestSeconds: s.Longest().Seconds(), AbortOn: orEmpty(o.AbortOn),
		Watches: plan.Watches, Commands: orEmpty(plan.Commands), Profiles: orEmpty(plan.Profiles), Notes: orEmpty(t.Notes),
		Phases: []PreviewPhase{}, Creates: []PreviewObjects{}, Requests: []PreviewRequests{}, Faults: []string{}, Permissions: []Permission{}, Left: []string{},
	}
	for i, peak := range s.Peaks() {
		phase := s.Phases[i]
		p.Phases = append(p.Phases, PreviewPhase{
			Name: phase.Name, LongestSeconds: max(phase.For, phase.Within).D().Seconds(), Until: phase.Until.String(),
			PeakPerSecond: peak.Most(), Watches: peak.Watches,
		})
	}
	highest := s.Peak()
	p.PeakPerSecond, p.PeakPhase = highest.Most(), highest.Phase
	for _, f := range s.Faults() {
		p.Faults = append(p.Faults, fmt.Sprintf("%s in phase %s", f.Kind, f.Phase))
	}
	p.addObjects(t, plan, o)
	p.addRequests(s, highest.Phase)
	return p
}

func orEmpty(list []string) []string { return append([]string{}, list...) }

// addObjects adds the objects of a plan, by kind.
func (p *Preview) addObjects(t *Target, plan Plan, o PreviewOptions) {
	s := t.scenario
	add := func(kind string, n int, where, what string) {
		if n > 0 {
			p.Creates = append(p.Creates, PreviewObjects{kind, n, where, what})
		}
	}
	const cluster, run = "cluster", "run"
	namespaces := 1 + plan.MoreNamespaces
	add("Namespace", namespaces, cluster, "the run, and what its loads spread over")
	if plan.Account != "" {
		add("ServiceAccount", 1, run, "the load")
		add("ClusterRole", 1, cluster, "the load")
		add("ClusterRoleBinding", 1, cluster, "the load")
		add("Role", namespaces, run, "the load")
		add("RoleBinding", namespaces, run, "the load")
		if !o.NoLock {
			add("Lease", 1, lockNamespace, "the lock of the cluster")
		}
	}
	if o.CleanupJob {
		for _, object := range (CleanupOptions{Image: "image", Namespace: t.Namespace + "-cleanup", run: t.runID}).Objects() {
			u, err := manifest.Plain(object)
			if err == nil {
				where := u.GetNamespace()
				if where == "" {
					where = cluster
				}
				add(u.GetKind(), 1, where, "the Job that cleans up")
			}
		}
	}
	if n := plan.Nodes; n > 0 {
		add("Node", n, cluster, "simulated nodes, "+plan.Fidelity)
		add("Lease", n, leaseNamespace, "heartbeats of simulated nodes")
		add("CSINode", n, cluster, "simulated nodes")
		if plan.Fidelity != node.Shared && !t.Cluster.Bundled {
			each := 1
			if s.Nodes.KubeProxy {
				each = 2
			}
			add("CertificateSigningRequest", n*each, cluster, "certificates of simulated nodes")
		}
		if plan.DeviceClass != "" {
			add("ResourceSlice", n, cluster, "devices of simulated nodes")
			add("DeviceClass", 1, cluster, "devices of simulated nodes")
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(plan.Workloads)) {
		add(kind, plan.Workloads[kind], run, "workloads")
	}
	add("Service", plan.Services, run, "workloads")
	add("Pod", plan.Pods, run, "workloads, by controllers")
	for _, resource := range slices.Sorted(maps.Keys(plan.Objects)) {
		add(resource, plan.Objects[resource], run, "objects of loads")
	}
	if t.widgets {
		add("CustomResourceDefinition", 1, cluster, "the custom resource of loads")
	}
	for _, m := range plan.Created {
		n, where := max(m.Count, 1), cluster
		if m.Namespaced {
			n, where = n*namespaces, run
		}
		add(m.Kind, n, where, "of actions: "+m.Name)
	}
	for _, b := range s.Batches() {
		if all, err := s.Expand(b); err == nil {
			for _, k := range all.Kinds() {
				add(k.Kind, k.Count, run, "of "+b.Path)
			}
		}
	}
}

func (p *Preview) addRequests(s *scenario.Scenario, peak string) {
	peaks := map[string]float64{}
	for _, phase := range s.Peaks() {
		for _, l := range phase.Loads {
			peaks[l.Path] = l.Second
		}
	}
	for _, l := range s.Loads() {
		total, known := s.Arrivals(l)
		for _, share := range s.Shares(l) {
			r := PreviewRequests{Load: l.Name, Phase: l.Phase, Verb: share.Verb, Resource: share.Resource, PeakPerSecond: peaks[l.Path] * share.Part, Total: -1}
			if known {
				r.Total = int64(float64(total)*share.Part + 0.5)
			}
			p.Requests = append(p.Requests, r)
			if l.Phase == "" || l.Phase == peak {
				p.Bytes.SentPerSecond += r.PeakPerSecond * share.Sent
				p.Bytes.AnsweredPerSecond += r.PeakPerSecond * share.Answered
			}
		}
	}
	p.Bytes.Kept = s.Kept()
	if n := s.Nodes; n.Count > 0 {
		per := func(every scenario.Duration) float64 { return float64(n.Count) / max(every.D().Seconds(), 1) }
		all := func(rate float64) int64 { return int64(rate * p.LongestSeconds) }
		for _, r := range []PreviewRequests{
			{Verb: "create", Resource: "nodes", PeakPerSecond: float64(n.RegisterRate), Total: int64(n.Count)},
			{Verb: "update", Resource: "leases.coordination.k8s.io", PeakPerSecond: per(n.LeaseRenew), Total: all(per(n.LeaseRenew))},
			{Verb: "patch", Resource: "nodes/status", PeakPerSecond: per(n.StatusReport), Total: all(per(n.StatusReport))},
		} {
			r.Load = "simulated nodes"
			p.Requests = append(p.Requests, r)
		}
		p.Notes = append(p.Notes, "what simulated nodes and controllers send for each pod is not in the numbers of requests, nor are their watches")
	}
}

// Refused returns the known error that would keep the run from starting, or nil.
func (p Preview) Refused() error {
	missing := p.Missing()
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("cluster %s: %s %s", p.Cluster.Name, p.Cluster.User, lacking(missing))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
