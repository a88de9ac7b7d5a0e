package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/planetest"
)

// inCluster holds the objects that --render printed, in a cluster. The Job is not created: it runs on this machine as its
// ServiceAccount.
type inCluster struct {
	t          *testing.T
	admin      *rest.Config
	client     kubernetes.Interface
	job        *batchv1.Job
	dir        string // with the scenario
	kubeconfig string // of the ServiceAccount
}

func applyRendered(t *testing.T, kubeconfig string, args ...string) *inCluster {
	t.Helper()
	c := &inCluster{t: t, dir: t.TempDir()}
	var err error
	if c.admin, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		t.Fatal(err)
	}
	c.admin.QPS = -1
	if c.client, err = kubernetes.NewForConfig(c.admin); err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.client.Discovery()))
	resources, err := dynamic.NewForConfig(c.admin)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects(t, rendered(t, append(args, "--render")...)) {
		mapping, err := mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		if err != nil {
			t.Fatal(err)
		}
		at := resources.Resource(mapping.Resource).Namespace(o.GetNamespace())
		options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
		switch o.GetKind() {
		case "ConfigMap":
			var m corev1.ConfigMap
			convert(t, o, &m)
			for name, text := range m.Data {
				if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		case "Job":
			c.job = new(batchv1.Job)
			convert(t, o, c.job)
			options.DryRun = []string{metav1.DryRunAll}
		}
		if _, err := at.Create(t.Context(), o, options); err != nil {
			t.Fatalf("create %s %s: %v", o.GetKind(), o.GetName(), err)
		}
		if o.GetKind() != "Job" {
			t.Cleanup(func() { c.remove(at, o.GetName()) })
		}
	}
	c.kubeconfig = c.login(filepath.Join(c.dir, "kubeconfig"))
	return c
}

// remove deletes an object and waits until it is gone, because another test creates an object with the same name.
func (c *inCluster) remove(at dynamic.ResourceInterface, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := at.Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		c.t.Errorf("%s is left: %v", name, err)
	}
}

func objects(t *testing.T, text string) (all []*unstructured.Unstructured) {
	t.Helper()
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := documents.Decode(o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
}

func convert(t *testing.T, from *unstructured.Unstructured, to any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(from.Object, to, true); err != nil {
		t.Fatal(err)
	}
}

// login writes a kubeconfig of the Job's ServiceAccount.
func (c *inCluster) login(file string) string {
	c.t.Helper()
	token, err := c.client.CoreV1().ServiceAccounts(c.job.Namespace).CreateToken(c.t.Context(), c.job.Spec.Template.Spec.ServiceAccountName, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "pod"
	config.Contexts["pod"] = &clientcmdapi.Context{Cluster: "pod", AuthInfo: "pod"}
	config.Clusters["pod"] = &clientcmdapi.Cluster{Server: c.admin.Host, CertificateAuthority: c.admin.CAFile, CertificateAuthorityData: c.admin.CAData}
	config.AuthInfos["pod"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		c.t.Fatal(err)
	}
	return file
}

// start starts the Job's run on this machine, as its ServiceAccount.
func (c *inCluster) start(out string, more ...string) *loadgenProcess {
	c.t.Helper()
	var args []string
	for _, arg := range c.job.Spec.Template.Spec.Containers[0].Args {
		switch {
		case arg == "--current-cluster":
			args = append(args, "--kubeconfig", c.kubeconfig)
		case strings.HasPrefix(arg, "--summary="):
			args = append(args, "--summary="+filepath.Join(c.dir, "summary.md"))
		default:
			args = append(args, strings.NewReplacer("/scenario/", c.dir+"/", "$(POD_IP)", "127.0.0.1", "=:7443", "=127.0.0.1:0").Replace(arg))
		}
	}
	return startLoadgen(c.t, append(append(args, "--out", out), more...)...)
}

// user is a client of the Job's ServiceAccount.
func (c *inCluster) user() kubernetes.Interface {
	c.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		c.t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

// take removes a permission from the rules of the run, and returns when the removal has taken effect.
func (c *inCluster) take(of authorizationv1.ResourceAttributes) {
	c.t.Helper()
	resource := of.Resource
	if of.Subresource != "" {
		resource += "/" + of.Subresource
	}
	drop := func(rules []rbacv1.PolicyRule) (left []rbacv1.PolicyRule) {
		for _, r := range rules {
			if slices.Contains(r.Resources, resource) {
				r.Verbs = slices.DeleteFunc(r.Verbs, func(v string) bool { return v == of.Verb })
			}
			if len(r.Verbs) > 0 {
				left = append(left, r)
			}
		}
		return left
	}
	ctx, rbac, name := c.t.Context(), c.client.RbacV1(), "stormglass-run-mini"
	var err error
	if of.Namespace == "" {
		var role *rbacv1.ClusterRole
		if role, err = rbac.ClusterRoles().Get(ctx, name, metav1.GetOptions{}); err == nil {
			role.Rules = drop(role.Rules)
			_, err = rbac.ClusterRoles().Update(ctx, role, metav1.UpdateOptions{})
		}
	} else {
		var role *rbacv1.Role
		if role, err = rbac.Roles(of.Namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
			role.Rules = drop(role.Rules)
			_, err = rbac.Roles(of.Namespace).Update(ctx, role, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		c.t.Fatal(err)
	}
	reviews := c.user().AuthorizationV1().SelfSubjectAccessReviews()
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		answer, err := reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &of}}, metav1.CreateOptions{})
		return err == nil && !answer.Status.Allowed, err
	})
	if err != nil {
		c.t.Fatalf("%+v is still allowed: %v", of, err)
	}
}

