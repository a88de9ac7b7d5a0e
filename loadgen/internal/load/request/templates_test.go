package request

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// plugin authenticates requests with a token that tests change; without one it fails.
type plugin struct {
	token string
	next  http.RoundTripper
}

func (p *plugin) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.token == "" {
		return nil, errors.New("no token")
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	return p.next.RoundTrip(r)
}

func TestTemplatesFollowTheIdentity(t *testing.T) { synctest.Test(t, testTemplatesFollowTheIdentity) }

func testTemplatesFollowTheIdentity(t *testing.T) {
	p := &plugin{token: "one"}
	s, err := NewTemplates(load.Target{Config: &rest.Config{
		Host: "https://127.0.0.1:1/gateway/",
		WrapTransport: func(next http.RoundTripper) http.RoundTripper {
			p.next = next
			return p
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if s.Prefix() != "/gateway" {
		t.Errorf("prefix %q", s.Prefix())
	}
	get := s.New("GET", "application/json", "", http.Header{"Impersonate-User": {"a"}})
	first := get.Load()
	renew := func() {
		time.Sleep(apiclient.RenewEvery)
		if err := s.renew(); err != nil {
			t.Error(err)
		}
	}
	if renew(); get.Load() != first {
		t.Error("the load created the template again without need")
	}
	p.token = ""
	if renew(); get.Load() != first {
		t.Error("the load does not keep the old template while the plugin fails")
	}
	p.token = "two"
	if err := s.renew(); err != nil || get.Load() != first {
		t.Errorf("the load called the plugin again before its time: %v", err)
	}
	if renew(); get.Load() == first {
		t.Error("not remade")
	}
}
