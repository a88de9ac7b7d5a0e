package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Preview lists what a run would create and send. Creating a Preview changes nothing in a cluster.
type Preview struct {
	Scenario string `json:"scenario"`
	Variant  string `json:"variant,omitempty"`
	// Cluster is the cluster that Inspect examined. Nil means that the run would start its own control plane.
	Cluster *PreviewCluster `json:"cluster,omitempty"`
	// LongestSeconds is the maximum total duration of all phases.
	LongestSeconds float64        `json:"longestSeconds"`
	Phases         []PreviewPhase `json:"phases"`
	// Creates are the objects that the run creates, and those that controllers create for its workloads.
	Creates []PreviewObjects `json:"creates"`
	// Requests are the requests of the setup, loads, actions and the simulated nodes' heartbeats.
	Requests []PreviewRequests `json:"requests"`
	// PeakPerSecond is the highest total request rate of the loads, including the rate at which they open watches.
	// PeakPhase is the phase with this rate.
	PeakPerSecond float64 `json:"peakPerSecond"`
	PeakPhase     string  `json:"peakPhase"`
	// Watches is the maximum number of open watches of loads.
	Watches int          `json:"watches"`
	Bytes   PreviewBytes `json:"bytes"`
	Faults  []string     `json:"faults"`
	// Commands are the commands that the run executes on this machine. Profiles are the profiles that it takes of
	// components, such as the API server.
	Commands []string `json:"commands"`
	Profiles []string `json:"profiles"`
	AbortOn  []string `json:"abortOn"`
	// Permissions are the permissions that the run needs. If Cluster is nil, the run needs them only on a user's
	// cluster.
	Permissions []Permission `json:"permissions"`
	// Left describes what remains in the cluster after a run that ends normally.
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

// PreviewPhase describes one phase of the scenario.
type PreviewPhase struct {
	Name           string  `json:"name"`
	LongestSeconds float64 `json:"longestSeconds"`
	Until          string  `json:"until,omitempty"`
	PeakPerSecond  float64 `json:"peakPerSecond"`
	Watches        int     `json:"watches"`
}

// PreviewObjects is the number of objects of one kind that the run creates in one place for one purpose.
type PreviewObjects struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	// Certainty is the certainty of Count: "about", "at most", "at least" or "not known"; absent: exact.
	Certainty plan.Certainty `json:"certainty,omitempty"`
	// Where is "cluster", "run" (in the run's namespaces), or the name of another namespace.
	Where string `json:"where"`
	For   string `json:"for"`
}

// PreviewRequests holds the number and the peak rate of the requests of a load or an action for one verb and resource.
type PreviewRequests struct {
	Load     string `json:"load"`
	Phase    string `json:"phase,omitempty"` // name of the phase; empty: all phases
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	// Mapped is the number of replayed requests that go to ConfigMaps instead of the recorded resource.
	Mapped        int64          `json:"mapped,omitempty"`
	PeakPerSecond float64        `json:"peakPerSecond"`
	Total         int64          `json:"total"` // number of requests; -1: not known before the run
	Certainty     plan.Certainty `json:"certainty,omitempty"`
}

// PreviewBytes are approximate sizes, in bytes, of the objects that loads create and read.
type PreviewBytes struct {
	Kept              float64 `json:"kept"`
	SentPerSecond     float64 `json:"sentPerSecond"`     // bytes of requests, in the phase with the highest rate
	AnsweredPerSecond float64 `json:"answeredPerSecond"` // bytes of responses, in the same phase
}

// Permission is one permission that a run needs.
type Permission struct {
	Permission string `json:"permission"`
	// Allowed reports whether the user has the permission. Nil means unknown: nothing checked it.
	Allowed *bool `json:"allowed,omitempty"`
}

// PreviewOptions are the options of a run that are not part of its scenario.
type PreviewOptions struct {
	NoLock     bool
	CleanupJob bool
	AbortOn    []string
}

// PreviewOf returns the preview of a run on a control plane that the run starts itself. It sends no request.
func PreviewOf(s *plan.Plan, o PreviewOptions) Preview {
	t := newTarget("RUN", s)
	t.Cluster.Bundled, t.own = true, true
	look := newLookup(offline{}, s)
	p := t.preview(look, o)
	needs, err := t.allNeeds(look)
	if err != nil {
		p.Notes = append(p.Notes, "the permissions needed on your own cluster are unknown, because they depend on the cluster: "+oneLine(err))
		return p
	}
	p.permit(append(needs, lockNeeds()...), nil)
	return p
}

// Inspect returns the preview of a run on a user's cluster. It reads only the cluster's version, resources and permissions.
func Inspect(ctx context.Context, k Kubeconfig, s *plan.Plan, o PreviewOptions, tell func(string)) (Preview, error) {
	t := newTarget("RUN", s)
	client, user, err := t.reachFrom(ctx, k, tell)
	if err != nil {
		return Preview{}, err
	}
	t.own = k.ownPlane(t.Admin)
	defer Waiting(tell, "the cluster to report the user's permissions")()
	look := newLookup(client.Discovery(), s)
	needs, err := t.allNeeds(look)
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
	p := t.preview(look, o)
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

func (t *Target) preview(look *lookup, o PreviewOptions) Preview {
	s := t.plan
	t.credentials.tokens = t.ownIdentities() && s.Nodes.IdentityKind() == scenario.IdentityToken
	listed := t.Plan()
	p := Preview{
		Scenario: s.Name, Variant: s.Variant, LongestSeconds: s.Longest.Seconds(), AbortOn: orEmpty(o.AbortOn),
		Watches: listed.Watches, Commands: orEmpty(listed.Commands), Profiles: orEmpty(listed.Profiles), Notes: orEmpty(t.Notes),
		Phases: []PreviewPhase{}, Creates: []PreviewObjects{}, Requests: []PreviewRequests{}, Faults: []string{}, Permissions: []Permission{}, Left: []string{},
	}
	for i, peak := range s.Peaks {
		phase := s.Phases[i]
		p.Phases = append(p.Phases, PreviewPhase{
			Name: phase.Name, LongestSeconds: plan.LongestOf(phase).Seconds(), Until: phase.Until.String(),
			PeakPerSecond: peak.Most(), Watches: peak.Watches,
		})
	}
	highest := s.Highest
	p.PeakPerSecond, p.PeakPhase = highest.Most(), highest.Phase
	for _, f := range s.Faults {
		p.Faults = append(p.Faults, fmt.Sprintf("%s in phase %s", f.Kind, f.Phase))
	}
	f := forecast{&p, t, s, look}
	f.identities(listed, o)
	f.nodes(listed)
	f.workloads(listed)
	f.manifests()
	f.loads()
	newCensus(f).run()
	return p
}

func orEmpty(list []string) []string { return append([]string{}, list...) }

// Refused returns an error that names the permissions that the user lacks, because the run would not start without
// them. It returns nil if none is known to be missing.
func (p Preview) Refused() error {
	missing := p.Missing()
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("cluster %s: %s %s", p.Cluster.Name, p.Cluster.User, lacking(missing))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
