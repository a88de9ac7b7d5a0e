package cloud

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/api"
)

// answering returns a provider whose cloud sends the same response to all requests, and the list of these requests.
func answering(t *testing.T, status int, answer string) (p *Provider, asked *[]string) {
	t.Helper()
	asked = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Method+" "+r.URL.Path)
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	kubeconfig := fmt.Sprintf(`{"clusters": [{"name": "c", "cluster": {"server": %q}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}], "current-context": "c"}`, server.URL)
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := New(file)
	if err != nil {
		t.Fatal(err)
	}
	return p, asked
}

func node(providerID string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{ProviderID: providerID}}
}

func TestInstances(t *testing.T) {
	p, asked := answering(t, 200, `{"name": "n", "zone": "zone-1", "address": "10.128.0.1"}`)
	i, _ := p.InstancesV2()
	m, err := i.InstanceMetadata(t.Context(), node("stormglass://n"))
	if err != nil || m.Zone != "zone-1" || m.ProviderID != "stormglass://n" || m.InstanceType != "" || m.NodeAddresses[0].Address != "10.128.0.1" {
		t.Errorf("metadata = %+v, %v; want the data of the instance", m, err)
	}
	if got := strings.Join(*asked, ", "); got != "GET /instances/n" {
		t.Errorf("requests = %s, want GET /instances/n", got)
	}

	p, asked = answering(t, 404, "none")
	i, _ = p.InstancesV2()
	if exists, err := i.InstanceExists(t.Context(), node("stormglass://n")); exists || err != nil {
		t.Errorf("InstanceExists for a missing instance = %t, %v; want false", exists, err)
	}
	if _, err := i.InstanceMetadata(t.Context(), node("stormglass://n")); !errors.Is(err, cloudprovider.InstanceNotFound) {
		t.Errorf("InstanceMetadata for a missing instance = %v, want cloudprovider.InstanceNotFound", err)
	}
	*asked = nil
	// For a node of another cloud or of no cloud, the provider must report that the instance exists; otherwise the
	// controller would delete the node.
	for _, foreign := range []string{"", "aws:///i-1"} {
		m, err := i.InstanceMetadata(t.Context(), node(foreign))
		exists, existsErr := i.InstanceExists(t.Context(), node(foreign))
		if err != nil || existsErr != nil || !exists || len(m.NodeAddresses) > 0 || len(*asked) > 0 {
			t.Errorf("providerID %q: exists %t, metadata %+v, requests %v, errors %v %v", foreign, exists, m, *asked, err, existsErr)
		}
	}

	p, _ = answering(t, 500, "broken")
	i, _ = p.InstancesV2()
	if exists, err := i.InstanceExists(t.Context(), node("stormglass://n")); exists || err == nil || !strings.Contains(err.Error(), "500 Internal Server Error: broken") {
		t.Errorf("InstanceExists with a broken cloud = %t, %v; want the cloud's error", exists, err)
	}
}

// EnsureLoadBalancer waits until a load balancer has its address. If the cloud throttles, the error contains the time
// to wait.
func TestLoadBalancers(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{UID: "u-1"}}
	p, asked := answering(t, 200, `{"address": "198.18.0.1"}`)
	b, _ := p.LoadBalancer()
	status, err := b.EnsureLoadBalancer(t.Context(), "", service, nil)
	if err != nil || status.Ingress[0].IP != "198.18.0.1" || strings.Join(*asked, ", ") != "PUT /load-balancers/au1" {
		t.Errorf("status = %+v, %v; requests %v; want 198.18.0.1 after one PUT", status, err, *asked)
	}
	p, _ = answering(t, 429, "too many")
	b, _ = p.LoadBalancer()
	_, err = b.EnsureLoadBalancer(t.Context(), "", service, nil)
	var again *api.RetryError
	if !errors.As(err, &again) || again.RetryAfter() != 3*time.Second {
		t.Errorf("error of a throttled request = %v, want a RetryError of 3 s", err)
	}
	p, _ = answering(t, 404, "none")
	b, _ = p.LoadBalancer()
	if _, exists, err := b.GetLoadBalancer(t.Context(), "", service); exists || err != nil {
		t.Errorf("GetLoadBalancer for a missing load balancer = %t, %v; want false", exists, err)
	}
}

func TestRoutes(t *testing.T) {
	p, asked := answering(t, 200, `{"n": {"instance": "n", "cidr": "10.64.1.0/24"}}`)
	r, _ := p.Routes()
	have, err := r.ListRoutes(t.Context(), "")
	if err != nil || len(have) != 1 || have[0].TargetNode != "n" || have[0].DestinationCIDR != "10.64.1.0/24" {
		t.Fatalf("routes = %+v, %v; want one route to n", have, err)
	}
	if err := errors.Join(r.CreateRoute(t.Context(), "", "hint", have[0]), r.DeleteRoute(t.Context(), "", have[0])); err != nil {
		t.Error(err)
	}
	if got := strings.Join(*asked, ", "); got != "GET /routes, PUT /routes/n, DELETE /routes/n" {
		t.Errorf("requests = %s, want GET /routes, PUT /routes/n, DELETE /routes/n", got)
	}
}
