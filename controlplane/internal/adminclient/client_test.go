package adminclient

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

func TestRequestsNameTheProgram(t *testing.T) {
	got := ""
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.UserAgent() }))
	defer server.Close()
	c := &Client{components: server.Client()}
	if err := c.Get(t.Context(), topology.Process{Address: server.URL}, "/api/v1/namespaces/default"); err != nil {
		t.Fatal(err)
	}
	if want := rest.DefaultKubernetesUserAgent(); got != want {
		t.Errorf("User-Agent = %q, want %q", got, want)
	}
}
