package controlplane_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/planetest"
)

// whoami returns the user name that an API server sees for a client.
func whoami(t *testing.T, client *kubernetes.Clientset) (string, error) {
	t.Helper()
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authentication.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

// TestServices authenticates the load with each kind of token. It also makes the services fail that API servers call.
func TestServices(t *testing.T) {
	dir := filepath.Join(planetest.Dir(t), "plane")
	config := filepath.Join(t.TempDir(), "config.yaml")
	up := func(apiServer string) control.Cluster {
		t.Helper()
		if err := os.WriteFile(config, []byte("apiServer: {"+apiServer+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var c control.Cluster
		if err := json.Unmarshal([]byte(ok(t, "up", "--detach", "--dir", dir, "--config", config, "--output", "json")), &c); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { run(t, "down", "--dir", dir) })
		return c
	}
	known := func(c control.Cluster, want string) {
		t.Helper()
		if name, err := whoami(t, client(t, c, "loadgen")); name != want || err != nil {
			t.Errorf("user name of the load = %q, want %q: %v", name, want, err)
		}
	}

	known(up("authentication: serviceAccount"), "system:serviceaccount:default:stormglass-loadgen")
	ok(t, "down", "--dir", dir)

	c := up("authentication: bootstrapToken, authorization: abac")
	known(c, "system:bootstrap:sgload")
	if err := client(t, c, "admin").RbacV1().ClusterRoleBindings().Delete(t.Context(), "system:bootstrap:sgload", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "RBAC no longer knows the load", func() bool {
		review := &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{
			User: "system:bootstrap:sgload", ResourceAttributes: &authorization.ResourceAttributes{Verb: "create", Resource: "configmaps", Namespace: "default"},
		}}
		answer, err := client(t, c, "admin").AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed && !strings.Contains(answer.Status.Reason, "RBAC")
	})
	if _, err := client(t, c, "loadgen").CoreV1().ConfigMaps("default").Create(t.Context(), kubeConfigMap("allowed"), metav1.CreateOptions{}); err != nil {
		t.Errorf("the policy file does not allow the load to create a ConfigMap: %v", err)
	}
	ok(t, "down", "--dir", dir)

	c = up("authentication: webhook, authorization: webhook-deny, flags: {authentication-token-webhook-cache-ttl: 1s}")
	known(c, control.LoadUser)
	load, admin := client(t, c, "loadgen"), client(t, c, "admin")
	ok(t, "fault", "service", "--dir", dir, "--component", "authorization-webhook", "--fails")
	if _, err := load.CoreV1().ConfigMaps("default").Create(t.Context(), kubeConfigMap("denied"), metav1.CreateOptions{}); err == nil {
		t.Error("the load could create a ConfigMap although its webhook fails")
	}
	if _, err := admin.CoreV1().ConfigMaps("default").Create(t.Context(), kubeConfigMap("administrator"), metav1.CreateOptions{}); err != nil {
		t.Errorf("an administrator could not create a ConfigMap: %v", err)
	}
	ok(t, "fault", "clear", "--dir", dir, "1")
	ok(t, "fault", "kill", "--dir", dir, "--component", "token-webhook")
	eventually(t, time.Minute, "the token is refused once no cache knows it", func() bool {
		_, err := whoami(t, load)
		return apierrors.IsUnauthorized(err)
	})
	ok(t, "fault", "clear", "--dir", dir, "2")
	eventually(t, time.Minute, "the token is known again", func() bool {
		name, err := whoami(t, load)
		return name == control.LoadUser && err == nil
	})
	ok(t, "down", "--dir", dir)

	c = up("authentication: oidc, encryption: kms, auditWebhook: blocking")
	known(c, control.LoadUser)
	load = client(t, c, "loadgen")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "kept"}, StringData: map[string]string{"password": "swordfish"}}
	if _, err := load.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kept := ok(t, "etcdctl", "--dir", dir, "get", "--print-value-only", "/registry/secrets/default/kept")
	if !strings.HasPrefix(kept, "k8s:enc:kms:v2:stormglass:") || strings.Contains(kept, "swordfish") {
		t.Errorf("etcd stores %.60q, want data that kms-plugin encrypted", kept)
	}
	if asked := serviceRequests(t, c, control.KindAuditWebhook); asked == 0 {
		t.Error("audit-webhook received no event although the load's requests are audited")
	}
	ok(t, "fault", "key-rotation", "--dir", dir, "--component", "kms-plugin", "--component", "oidc-issuer")
	eventually(t, time.Minute, "the new token is taken", func() bool {
		name, err := whoami(t, client(t, c, "loadgen"))
		return name == control.LoadUser && err == nil
	})
	ok(t, "down", "--dir", dir)

	// The restarted plane keeps the new key, and the old key still decrypts.
	c = up("encryption: kms")
	got, err := client(t, c, "admin").CoreV1().Secrets("default").Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil || string(got.Data["password"]) != "swordfish" {
		t.Errorf("Secret after a restart = %q, %v; want swordfish", got.Data, err)
	}
	ok(t, "down", "--dir", dir)
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := run(t, "up", "--detach", "--dir", dir, "--config", config); code == 0 || !strings.Contains(stderr, "encrypted by kms-plugin") {
		t.Errorf("start of a plane that cannot read its Secrets: exit %d, %s", code, stderr)
	}

	notes := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(notes, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stdout := ok(t, "down", "--dir", dir, "--delete")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "notes.txt" || !strings.Contains(stdout, "did not write: notes.txt\n") {
		t.Errorf("after down --delete: entries %v, %v; printed %q", left, err, stdout)
	}
	if _, stderr, code := run(t, "down", "--dir", dir, "--delete"); code != 2 || !strings.Contains(stderr, "not a control plane's directory") {
		t.Errorf("down --delete of another directory: exit %d, want 2: %q", code, stderr)
	}
}

