package apiclient

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// The User-Agent distinguishes Stormglass from other programs with the same credentials in an audit log.
func TestRESTClientNamesTheProgram(t *testing.T) {
	got := ""
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.UserAgent() }))
	defer server.Close()
	for agent, want := range map[string]string{"": rest.DefaultKubernetesUserAgent(), "mine": "mine"} {
		client, _, err := NewREST(&rest.Config{Host: server.URL, UserAgent: agent})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Get().AbsPath("/api").Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("User-Agent %q, want %q", got, want)
		}
	}
}

func TestRESTClientDialsWithItsConfig(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	var dials atomic.Int64
	cfg := &rest.Config{
		Host: "https://api.invalid", TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			dials.Add(1)
			return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		},
	}
	for clients := int64(1); clients <= 2; clients++ {
		requests, client, err := NewREST(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer client.CloseIdleConnections()
		for range 2 {
			if err := requests.Get().AbsPath("/api").Do(t.Context()).Error(); err != nil {
				t.Fatal(err)
			}
		}
		if dials.Load() != clients {
			t.Errorf("%d clients made %d connections", clients, dials.Load())
		}
	}
}
