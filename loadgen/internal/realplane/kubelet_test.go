package realplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/podstream"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func kubeletAPI(t *testing.T, config *rest.Config, authority node.Authority) *node.API {
	t.Helper()
	ca, err := os.ReadFile(plane.Cluster().NodeCA.CertFile)
	must(t, err)
	return &node.API{Client: config, ClientCA: ca, Sign: authority.Serve}
}

// podStreams opens a stream of each kind through the API server, to running pods of a fleet.
func podStreams(t *testing.T, ctx context.Context, config *rest.Config) {
	t.Helper()
	for _, l := range []scenario.Load{
		{Stream: "logs"}, {Stream: "logs", Follow: scenario.Duration(1500 * time.Millisecond)}, {Stream: "exec"},
		{Stream: "attach", Follow: scenario.Duration(1500 * time.Millisecond)}, {Stream: "portForward"},
	} {
		c := podstream.New(load.Target{Seed: 1}, l)
		must(t, c.Prepare(ctx, config, "default", nil))
		watching, cancel := context.WithCancel(ctx)
		var watch sync.WaitGroup
		watch.Go(func() { c.Watch(watching, "default") })
		begun := 0
		if err := c.Open(ctx, func() { begun++ }); err != nil || begun > 1 || l.Follow > 0 && begun == 0 {
			t.Errorf("%s, followed for %s: %v; begun %d times", l.Stream, l.Follow, err, begun)
		}
		cancel()
		watch.Wait()
	}
}

// accessToKubelet sends a request directly to the kubelet of a pod's node.
func accessToKubelet(t *testing.T, ctx context.Context, config *rest.Config, pod corev1.Pod, fleet *node.Fleet) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(config)
	at := kubeletAt(t, ctx, client, pod.Spec.NodeName)
	if !strings.HasPrefix(at, pod.Status.HostIP+":") {
		t.Errorf("the pod's host has the address %s, its kubelet %s", pod.Status.HostIP, at)
	}
	roots := x509.NewCertPool()
	ca, err := os.ReadFile(plane.Cluster().NodeCA.CertFile)
	must(t, err)
	roots.AppendCertsFromPEM(ca)
	ask := func(token string, certificates ...tls.Certificate) (int, string) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: certificates}}
		defer transport.CloseIdleConnections()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+at+"/metrics/resource", nil)
		must(t, err)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := (&http.Client{Transport: transport}).Do(r)
		must(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		must(t, err)
		return answer.StatusCode, string(body)
	}
	if code, _ := ask(""); code != http.StatusUnauthorized {
		t.Errorf("anonymous: %d", code)
	}
	request, err := client.CoreV1().ServiceAccounts("default").CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	if code, body := ask(request.Status.Token); code != http.StatusForbidden {
		t.Errorf("a service account without rights: %d %s", code, body)
	}
	admin, err := tls.X509KeyPair(config.CertData, config.KeyData)
	must(t, err)
	if code, body := ask("", admin); code != http.StatusOK || !strings.Contains(body, `pod="`+pod.Name+`"`) {
		t.Errorf("an administrator: %d %s", code, body)
	}

	_, err = fleet.Begin(node.Fault{Kind: control.KubeletUnreachable, Fraction: 1})
	must(t, err)
	if err := dial(ctx, at, 300*time.Millisecond); err == nil {
		t.Error("an isolated kubelet responds")
	}
	_, err = fleet.Begin(node.Fault{Kind: control.NodeRecovery})
	must(t, err)
	must(t, dial(ctx, at, time.Minute))
}

func dial(ctx context.Context, at string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	c, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", at)
	if err == nil {
		c.Close()
	}
	return err
}

// kubeletAt returns the address of a node's kubelet.
func kubeletAt(t *testing.T, ctx context.Context, client kubernetes.Interface, name string) string {
	t.Helper()
	n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	must(t, err)
	return fmt.Sprintf("%s:%d", n.Status.Addresses[0].Address, n.Status.DaemonEndpoints.KubeletEndpoint.Port)
}
