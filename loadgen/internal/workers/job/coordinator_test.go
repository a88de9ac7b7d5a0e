package job

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const small = `apiVersion: stormglass/v1alpha1
kind: Scenario
name: small
nodes: {count: 3000}
phases:
- name: p
  for: 5s
  load:
  - {kind: watches, name: crowd, count: 30000, rate: 1000/s}
  - {kind: requests, name: reads, verb: get, shape: {kind: replay, file: times.txt}}
`

func smallScenario(t *testing.T, times string) *scenario.Scenario {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"small.yaml": small, "times.txt": times} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := scenario.Read(filepath.Join(dir, "small.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// find returns the only object of type T.
func find[T any](t *testing.T, c Coordinator) (found T) {
	t.Helper()
	all, err := c.Objects()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, o := range all {
		if o, ok := o.(T); ok {
			found, n = o, n+1
		}
	}
	if n != 1 {
		t.Fatalf("%d objects of type %T, want 1", n, found)
	}
	return found
}

// The ConfigMap contains the scenario and the files that it refers to, so that the pod can read the scenario where it
// is mounted.
func TestCoordinatorHasTheScenario(t *testing.T) {
	c := Coordinator{Options: Options{Image: "loadgen:v1"}, Scenario: smallScenario(t, "0.5\n1\n")}
	m := find[*corev1.ConfigMap](t, c)
	dir := t.TempDir()
	for name, text := range m.Data {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := scenario.Read(filepath.Join(dir, scenarioFile), nil)
	if err != nil || len(s.Loads()) != 2 || len(s.Loads()[1].Shape.Times) != 2 {
		t.Errorf("%v: %+v", err, m.Data)
	}
}

func TestCoordinatorRefusesWhatNoConfigMapTakes(t *testing.T) {
	c := Coordinator{Options: Options{Image: "loadgen:v1"}, Scenario: smallScenario(t, strings.Repeat("0.5000000001\n", 90_000))}
	if _, err := c.YAML(); err == nil || !strings.Contains(err.Error(), "a ConfigMap can have at most 1048576") {
		t.Error(err)
	}
}

// The Job starts a run only once, and its pod satisfies the Pod Security profile "restricted".
func TestCoordinatorPod(t *testing.T) {
	c := Coordinator{
		Options: Options{Image: "loadgen:v1", Namespace: "load", PullSecret: "registry", NodeSelector: "pool=load", Tolerations: "load=yes:NoSchedule,spot", Resources: "cpu=2"},
		Workers: 4, Scenario: smallScenario(t, "1\n"), Args: []string{"--abort-on=expr=up{x='$(y)'},max=1"}, Claim: "runs",
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	j := find[*batchv1.Job](t, c)
	pod := j.Spec.Template.Spec
	run := pod.Containers[0]
	wantArgs := []string{
		"run", "/scenario/scenario.yaml", "--current-cluster", "--yes", "--summary=/dev/termination-log",
		"--workers=4", "--image=loadgen:v1", "--workers-namespace=load", "--workers-listen=:7443", "--workers-advertise=$(POD_IP)",
		"--image-pull-secret=registry", "--workers-resources=cpu=2", "--workers-node-selector=pool=load", "--workers-tolerations=load=yes:NoSchedule,spot",
		"--abort-on=expr=up{x='$$(y)'},max=1",
	}
	if !slices.Equal(run.Args, wantArgs) {
		t.Errorf("args\n%q, want\n%q", run.Args, wantArgs)
	}
	if *j.Spec.BackoffLimit != 0 || pod.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("Kubernetes could repeat the run: %+v", j.Spec)
	}
	if s := run.SecurityContext; !*pod.SecurityContext.RunAsNonRoot || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem {
		t.Errorf("the security contexts do not meet the profile restricted: %+v, %+v", pod.SecurityContext, s)
	}
	if pod.NodeSelector["pool"] != "load" || len(pod.Tolerations) != 2 || pod.Tolerations[1].Operator != corev1.TolerationOpExists || pod.ImagePullSecrets[0].Name != "registry" {
		t.Errorf("wrong node selector, tolerations or pull secret: %+v", pod)
	}
	if memory := run.Resources.Requests.Memory().String(); memory != "3Gi" { // the watches are in the workers
		t.Errorf("memory %s", memory)
	}
	claimed := slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "runs"
	})
	if !claimed {
		t.Errorf("volumes %+v", pod.Volumes)
	}
	c.Workers = 0
	run = find[*batchv1.Job](t, c).Spec.Template.Spec.Containers[0]
	if memory := run.Resources.Requests.Memory().String(); memory != "5Gi" || len(run.Args) != 6 {
		t.Errorf("without workers: memory %s, want 5Gi; args %q", memory, run.Args)
	}
}

// Workers run in the run's namespace. To start them, the run needs no other permissions in the cluster, except to read
// the address of its API server.
func TestCoordinatorRules(t *testing.T) {
	c := Coordinator{Options: Options{Image: "loadgen:v1"}, Workers: 2, Scenario: smallScenario(t, "1\n")}
	c.Rules = cluster.Rules{}
	c.Rules.Allow("", "list delete", "", "pods")
	all := c.AllRules()
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if len(all[""]) != 1 || len(all["default"]) != 1 || all["default"][0].ResourceNames[0] != "kubernetes" || len(all["stormglass-run"]) == 0 {
		t.Errorf("unexpected rules %s", text)
	}
	if strings.Contains(string(text), "portforward") {
		t.Errorf("the rules allow portforward, which no worker needs: %s", text)
	}
	role := find[*rbacv1.ClusterRole](t, c)
	if role.Name != "stormglass-run-small" || slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Verbs, "*") }) {
		t.Errorf("role %+v", role)
	}
}

func TestTolerationsAreTaints(t *testing.T) {
	for text, want := range map[string]string{
		"a=b:NoSchedule,c:NoExecute,d": "",
		"a=b:Never":                    `"a=b:Never" is not a taint`,
		"=b":                           `"=b" is not a taint`,
		"a,":                           `"" is not a taint`,
		"a=b c":                        `"a=b c" is not a taint`,
	} {
		err := Options{Image: "loadgen:v1", Tolerations: text}.Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
