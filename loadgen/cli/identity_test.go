package cli

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/planetest"
	"github.com/stormglass/stormglass/loadgen/result"
)

const tokenScenario = `apiVersion: stormglass/v1alpha1
kind: Scenario
name: tokens
nodes: {count: 5, kubeProxy: true}
record: {interval: 1s}
phases:
  - {name: rollout, actions: [{kind: deploy, name: web, replicas: 10, service: true}], until: podsReady, within: 1m}
  - {name: update, actions: [{kind: rollingUpdate, name: web}], until: podsReady, within: 2m}
gates:
  - {name: rollout-time, objective: phase-duration, max: 1m, over: [rollout]}
`

// If a cluster denies the approval of certificate requests, or its signer is off, the run finds out before it creates anything;
// with nodes.identity auto, the nodes use tokens, run pods and leave no objects.
func TestNodesWithoutCertificates(t *testing.T) {
	managed := planetest.Start(t, plane.Binary, &control.Config{ControllerManager: control.ControllerManager{
		Flags: control.Flags{"controllers": "*,-certificatesigningrequest-signing-controller"},
	}})
	kubeconfig := managed.Cluster().Kubeconfigs["admin"]
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(file, []byte(tokenScenario), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(dir string, args ...string) *loadgenProcess {
		return startLoadgen(t, append([]string{"run", file, "--out", dir, "--kubeconfig", kubeconfig, "--yes"}, args...)...)
	}

	allow := denyApprovals(t, kubeconfig)
	p := run(filepath.Join(planetest.Dir(t), "refused"), "--set", "nodes.identity=certificate")
	code, said := p.wait(), strings.Join(p.said, "\n")
	const why = "the cluster does not issue client certificates to nodes: approve certificatesigningrequests sg-"
	if code != exitcode.Environment || !strings.Contains(said, why) || !strings.Contains(said, refusal) || strings.Contains(said, "the cluster to create ServiceAccount default") {
		t.Errorf("approvals are denied: exit code %d\n%s", code, said)
	}
	wantNothingLeft(t, kubeconfig)
	allow()

	dir := filepath.Join(planetest.Dir(t), "run")
	p = run(dir)
	const told = "each node has a token of a ServiceAccount and no client certificate (the cluster does not issue client certificates to nodes: no certificate was signed within 15s"
	p.awaitLine(told)
	r := wantPass(t, p, dir)
	if !slices.ContainsFunc(r.Run.Warnings, func(w string) bool { return strings.HasPrefix(w, told) }) {
		t.Errorf("warnings %q", r.Run.Warnings)
	}
	if !slices.ContainsFunc(r.Run.Cluster.Deviations, func(d control.Deviation) bool { return d.Component == "kubelet" && d.Setting == "identity" }) {
		t.Errorf("deviations %+v", r.Run.Cluster.Deviations)
	}
	wantNodes(t, r)
	wantNothingLeft(t, kubeconfig)
}

// wantNodes fails if nodes missed a heartbeat or had requests refused.
func wantNodes(t *testing.T, r result.Result) {
	t.Helper()
	n := r.Measurements.Nodes
	if n == nil || n.PodsStarted < 20 || n.MissedByServer > 0 && !planetest.Starved(r) {
		t.Fatalf("nodes: %+v", n)
	}
	for what, count := range n.Errors {
		if strings.HasSuffix(what, " 401") || strings.HasSuffix(what, " 403") {
			t.Errorf("%d occurrences of %s", count, what)
		}
	}
}

// refusal is the message of a cluster that denies the approval of certificate requests.
const refusal = "no approvals here"

// denyApprovals makes a cluster's admission deny the approval of certificate requests until allow is called. allow returns when
// approvals are no longer denied.
func denyApprovals(t *testing.T, kubeconfig string) (allow func()) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	const name = "no-approvals"
	fail := admissionv1.Fail
	_, err = client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{"certificates.k8s.io"}, APIVersions: []string{"v1"}, Resources: []string{"certificatesigningrequests/approval"}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: refusal}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bindings := client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	if _, err := bindings.Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitApproval(t, client, false)
	return func() {
		if err := bindings.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		awaitApproval(t, client, true)
	}
}

// awaitApproval waits until the cluster's admission allows or denies the approval of certificate requests.
func awaitApproval(t *testing.T, client kubernetes.Interface, want bool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := cert.MakeCSR(key, &pkix.Name{CommonName: "system:node:probe", Organization: []string{"system:nodes"}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	requests := client.CertificatesV1().CertificateSigningRequests()
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		made, err := requests.Create(ctx, &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: text, SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		made.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
		// A conflict means that the controller manager approved it first.
		_, err = requests.UpdateApproval(ctx, made.Name, made, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		denied := err != nil && strings.Contains(err.Error(), refusal)
		if err != nil && !denied && !apierrors.IsConflict(err) {
			return false, err
		}
		return denied != want, requests.Delete(ctx, made.Name, metav1.DeleteOptions{})
	})
	if err != nil {
		t.Fatalf("approvals are not %v: %v", want, err)
	}
}