// If the required extender fails, the scheduler places no pod.
func TestSchedulerExtender(t *testing.T) {
	dir := filepath.Join(planetest.Dir(t), "plane")
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("scheduler: {extender: required}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var c control.Cluster
	if err := json.Unmarshal([]byte(ok(t, "up", "--detach", "--dir", dir, "--config", config, "--output", "json")), &c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run(t, "down", "--dir", dir) })
	kube, ctx := client(t, c, "admin").CoreV1(), t.Context()
	room := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")}
	if _, err := kube.Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Status:     corev1.NodeStatus{Allocatable: room, Capacity: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	placed := func(name string) func() bool {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
			Containers:  []corev1.Container{{Name: "pause", Image: "pause"}},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, // the plane runs no kubelet
		}}
		if _, err := kube.Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return func() bool {
			pod, err := kube.Pods("default").Get(ctx, name, metav1.GetOptions{})
			return err == nil && pod.Spec.NodeName != ""
		}
	}
	eventually(t, time.Minute, "the service account is there", func() bool {
		_, err := kube.ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
	eventually(t, time.Minute, "a pod is placed", placed("first"))
	if asked := serviceRequests(t, c, control.KindSchedulerExtender); asked == 0 {
		t.Error("the scheduler did not call the extender")
	}
	ok(t, "fault", "service", "--dir", dir, "--component", control.KindSchedulerExtender, "--fails")
	second := placed("second")
	eventually(t, time.Minute, "the pod says why it waits", func() bool {
		pod, err := kube.Pods("default").Get(ctx, "second", metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulerError
		})
	})
	ok(t, "fault", "clear", "--dir", dir, "1")
	eventually(t, time.Minute, "the pod is placed when the extender answers again", second)

	ok(t, "down", "--dir", dir, "--delete")
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		entries, _ := os.ReadDir(dir)
		t.Errorf("down --delete left %v: entries %v", entries, err)
	}
	if slices.ContainsFunc(pids(c), alive) {
		t.Error("down --delete returned while a process of the plane still ran")
	}
}

// serviceRequests returns the number of requests to a service.
func serviceRequests(t *testing.T, c control.Cluster, kind string) (count int) {
	t.Helper()
	for _, component := range c.Components {
		if component.Kind != kind {
			continue
		}
		scrape := component.Scrape
		status, body, err := do(t, https(t, scrape.CAFile, control.KeyPair{CertFile: scrape.CertFile, KeyFile: scrape.KeyFile}), "GET", scrape.URL, "")
		if err != nil || status != 200 {
			t.Fatalf("GET %s = %d %v, want 200", scrape.URL, status, err)
		}
		for line := range strings.Lines(body) {
			if strings.HasPrefix(line, "stormglass_service_request_duration_seconds_count{") {
				count++
			}
		}
	}
	return count
}
