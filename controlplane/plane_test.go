package controlplane_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/planetest"
)

// shared is a plane that all tests may read and write to, but not stop.
var shared planetest.Plane

func TestMain(m *testing.M) { os.Exit(planetest.Main(m, &shared)) }

func TestPrograms(t *testing.T) { planetest.Programs(t) }

// run runs the controlplane program and returns its output and exit code.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return runEnv(t, nil, "", args...)
}

func runEnv(t *testing.T, env []string, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), programWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, shared.Binary, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the exit code shows the error
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// programWithin is the time limit of one run of the program. On a busy machine, the start of a plane with three members
// takes minutes.
const programWithin = 5 * time.Minute

// ok runs the program, which must succeed, and returns its stdout.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, code := run(t, args...)
	if code != 0 {
		t.Fatalf("controlplane %s: exit %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

// client returns a client of the API server that authenticates as one of the plane's users.
func client(t *testing.T, c control.Cluster, user string) *kubernetes.Clientset {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfigs[user])
	if err != nil {
		t.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

// https returns a client that trusts one authority and sends a certificate, unless id is empty.
func https(t *testing.T, caFile string, id control.KeyPair) *http.Client {
	t.Helper()
	pem, err := os.ReadFile(caFile)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(pem)
	if id.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(id.CertFile, id.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{cert}
	}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: 10 * time.Second}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func do(t *testing.T, c *http.Client, method, url, body string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer), err
}

// eventually waits until holds returns true.
func eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for last := false; !holds(); <-tick.C {
		if last {
			t.Fatalf("condition not met within %v: %s", within, what)
		}
		last = time.Since(began) > within // on a busy machine, the test may have had fewer chances to check the condition
	}
}

func TestReadyMeansReady(t *testing.T) {
	c := shared.Cluster()
	kube := client(t, c, "admin")
	for _, component := range c.Components {
		if component.ReadyAfter <= 0 || component.PID == 0 {
			t.Errorf("%s has no process or no time until ready: %+v", component.Name, component)
		}
		if component.Kind != control.KindScheduler && component.Kind != control.KindControllerManager {
			continue
		}
		lease, err := kube.CoordinationV1().Leases("kube-system").Get(t.Context(), component.Kind, metav1.GetOptions{})
		if err != nil || *lease.Spec.HolderIdentity == "" || lease.Spec.AcquireTime.Time.Before(component.Started.Truncate(time.Microsecond)) {
			t.Errorf("lease of %s = %+v, %v; want a holder that acquired it after its start", component.Name, lease, err)
		}
	}
	if c.ReadyAt.Sub(c.StartedAt) <= 0 || len(c.Components) != 4 {
		t.Errorf("cluster = %+v, want four components and ReadyAt after StartedAt", c)
	}
	version, err := kube.Discovery().ServerVersion()
	if err != nil || version.GitVersion != c.KubernetesVersion || version.Major != "1" || version.Minor != "37" {
		t.Errorf("version = %+v, want %s; error %v", version, c.KubernetesVersion, err)
	}
	if out := ok(t, "etcdctl", "--dir", c.Dir, "endpoint", "status", "-w", "json"); !strings.Contains(out, `"version":"`+c.EtcdVersion+`"`) {
		t.Errorf("etcd's version is not %s: %s", c.EtcdVersion, out)
	}
	// The service account exists, so a pod can be created immediately.
	ok(t, "kubectl", "--dir", c.Dir, "run", "at-once", "--image=none")
}

// TestStockTools runs unmodified commands of kubectl and etcdctl.
func TestStockTools(t *testing.T) {
	dir := shared.Cluster().Dir
	snapshot := t.TempDir() + "/etcd.db"
	manifest := t.TempDir() + "/cm.yaml"
	if err := os.WriteFile(manifest, []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: dry}, data: {a: b}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ command, want string }{
		{"kubectl get --raw /metrics", "apiserver_request_duration_seconds_bucket"},
		{"kubectl get --raw /readyz?verbose", "[+]etcd ok"},
		{"kubectl -n kube-system get lease", "kube-controller-manager"},
		{"kubectl auth can-i create pods", "yes"},
		{"kubectl auth can-i create pods --as nobody", ""},
		{"kubectl get apiservices", "v1.apps"},
		{"kubectl api-versions", "coordination.k8s.io/v1"},
		{"kubectl api-resources", "deployments"},
		{"kubectl apply --dry-run=server -f " + manifest, "configmap/dry created (server dry run)"},
		{"kubectl version", "Server Version: v1.37.1"},
		{"kubectl run privileged --image=none --privileged", "pod/privileged created"}, // network and storage plugins run privileged pods
		{"kubectl get --help", "Display one or many resources"},                        // kubectl's own help
		{"etcdctl endpoint health", "is healthy"},
		{"etcdctl endpoint status -w table", "IS LEADER"},
		{"etcdctl get /registry/namespaces/default --keys-only", "/registry/namespaces/default"},
		{"etcdctl snapshot save " + snapshot, "Snapshot saved"},
		{"etcdutl snapshot status " + snapshot, ","},
	} {
		words := strings.Fields(c.command)
		stdout, stderr, code := run(t, append([]string{words[0], "--dir", dir}, words[1:]...)...)
		denied := strings.Contains(c.command, "nobody")
		if denied != (code == 1) || !denied && code != 0 || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: exit %d, want the output %q:\n%s%s", c.command, code, c.want, stdout, stderr)
		}
	}
	// kubectl finds the plane by the environment variable and by the link in bin.
	if out, stderr, code := runEnv(t, []string{control.DirEnv + "=" + dir}, "", "kubectl", "get", "ns", "-o", "name"); code != 0 || !strings.Contains(out, "namespace/default") {
		t.Errorf("kubectl with %s: exit %d, %s%s", control.DirEnv, code, out, stderr)
	}
	cmd := exec.Command(dir+"/bin/kubectl", "get", "ns", "-o", "name")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+shared.Cluster().Kubeconfigs["admin"])
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "namespace/default") {
		t.Errorf("bin/kubectl printed %s, error %v", out, err)
	}
}
