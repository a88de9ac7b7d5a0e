package cluster

import (
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// staging returns a Target on a user's cluster, as FromKubeconfig returns it.
func staging() *Target {
	t := newTarget("3f9a", plan.Of(&scenario.Scenario{}))
	t.Cluster = result.Cluster{Name: "staging", Server: "https://10.0.0.1:6443"}
	t.KubernetesVersion = "v1.37.1"
	t.offer(control.ScrapeTarget{Job: apiServerJob, Instance: apiServerJob, URL: "https://10.0.0.1:6443/metrics"})
	return t
}

// planOn returns the Plan of a run on the staging cluster.
func planOn(p *plan.Plan) Plan {
	t := staging()
	t.plan = p
	return t.Plan()
}

func TestPlanListsClusterAndObjects(t *testing.T) {
	s := builtIn(t, "rollout-500")
	want := strings.TrimSpace(`
Run       rollout-500, as run 3f9a
On        cluster staging (https://10.0.0.1:6443), Kubernetes v1.37.1
Creates   namespace stormglass-3f9a with 1 Deployment, 1 Service, 2,500 pods, 200 configmaps
          500 simulated nodes, tainted so that no other pod is scheduled to them, each with a client certificate that the cluster signs
          ServiceAccount stormglass-load for the load, ClusterRole and ClusterRoleBinding stormglass-3f9a
Sends     up to 15.1 requests/s, 0 measured watches
Removes   all of these objects at the end; each is labelled stormglass.dev/run=3f9a
`)
	if got := planOn(s).String(); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
}

func TestPlanNamesWhatActionsCreate(t *testing.T) {
	s := parsed(t, flowControl)
	text := planOn(s).String()
	for _, want := range []string{
		"PriorityLevelConfiguration stormglass-slow, of the whole cluster", "FlowSchema stormglass-slow, of the whole cluster",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the plan does not contain %q:\n%s", want, text)
		}
	}
	for _, n := range adminNeeds("ns", s) {
		text += "\n" + n.String()
	}
	for _, want := range []string{"create flowschemas.flowcontrol.apiserver.k8s.io", "delete prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"} {
		if !strings.Contains(text, want) {
			t.Errorf("the permissions do not include %q:\n%s", want, text)
		}
	}
}

func TestPlanTellsWhatCreatedObjectsAreFor(t *testing.T) {
	s := parsed(t, `
setup:
- {kind: create, object: {apiVersion: v1, kind: ResourceQuota, metadata: {name: few}}}
- {kind: create, count: 2000, object: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: "w{i}.example.com"}}}
- {kind: create, object: {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: owned}}}
phases: [{name: a, for: 1s}]
`)
	text := planOn(s).String()
	for _, want := range []string{
		"ResourceQuota few, in each namespace of the run", "2,000 CustomResourceDefinitions w{i}.example.com, of the whole cluster",
		"ValidatingAdmissionPolicy owned, for the run's namespaces only",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the plan does not contain %q:\n%s", want, text)
		}
	}
	text = ""
	for _, n := range adminNeeds("ns", s) {
		text += n.String() + "\n"
	}
	for _, want := range []string{"create resourcequotas in namespace ns", "delete customresourcedefinitions.apiextensions.k8s.io", "list validatingadmissionpolicies"} {
		if !strings.Contains(text, want) {
			t.Errorf("the permissions do not include %q:\n%s", want, text)
		}
	}
}

// flowControl contains the phases of a scenario that creates a priority level and a flow schema.
const flowControl = `
phases:
- name: a
  for: 1s
  actions:
  - kind: create
    object:
      apiVersion: flowcontrol.apiserver.k8s.io/v1
      kind: PriorityLevelConfiguration
      metadata: {name: stormglass-slow}
      spec: {type: Limited, limited: {nominalConcurrencyShares: 1, limitResponse: {type: Reject}}}
  - kind: create
    object:
      apiVersion: flowcontrol.apiserver.k8s.io/v1
      kind: FlowSchema
      metadata: {name: stormglass-slow}
      spec: {priorityLevelConfiguration: {name: stormglass-slow}}
`