const inClusterLoad = `apiVersion: stormglass/v1alpha1
kind: Scenario
name: mini
nodes: {count: 5, identity: certificate}
record: {interval: 1s}
phases:
- {name: rollout, actions: [{kind: deploy, name: web, replicas: 10, service: true}], until: podsReady, within: 1m}
- name: fan-out
  for: 3s
  load:
  - {kind: watches, name: crowd, count: 10, rate: 100/s}
  - {kind: changes, name: news, watches: crowd, rate: 10/s}
  - name: team
    kind: requests
    rate: 20/s
    objects: 5
    namespaces: 2
    tenants: [{name: blue}]
    mix:
    - {verb: get}
    - {verb: list, limit: 2, allPages: true}
    - {verb: apply, resource: widgets.load.stormglass.dev}
- {name: update, actions: [{kind: rollingUpdate, name: web}], until: podsReady, within: 2m}
gates:
- {name: request-errors, objective: request-errors, max: 0%}
- {name: lost, objective: watch-lost, max: 0, over: [fan-out]}
`

// The cluster accepts the objects that --render prints. Their ServiceAccount has the permissions for the run to pass, and
// the run leaves nothing. If one permission is missing, the run ends with 4 and names it, before it creates anything.
func TestRunAsTheRenderedServiceAccount(t *testing.T) {
	useSharedPlane(t)
	kubeconfig := plane.Cluster().Kubeconfigs["admin"]
	file := filepath.Join(t.TempDir(), "mini.yaml")
	if err := os.WriteFile(file, []byte(inClusterLoad), 0o600); err != nil {
		t.Fatal(err)
	}
	c := applyRendered(t, kubeconfig, "run", file, "--image", "registry.example.com/loadgen:v1")

	// Pod Security enforces its profile "restricted" in the namespace.
	template := c.job.Spec.Template
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name = "try"
	if _, err := c.client.CoreV1().Pods(c.job.Namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error(err)
	}

	dir := filepath.Join(planetest.Dir(t), "run")
	wantPass(t, c.start(dir), dir)
	wantNothingLeft(t, kubeconfig)
	if text, err := os.ReadFile(filepath.Join(c.dir, "summary.md")); err != nil || !bytes.Contains(text, []byte("mini")) {
		t.Errorf("summary: %v\n%s", err, text)
	}

	c.wantConfined()

	for _, missing := range []struct {
		of   authorizationv1.ResourceAttributes
		want string
	}{
		{authorizationv1.ResourceAttributes{Namespace: "default", Verb: "create", Group: "coordination.k8s.io", Resource: "leases"}, "cannot take its lock"},
		{authorizationv1.ResourceAttributes{Verb: "approve", Group: "certificates.k8s.io", Resource: "signers", Name: "kubernetes.io/kube-apiserver-client-kubelet"},
			"approve signers.certificates.k8s.io kubernetes.io/kube-apiserver-client-kubelet"},
		{authorizationv1.ResourceAttributes{Verb: "create", Resource: "serviceaccounts", Subresource: "token"}, "lacks permission to create serviceaccounts/token in namespace stormglass-"},
	} {
		c.take(missing.of)
		p := c.start(filepath.Join(t.TempDir(), "run"))
		if code, said := p.wait(), strings.Join(p.said, "\n"); code != exitcode.Environment || !strings.Contains(said, missing.want) {
			t.Errorf("without %+v: exit code %d\n%s", missing.of, code, said)
		}
		wantNothingLeft(t, kubeconfig)
	}
}

