package cluster

import (
	"context"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"

	"github.com/stormglass/stormglass/loadgen/internal/manifest"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Rules are RBAC rules by the namespace in which they apply; "" is the whole cluster.
type Rules map[string][]rbacv1.PolicyRule

// Allow adds a rule for verbs, separated by spaces, on a resource. With names, the rule applies only to the objects with
// these names.
func (r Rules) Allow(namespace, verbs, group, resource string, names ...string) {
	r.add(namespace, rbacv1.PolicyRule{Verbs: strings.Fields(verbs), APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names})
}

// Add adds all rules in `others`.
func (r Rules) Add(others Rules) {
	for namespace, all := range others {
		for _, rule := range all {
			r.add(namespace, rule)
		}
	}
}

// add merges a rule into the existing rule for the same objects, or appends it.
func (r Rules) add(namespace string, rule rbacv1.PolicyRule) {
	i := slices.IndexFunc(r[namespace], func(there rbacv1.PolicyRule) bool { return sameObjects(there, rule) })
	if i < 0 {
		rule.Verbs = slices.Clone(rule.Verbs)
		r[namespace] = append(r[namespace], rule)
		return
	}
	there := &r[namespace][i]
	for _, verb := range rule.Verbs {
		if !slices.Contains(there.Verbs, verb) {
			there.Verbs = append(there.Verbs, verb)
		}
	}
}

func sameObjects(a, b rbacv1.PolicyRule) bool {
	return slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.Resources, b.Resources) &&
		slices.Equal(a.ResourceNames, b.ResourceNames) && slices.Equal(a.NonResourceURLs, b.NonResourceURLs)
}

// Compact returns the rules without verbs that a wider rule already grants.
func (r Rules) Compact() Rules {
	merged, out := Rules{}, Rules{}
	merged.Add(r)
	for namespace, all := range merged {
		for i, rule := range all {
			rule.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool {
				return namespace != "" && grants(merged[""], -1, rule, verb) || grants(all, i, rule, verb)
			})
			if len(rule.Verbs) > 0 {
				out[namespace] = append(out[namespace], rule)
			}
		}
	}
	return out
}

// grants reports whether a rule in `all`, other than all[but], grants `verb` on all objects that the rule `one` covers.
func grants(all []rbacv1.PolicyRule, but int, one rbacv1.PolicyRule, verb string) bool {
	for i, wide := range all {
		if i != but && len(wide.ResourceNames) == 0 && slices.Contains(wide.Verbs, verb) && slices.Equal(wide.NonResourceURLs, one.NonResourceURLs) &&
			slices.Equal(wide.APIGroups, one.APIGroups) && slices.Equal(wide.Resources, one.Resources) {
			return true
		}
	}
	return false
}

// Objects returns the roles that grant the rules, and the bindings of these roles to subjects. All have the same name.
// `meta` returns the metadata of a role or binding in a namespace; "" means cluster-scoped.
func (r Rules) Objects(name string, subjects []rbacv1.Subject, meta func(namespace string) metav1.ObjectMeta) (all []runtime.Object) {
	const rbac = rbacv1.GroupName + "/v1"
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	for _, in := range slices.Sorted(maps.Keys(r)) { // "", the cluster, comes first
		if in == "" {
			all = append(all,
				&rbacv1.ClusterRole{TypeMeta: manifest.Type(rbac, "ClusterRole"), ObjectMeta: meta(""), Rules: r[""]},
				&rbacv1.ClusterRoleBinding{TypeMeta: manifest.Type(rbac, "ClusterRoleBinding"), ObjectMeta: meta(""), Subjects: subjects, RoleRef: ref("ClusterRole")})
			continue
		}
		all = append(all,
			&rbacv1.Role{TypeMeta: manifest.Type(rbac, "Role"), ObjectMeta: meta(in), Rules: r[in]},
			&rbacv1.RoleBinding{TypeMeta: manifest.Type(rbac, "RoleBinding"), ObjectMeta: meta(in), Subjects: subjects, RoleRef: ref("Role")})
	}
	return all
}

// rulesOf returns the rules that grant the permissions in `needs`.
func rulesOf(needs []need) Rules {
	r := Rules{}
	for _, n := range needs {
		rule := rbacv1.PolicyRule{Verbs: []string{n.verb}, APIGroups: []string{n.group}, Resources: []string{n.resource}}
		if n.name != "" {
			rule.ResourceNames = []string{n.name}
		}
		if n.url != "" {
			rule = rbacv1.PolicyRule{Verbs: []string{n.verb}, NonResourceURLs: []string{n.url}}
		}
		r.add(n.namespace, rule)
	}
	return r
}

// RulesOptions are the options of a run that are not part of its scenario.
type RulesOptions struct {
	NoLock bool
	// Kubeconfig names a cluster whose resources RunRules discovers. Without it, RunRules knows only the built-in
	// resources of Kubernetes.
	Kubeconfig Kubeconfig
	// Tell receives a line of text when RunRules waits for long.
	Tell func(string)
}

// RunRules returns exactly the rules that a run of the scenario on a user's cluster needs. The names of a run's own
// namespaces are not known before it starts, so the rules for them apply in all namespaces. If nodes may have
// certificates or tokens, the rules are for certificates.
func RunRules(ctx context.Context, s *plan.Plan, o RulesOptions) (Rules, error) {
	t := newTarget("RUN", s)
	var resources discovery.DiscoveryInterface = offline{}
	if o.Kubeconfig.Files != "" {
		client, _, err := t.reachFrom(ctx, o.Kubeconfig, o.Tell)
		if err != nil {
			return nil, err
		}
		resources = client.Discovery()
	}
	needs, err := t.runNeeds(newLookup(resources, s))
	if err != nil {
		return nil, err
	}
	if !o.NoLock {
		needs = append(needs, lockNeeds()...)
	}
	return rulesOf(needs).Compact(), nil
}

// runNeeds returns all permissions that a run needs. Permissions in the run's own namespaces become permissions in the
// whole cluster.
func (t *Target) runNeeds(look *lookup) ([]need, error) {
	needs, err := t.allNeeds(look)
	if err != nil {
		return nil, err
	}
	switch s := t.plan; {
	case !t.ownIdentities():
	case s.Nodes.IdentityKind() == scenario.IdentityToken:
		needs = append(needs, accountNeeds(t.accountNamespace(), t.Namespace, s)...)
	default:
		needs = append(needs, signedNeeds(s)...)
	}
	for i, n := range needs {
		if n.namespace == t.Namespace || n.namespace == t.accountNamespace() {
			needs[i].namespace = ""
		}
	}
	return needs, nil
}
