package cluster

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Compact merges rules for the same objects, and removes what a wider rule already grants.
func TestCompactRules(t *testing.T) {
	r := Rules{}
	r.Allow("", "list", "", "pods")
	r.Allow("", "delete list", "", "pods")
	r.Allow("load", "list watch", "", "pods")
	r.Allow("load", "delete", "", "pods")
	r.Allow("load", "get", "", "configmaps", "kube-root-ca.crt")
	r.Allow("default", "get", "", "configmaps")
	r.Allow("default", "get", "", "configmaps", "kube-root-ca.crt")
	r.add("", rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}})
	want := Rules{}
	want.Allow("", "list delete", "", "pods")
	want.add("", rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}})
	want.Allow("load", "watch", "", "pods")
	want.Allow("load", "get", "", "configmaps", "kube-root-ca.crt")
	want.Allow("default", "get", "", "configmaps")
	if got := r.Compact(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// The rules of every built-in scenario grant the permissions that the run checks, with the same object names, and grant
// nothing on all resources.
func TestRulesOfBuiltInScenarios(t *testing.T) {
	for _, name := range scenario.Names() {
		s := builtIn(t, name)
		granted, err := RunRules(t.Context(), s, RulesOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		of := newTarget("RUN", s)
		needs, err := of.allNeeds(newLookup(offline{}, s))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range append(needs, lockNeeds()...) {
			in := n.namespace
			if in == of.Namespace {
				in = ""
			}
			if !slices.ContainsFunc(slices.Concat(granted[in], granted[""]), func(r rbacv1.PolicyRule) bool {
				return slices.Contains(r.Verbs, n.verb) && (n.url != "" && slices.Contains(r.NonResourceURLs, n.url) ||
					n.url == "" && slices.Equal(r.APIGroups, []string{n.group}) && slices.Equal(r.Resources, []string{n.resource}) && (len(r.ResourceNames) == 0 || slices.Equal(r.ResourceNames, []string{n.name})))
			}) {
				t.Errorf("%s: the rules do not grant %s", name, n)
			}
		}
		for in, all := range granted {
			if in == "" || in == leaseNamespace || in == lockNamespace || in == "kube-system" {
				for _, r := range all {
					if strings.Contains(strings.Join(slices.Concat(r.Verbs, r.APIGroups, r.Resources), " "), "*") {
						t.Errorf("%s: %v", name, r)
					}
				}
				continue
			}
			t.Errorf("%s: unexpected rules in namespace %s", name, in)
		}
	}
}

// If nodes may have certificates, their rules do not include tokens or Secrets of others.
func TestRulesOfNodes(t *testing.T) {
	has := func(granted Rules, resource string) bool {
		return slices.ContainsFunc(granted[""], func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, resource) })
	}
	for identity, want := range map[string]struct{ requests, secrets bool }{
		scenario.IdentityAuto: {true, false}, scenario.IdentityCertificate: {true, false}, scenario.IdentityToken: {false, true},
	} {
		s := builtIn(t, "rollout-500", "nodes.identity="+identity)
		granted, err := RunRules(t.Context(), s, RulesOptions{NoLock: true})
		if err != nil {
			t.Fatal(err)
		}
		if has(granted, "certificatesigningrequests") != want.requests || has(granted, "secrets") != want.secrets {
			t.Errorf("%s: %v", identity, granted)
		}
		if granted[lockNamespace] != nil && slices.ContainsFunc(granted[lockNamespace], func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "leases") }) {
			t.Errorf("%s: NoLock is set, but the rules grant access to Leases: %v", identity, granted)
		}
	}
}
