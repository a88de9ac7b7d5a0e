package job_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/stormglass/stormglass/deploy/deploytest"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
	"github.com/stormglass/stormglass/loadgen/internal/workers/job"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const chartImage = "registry.example.com/stormglass/loadgen:v1"

// chart contains the objects that Helm renders from deploy/charts/stormglass as release "storm" in namespace "load".
type chart struct {
	t     *testing.T
	files map[string]string
	all   []*unstructured.Unstructured
}

func renderChart(t *testing.T, values string) (*chart, error) {
	t.Helper()
	root := deploytest.Root(t)
	cmd := exec.Command(deploytest.Tool(t, deploytest.Chart), filepath.Join(root, "deploy", "charts", "stormglass"), "storm", "load", "3")
	cmd.Stdin = strings.NewReader(values)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.New(stderr.String())
	}
	c := &chart{t: t}
	if err := json.Unmarshal(out, &c.files); err != nil {
		t.Fatal(err)
	}
	for name, text := range c.files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
		for {
			o := &unstructured.Unstructured{}
			err := documents.Decode(&o.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, text)
			}
			if len(o.Object) > 0 {
				c.all = append(c.all, o)
			}
		}
	}
	return c, nil
}

func mustRenderChart(t *testing.T, values string) *chart {
	t.Helper()
	c, err := renderChart(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// get decodes the object with a kind and name. It rejects unknown fields.
func get[T any](c *chart, kind, name string) (object T) {
	c.t.Helper()
	for _, o := range c.all {
		if o.GetKind() == kind && o.GetName() == name {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &object, true); err != nil {
				c.t.Fatalf("%s %s: %v", kind, name, err)
			}
			return object
		}
	}
	c.t.Fatalf("%s %s is missing among %v", kind, name, c.names())
	return object
}

func (c *chart) names() (all []string) {
	for _, o := range c.all {
		all = append(all, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	slices.Sort(all)
	return all
}

// grants returns the permissions in roles, each in the form "namespace verb group resource names urls".
func grants(roles map[string][]rbacv1.PolicyRule) map[string]bool {
	all := map[string]bool{}
	for namespace, rules := range roles {
		for _, r := range rules {
			for _, verb := range r.Verbs {
				all[fmt.Sprint(namespace, verb, r.APIGroups, r.Resources, r.ResourceNames, r.NonResourceURLs)] = true
			}
		}
	}
	return all
}

func (c *chart) rules(name string) map[string][]rbacv1.PolicyRule {
	c.t.Helper()
	all := map[string][]rbacv1.PolicyRule{}
	for _, o := range c.all {
		if o.GetName() != name || o.GetKind() != "ClusterRole" && o.GetKind() != "Role" {
			continue
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			c.t.Fatal(err)
		}
		all[o.GetNamespace()] = role.Rules
	}
	return all
}

// For a built-in scenario, the chart has the same rules, policies, pod and arguments as `loadgen run --render`.
func TestChartIsTheRenderedRun(t *testing.T) {
	s, err := scenario.Read("api-mix", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := job.Coordinator{
		Options: job.Options{Image: chartImage, Namespace: "load", PullSecret: "registry", NodeSelector: "pool=load", Tolerations: "load=yes:NoSchedule,spot", Resources: "cpu=2,memory=1Gi"},
		Workers: 4, Scenario: s,
	}
	if m.Rules, _, err = run.InCluster(t.Context(), run.Options{Scenario: s, Workers: workers.Options{Count: 4, Starter: job.Starter{}}}); err != nil {
		t.Fatal(err)
	}
	c := mustRenderChart(t, `
image: `+chartImage+`
imagePullSecret: registry
scenario: {name: api-mix, set: [nodes.count=5], withoutGates: [leader-changes]}
workers: {count: 4, resources: {cpu: 2, memory: 1Gi}}
nodeSelector: {pool: load}
tolerations: [{key: load, value: "yes", effect: NoSchedule}, {key: spot, operator: Exists}]
remoteWrite: {url: "http://prometheus:9090/api/v1/write", secret: login}
extraArgs: ["--abort-on=expr=up{x='$(y)'},max=1"]
`)
	theirs, err := m.Objects()
	if err != nil {
		t.Fatal(err)
	}
	var want batchv1.Job
	policies := map[string]admissionv1.ValidatingAdmissionPolicySpec{}
	for _, o := range theirs {
		switch o := o.(type) {
		case *batchv1.Job:
			want = *o
		case *admissionv1.ValidatingAdmissionPolicy:
			policies[strings.TrimPrefix(o.Name, "load-api-mix")] = o.Spec
		}
	}
	if got, want := grants(cluster.Rules(c.rules("load-stormglass-storm")).Compact()), grants(m.AllRules()); !reflect.DeepEqual(got, want) {
		t.Errorf("rules\n%v, want\n%v", got, want)
	}
	for suffix, want := range policies {
		want.MatchConditions[0].Expression = strings.Replace(want.MatchConditions[0].Expression, ":stormglass-api-mix'", ":stormglass-storm'", 1)
		if got := get[admissionv1.ValidatingAdmissionPolicy](c, "ValidatingAdmissionPolicy", "load-stormglass-storm"+suffix).Spec; !reflect.DeepEqual(got, want) {
			t.Errorf("policy\n%+v, want\n%+v", got, want)
		}
		get[admissionv1.ValidatingAdmissionPolicyBinding](c, "ValidatingAdmissionPolicyBinding", "load-stormglass-storm"+suffix)
	}

	job := get[batchv1.Job](c, "Job", "stormglass-storm-3")
	if !reflect.DeepEqual(job.Spec.BackoffLimit, want.Spec.BackoffLimit) || !reflect.DeepEqual(job.Spec.Template.Annotations, want.Spec.Template.Annotations) {
		t.Errorf("job\n%+v, want\n%+v", job, want)
	}
	got, pod := job.Spec.Template.Spec, want.Spec.Template.Spec
	main := got.Containers[0]
	wantArgs := slices.Clone(pod.Containers[0].Args)
	wantArgs[1] = "api-mix"
	wantArgs = append(wantArgs, "--set=nodes.count=5", "--without-gate=leader-changes", "--remote-write=http://prometheus:9090/api/v1/write",
		"--remote-write-header-file=/remote-write/headers", "--abort-on=expr=up{x='$$(y)'},max=1")
	if !slices.Equal(main.Args, wantArgs) {
		t.Errorf("args\n%q, want\n%q", main.Args, wantArgs)
	}
	// The chart takes quantities as values, and has no ConfigMap for a built-in scenario.
	for _, p := range []*corev1.PodSpec{&got, &pod} {
		p.Containers[0].Args, p.Containers[0].Resources, p.Containers[0].Env = nil, corev1.ResourceRequirements{}, nil
		p.Containers[0].VolumeMounts = slices.DeleteFunc(p.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "scenario" || m.Name == "remote-write" })
		p.Volumes = slices.DeleteFunc(p.Volumes, func(v corev1.Volume) bool { return v.Name == "scenario" || v.Name == "remote-write" })
		p.ServiceAccountName = ""
	}
	got.Tolerations[0].Operator = corev1.TolerationOpEqual // the default
	for i := range got.Volumes {
		if v := &got.Volumes[i]; v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil {
			v.EmptyDir.SizeLimit = pod.Volumes[i].EmptyDir.SizeLimit // the same quantity, parsed from another form
		}
	}
	if !reflect.DeepEqual(got, pod) {
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(pod)
		t.Errorf("pod\n%s, want\n%s", a, b)
	}
}

// The chart mounts a user's scenario unchanged. Its RBAC rules cover all built-in scenarios, unless the values contain
// rules. It can run the scenario on a schedule.
func TestChartWithAScenarioOfOnesOwn(t *testing.T) {
	const text = "apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: mine\nphases:\n- {name: p, for: 5s}\n"
	indented := "  text: |\n    " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n    ") + "\n"
	c := mustRenderChart(t, "image: "+chartImage+"\nscenario:\n"+indented+"schedule: '0 3 * * *'\nresults: {size: 10Gi}\ncleanup: {enabled: true}\n")
	if m := get[corev1.ConfigMap](c, "ConfigMap", "stormglass-storm"); strings.TrimSpace(m.Data["scenario.yaml"]) != strings.TrimSpace(text) {
		t.Errorf("scenario %q", m.Data)
	}
	cron := get[batchv1.CronJob](c, "CronJob", "stormglass-storm")
	spec := cron.Spec.JobTemplate.Spec
	if cron.Spec.Schedule != "0 3 * * *" || cron.Spec.ConcurrencyPolicy != batchv1.ForbidConcurrent || *spec.BackoffLimit != 0 || spec.Template.Spec.Containers[0].Args[1] != "/scenario/scenario.yaml" {
		t.Errorf("unexpected CronJob %+v", cron.Spec)
	}
	claim := get[corev1.PersistentVolumeClaim](c, "PersistentVolumeClaim", "stormglass-storm")
	mounted := slices.ContainsFunc(spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name
	})
	if !mounted || claim.Annotations["helm.sh/resource-policy"] != "keep" {
		t.Errorf("claim %+v is not kept, or is not mounted: volumes %+v", claim, spec.Template.Spec.Volumes)
	}
	if rules := c.rules("load-stormglass-storm")[""]; len(rules) < 20 {
		t.Errorf("%d rules for all scenarios, want at least 20", len(rules))
	}
	if !strings.Contains(c.files["stormglass/templates/NOTES.txt"], "set rbac.rules") {
		t.Errorf("notes %v", c.files["stormglass/templates/NOTES.txt"])
	}

	// The cleanup CronJob has the rules that `loadgen cleanup render` prints.
	cleanup := get[batchv1.CronJob](c, "CronJob", "stormglass-storm-cleanup").Spec.JobTemplate.Spec.Template.Spec
	theirs := map[string][]rbacv1.PolicyRule{}
	for _, o := range (cluster.CleanupOptions{Image: chartImage, Namespace: "load", Schedule: "@daily"}).Objects() {
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			theirs[""] = o.Rules
		case *rbacv1.Role:
			theirs[o.Namespace] = o.Rules
		case *batchv1.CronJob:
			want := o.Spec.JobTemplate.Spec.Template.Spec
			if !slices.Equal(cleanup.Containers[0].Args, want.Containers[0].Args) || !reflect.DeepEqual(cleanup.SecurityContext, want.SecurityContext) || !reflect.DeepEqual(cleanup.Containers[0].SecurityContext, want.Containers[0].SecurityContext) {
				t.Errorf("pod %+v, want %+v", cleanup, want)
			}
		}
	}
	if got := c.rules("load-stormglass-storm-cleanup"); !reflect.DeepEqual(grants(got), grants(theirs)) {
		t.Errorf("rules %v, want %v", got, theirs)
	}

	c = mustRenderChart(t, "image: "+chartImage+"\nscenario:\n"+indented+`
rbac: {rules: {cluster: [{apiGroups: [""], resources: [pods], verbs: [list]}], namespaces: {default: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}}}
`)
	if got := grants(c.rules("load-stormglass-storm")); len(got) != 2 || !got[fmt.Sprint("", "list", []string{""}, []string{"pods"}, []string(nil), []string(nil))] {
		t.Errorf("rules %v", got)
	}
	c = mustRenderChart(t, "image: "+chartImage+"\nscenario: {name: api-mix}\nrbac: {create: false}\nserviceAccount: {name: mine}\n")
	if len(c.all) != 1 {
		t.Errorf("objects %v", c.names())
	}
}

// The chart refuses invalid values with a hint.
func TestChartRefusesValues(t *testing.T) {
	const image = "image: " + chartImage + "\n"
	for values, want := range map[string]string{
		"scenario: {name: api-mix}": "image: name an image that has loadgen as its entry point",
		image:                       "scenario is missing",
		image + "scenario: {name: api-mix, text: x}":                           "cannot be used together",
		image + "scenario: {name: slow-fsync}":                                 `scenario.name "slow-fsync" is not a built-in scenario for an existing cluster`,
		image + "scenario: {name: api-mix, sets: [a=b]}":                       "sets",
		image + "scenario: {name: api-mix, set: [a]}":                          "does not match pattern",
		image + "scenario: {name: api-mix}\nworkers: 4":                        "workers",
		image + "scenario: {name: api-mix}\nschedule: daily":                   "does not match pattern",
		image + "scenario: {name: api-mix}\nextraArgs: [-f]":                   "does not match pattern",
		image + "scenario: {name: api-mix}\nresults: {claim: a, size: 1Gi}":    "results.claim and results.size cannot be used together",
		image + "scenario: {name: api-mix}\nremoteWrite: {secret: a}":          "remoteWrite.secret needs remoteWrite.url",
		image + "scenario: {name: api-mix}\ntolerations: [{operator: Exists}]": "key",
	} {
		if _, err := renderChart(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("values %s: error %v, want %q", values, err, want)
		}
	}
}