func TestPlanCountsAtMostAtATime(t *testing.T) {
	s := parsed(t, `
nodes: {count: 1, fidelity: shared}
background: [{kind: requests, verb: get, rate: 1/s}]
phases:
- name: a
  for: 1s
  actions: [{kind: deploy, name: x, replicas: 10}, {kind: deploy, name: y, replicas: 5}]
  load: [{name: w, kind: watches, count: 100, rate: 50/s, hold: true}, {name: v, kind: watches, count: 30, rate: 50/s}]
- name: b
  for: 1s
  actions: [{kind: delete, name: y}, {kind: rollingUpdate, name: x, maxSurge: "4"}]
  load: [{name: u, kind: watches, count: 10, rate: 50/s}, {name: c, kind: changes, watches: w, rate: 2/s}]
`)
	p := planOn(s)
	if p.Pods != 15 || p.Watches != 130 || p.Rate != 3 || p.Workloads["Deployment"] != 2 || p.Companions["Service"] != 0 {
		t.Errorf("%+v", p)
	}
	if text := p.String(); !strings.Contains(text, "1 simulated node, ") || !strings.Contains(text, "all with the identity of the load") {
		t.Errorf("\n%s", text)
	}
}

// The Deployment controller rounds a percentage of maxSurge up, for each Deployment.
func TestPlanRoundsSurgeUp(t *testing.T) {
	s := parsed(t, `
nodes: {count: 1, fidelity: shared}
phases:
- name: a
  for: 1s
  actions: [{kind: deploy, name: x, replicas: 1}, {kind: deploy, name: y, replicas: 5}]
- name: b
  for: 1s
  actions: [{kind: rollingUpdate, name: x, maxSurge: 25%}, {kind: rollingUpdate, name: y, maxSurge: 25%}]
`)
	if p := planOn(s); p.Pods != 6+1+2 {
		t.Errorf("at most %d pods at a time", p.Pods)
	}
}

func TestAddTargets(t *testing.T) {
	target := staging()
	token := file(t, "token", "secret")
	good := file(t, "targets.yaml", `targets:
- {job: etcd, url: "http://127.0.0.1:2381/metrics"}
- {job: kube-scheduler, instance: scheduler-a, url: "https://127.0.0.1:10259/metrics", tokenFile: `+token+`, insecureSkipVerify: true}
`)
	if err := target.AddTargets(good); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(target.Jobs(), " "); got != "etcd kube-apiserver kube-scheduler" {
		t.Errorf("jobs: %s", got)
	}
	if got := strings.Join(target.Cluster.Targets, " "); got != "kube-apiserver 127.0.0.1:2381 scheduler-a" {
		t.Errorf("instances: %s", got)
	}
	each := file(t, "each.yaml", `targets: [{job: kube-apiserver, instance: a, url: "https://127.0.0.1:1/metrics"}, {job: kube-apiserver, instance: b, url: "https://127.0.0.1:2/metrics"}]`)
	target = staging()
	if err := target.AddTargets(each); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(target.Cluster.Targets, " "); got != "a b" {
		t.Errorf("the targets include the common address of the API servers: %s", got)
	}
}

func TestBadTargetsNameFileLineAndField(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown field": {"targets:\n- {job: etcd, uri: x}", `targets.yaml:2: targets[0].uri: unknown field "uri" (did you mean "url"?)`},
		"no job":        {"targets:\n- {url: https://h/metrics}", "targets.yaml:2: targets[0].job: is missing"},
		"no URL":        {"targets:\n- {job: etcd, url: 'h:2379'}", `targets.yaml:2: targets[0].url: "h:2379" is not an HTTP or HTTPS URL`},
		"half a pair":   {"targets:\n- {job: etcd, url: https://h/metrics, certFile: c}", "certFile and keyFile require each other"},
		"no such file":  {"targets:\n- {job: etcd, url: https://h/metrics, caFile: none.crt}", "targets[0].caFile: cannot read none.crt: no such file"},
		"twice":         {"targets:\n- {job: etcd, url: http://h/metrics}\n- {job: etcd, url: http://h/metrics}", `targets.yaml:3: targets[1].instance: "h" appears twice`},
		"nothing":       {"targets: []", "no targets"},
	} {
		t.Run(name, func(t *testing.T) {
			err := staging().AddTargets(file(t, "targets.yaml", c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
	if err := staging().AddTargets("none.yaml"); err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("got %v", err)
	}
}
