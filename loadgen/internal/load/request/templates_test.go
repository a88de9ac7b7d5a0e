package request

import (
	"errors"
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/load"
)

func TestTemplatesFollowTheIdentity(t *testing.T) {
	s, err := NewTemplates(load.Target{Config: &rest.Config{Host: "https://127.0.0.1:1/gateway/", BearerToken: "one"}})
	if err != nil {
		t.Fatal(err)
	}
	if s.Prefix() != "/gateway" {
		t.Errorf("prefix %q", s.Prefix())
	}
	get := s.New("GET", "application/json", "", http.Header{"Impersonate-User": {"a"}})
	first := get.Load()
	if err := s.renew(); err != nil || get.Load() != first {
		t.Errorf("remade without need: %v", err)
	}
	s.headers = func() (http.Header, error) { return nil, errors.New("no token") }
	if err := s.renew(); err == nil || get.Load() != first {
		t.Errorf("the template of before does not serve on: %v", err)
	}
	s.headers = func() (http.Header, error) { return http.Header{"Authorization": {"Bearer two"}}, nil }
	if err := s.renew(); err != nil || get.Load() == first {
		t.Errorf("not remade: %v", err)
	}
}
