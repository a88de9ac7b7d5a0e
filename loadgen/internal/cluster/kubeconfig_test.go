package cluster

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
)

// For each problem with a user's cluster, the error is one line that names the problem and says what to do.
func TestBadInputIsOneLineWithAHint(t *testing.T) {
	s := newStub(t)
	other := newStub(t)
	otherCA, _, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ca := authority(s.Server)
	const refused = "https://127.0.0.1:1"
	poor := newStub(t)
	poor.denies = func(what string) bool {
		return what == "create namespaces" || what == "update certificatesigningrequests/approval" || what == "get /metrics"
	}
	for _, c := range []struct {
		name, path, context string
		want                []string
	}{
		{"no file", filepath.Join(t.TempDir(), "none"), "", []string{"none: no such file or directory (--kubeconfig"}},
		{"a directory", t.TempDir(), "", []string{"is a directory"}},
		{"not YAML", file(t, "k", "clusters: ["), "", []string{"kubeconfig", "(is it a kubeconfig?)"}},
		{"empty", file(t, "k", " \n"), "", []string{"the file is empty (--kubeconfig takes"}},
		{"no kubeconfig", file(t, "k", "apiVersion: v1\nkind: Config\n"), "", []string{"it has no contexts (is it a kubeconfig?)"}},
		{"no such context", s.kubeconfig(t, goodToken), "there", []string{`no context "there" (it has: broken, here)`}},
		{"context without cluster", s.kubeconfig(t, goodToken), "broken", []string{`context "broken"`, `"nowhere"`}},
		{"connection refused", kubeconfig(t, refused, ca, goodToken), "", []string{"cluster staging", refused, "connection refused (is the cluster up"}},
		{"another cluster's CA", kubeconfig(t, s.URL, otherCA, goodToken), "", []string{"the kubeconfig does not trust the authority"}},
		{"expired credentials", other.kubeconfig(t, "old"), "", []string{"401 Unauthorized", "have they expired?"}},
		{"no permission", poor.kubeconfig(t, goodToken), "", []string{
			"cluster staging: alice lacks permission to create namespaces; get /metrics (",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := FromKubeconfig(t.Context(), Kubeconfig{Files: c.path, ConfigOverrides: clientcmd.ConfigOverrides{CurrentContext: c.context}}, "r1", parsed(t, "nodes: {count: 1}\n"+quiet), func(string) {})
			if err == nil {
				t.Fatal("accepted")
			}
			t.Log(err)
			if strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("the error has more than one line: %q", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q, want %q", err, want)
				}
			}
		})
	}
}

func TestFromKubeconfigReportsDifferences(t *testing.T) {
	s := newStub(t)
	target, err := FromKubeconfig(t.Context(), Kubeconfig{Files: s.kubeconfig(t, goodToken)}, "r1", parsed(t, `
controlPlane:
  controllerManager: {qps: 100, flags: {node-eviction-rate: "5"}}
  scheduler: {percentageOfNodesToScore: 10}
`+quiet), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if target.Cluster.Name != "staging" || target.Cluster.Server != s.URL || target.Cluster.Bundled || target.KubernetesVersion != "v1.37.1" {
		t.Errorf("unexpected cluster %+v or version %s", target.Cluster, target.KubernetesVersion)
	}
	if target.Load != nil {
		t.Error("Load is set before Setup: the load would run as the user of the kubeconfig")
	}
	notes := strings.Join(target.Notes, "\n")
	for _, want := range []string{
		"not applied to your cluster: kube-controller-manager --kube-api-qps=100, kube-controller-manager --node-eviction-rate=5, kube-scheduler percentageOfNodesToScore=10",
		"2 API servers share the address " + s.URL,
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not contain %q:\n%s", want, notes)
		}
	}
	if jobs := target.Jobs(); len(jobs) != 1 || jobs[0] != "kube-apiserver" {
		t.Errorf("Jobs() = %v, want only kube-apiserver", jobs)
	}
}

// A load needs permissions where the objects that it reads are: in the run's namespace or, for cluster-scoped objects,
// in the whole cluster.
func TestNeedsFollowTheScenario(t *testing.T) {
	client := fake.NewClientset()
	client.Resources = []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "nodes", Kind: "Node"}, {Name: "endpoints", Kind: "Endpoints", Namespaced: true},
		}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "daemonsets", Kind: "DaemonSet", Namespaced: true}}},
		{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "databases", Kind: "Database", Namespaced: true}}},
	}
	s := parsed(t, `
background:
- {name: a, kind: requests, verb: list, resource: endpoints, rate: 1/s}
- {name: b, kind: requests, verb: get, resource: endpoints, rate: 1/s}
- {name: c, kind: requests, verb: list, resource: nodes, rate: 1/s}
- {name: d, kind: requests, verb: list, resource: daemonsets.apps, rate: 1/s}
- {name: e, kind: requests, verb: list, resource: databases.example.com, rate: 1/s}
`+quiet)
	needs, err := requestNeeds(newLookup(client.Discovery(), s), "ns")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range needs {
		got = append(got, n.String())
	}
	want := "list endpoints in namespace ns; get endpoints in namespace ns; list nodes; list daemonsets.apps in namespace ns; list databases.example.com in namespace ns"
	if text := strings.Join(got, "; "); text != want {
		t.Errorf("\n got %s\nwant %s", text, want)
	}
	s.Background[0].Resource = "unicorns.example.com"
	const lacks = "it has no resource \"unicorns.example.com\" (`kubectl api-resources` lists its resources; to add a custom resource, create its CustomResourceDefinition in setup or objects)"
	if _, err := requestNeeds(newLookup(client.Discovery(), s), "ns"); err == nil || err.Error() != lacks {
		t.Errorf("error for an unknown resource: %v", err)
	}
}

// The load may impersonate only the tenants, by name. The permissions include the writes of a load, even to a custom
// resource that the run creates.
func TestNeedsOfTenantsAndWrites(t *testing.T) {
	s := parsed(t, `
background:
- {name: a, kind: requests, verb: apply, resource: widgets.load.stormglass.dev, rate: 1/s, tenants: [{name: blue, groups: [team]}]}
- {name: b, kind: requests, verb: list, resource: configmaps, scope: cluster, rate: 1/s}
`+quiet)
	needs, err := requestNeeds(newLookup(fake.NewClientset().Discovery(), s), "ns")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range needs {
		got = append(got, n.String())
	}
	want := []string{
		"patch widgets.load.stormglass.dev in namespace ns", "create widgets.load.stormglass.dev in namespace ns",
		"impersonate users stormglass:tenant:blue", "impersonate groups stormglass:tenants", "impersonate groups team",
		"list configmaps",
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	for _, rule := range rulesOf(needs)[""] {
		if slices.Contains(rule.Verbs, "impersonate") && len(rule.ResourceNames) != 1 {
			t.Errorf("the rule permits the impersonation of any user: %+v", rule)
		}
	}
}

func TestWritesAreGrantedOnlyInRunNamespace(t *testing.T) {
	needs, err := loadNeeds(newLookup(fake.NewClientset().Discovery(), parsed(t, quiet)), "ns")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rulesOf(needs)[""] {
		for _, verb := range rule.Verbs {
			if verb != "get" && verb != "list" && verb != "watch" {
				t.Errorf("the ClusterRole grants %s on %v", verb, rule.Resources)
			}
		}
	}
	if len(rulesOf(needs)["ns"]) < 4 {
		t.Errorf("the Role in the run's namespace has fewer than 4 rules: %v", rulesOf(needs)["ns"])
	}
}
