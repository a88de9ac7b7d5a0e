package apiclient

import (
	"net/http"
	"net/http/httptest"
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