// wantConfined fails if the run's ServiceAccount may write outside of the namespaces and nodes of runs, which its rules alone allow.
func (c *inCluster) wantConfined() {
	c.t.Helper()
	ctx, core := c.t.Context(), c.user().CoreV1()
	dry := []string{metav1.DryRunAll}
	label := []byte(`{"metadata":{"labels":{"stormglass.dev/run":"mine"}}}`)
	for what, do := range map[string]func() error{
		"a token of another's account": func() error {
			_, err := core.ServiceAccounts("kube-system").CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
			return err
		},
		"a ConfigMap of another's namespace": func() error {
			_, err := core.ConfigMaps("kube-system").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "try"}}, metav1.CreateOptions{DryRun: dry})
			return err
		},
		"the label of another's namespace": func() error {
			_, err := core.Namespaces().Patch(ctx, "kube-system", types.MergePatchType, label, metav1.PatchOptions{DryRun: dry})
			return err
		},
		"the end of another's namespace": func() error {
			return core.Namespaces().Delete(ctx, "kube-node-lease", metav1.DeleteOptions{DryRun: dry})
		},
		"a namespace of another name": func() error {
			_, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "another"}}, metav1.CreateOptions{DryRun: dry})
			return err
		},
		"the end of another's node": func() error {
			return core.Nodes().Delete(ctx, "control-plane", metav1.DeleteOptions{DryRun: dry})
		},
	} {
		if err := do(); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "this run ") {
			c.t.Errorf("%s: %v", what, err)
		}
	}
}

// The permissions of the run are enough to create, follow and remove its workers.
func TestStartWorkersAsTheRenderedServiceAccount(t *testing.T) {
	useSharedPlane(t)
	kubeconfig := plane.Cluster().Kubeconfigs["admin"]
	c := applyRendered(t, kubeconfig, "run", dividedScenario(t), "--workers", "2", "--image", "registry.example.com/loadgen:v1", "--workers-within", "3s")
	p := c.start(filepath.Join(planetest.Dir(t), "run"))
	code, said := p.wait(), strings.Join(p.said, "\n")
	if code != exitcode.Environment || !strings.Contains(said, "workers 0, 1 of 2 did not join at 127.0.0.1:") || strings.Contains(said, "forbidden") {
		t.Errorf("exit code %d\n%s", code, said)
	}
	left, err := c.client.BatchV1().Jobs(c.job.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("jobs are left: %v %v", left, err)
	}
	wantNothingLeft(t, kubeconfig)
}
