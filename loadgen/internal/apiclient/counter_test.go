package apiclient

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

// A Counter counts requests of clients that use the counted configuration, except watches. It does not count requests
// of other clients.
func TestCounterLeavesWatchesOut(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer server.Close()
	var counter Counter
	plain := &rest.Config{Host: server.URL}
	get := func(config *rest.Config, path string) {
		t.Helper()
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	counted := counter.Counted(plain)
	get(counted, "/api/v1/pods")
	get(counted, "/api/v1/pods?limit=5")
	get(counted, "/api/v1/pods?limit=5&watch=true")
	get(plain, "/api/v1/pods")
	if n := counter.Sent(); n != 2 {
		t.Errorf("%d requests counted, want 2", n)
	}
}
