package cluster

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// stub is the small part of an API server that FromKubeconfig needs. It accepts one token, and refuses the requests
// that denies selects.
type stub struct {
	*httptest.Server
	// denies reports whether the stub refuses a "verb resource".
	denies func(string) bool
	// headers are the headers of all requests so far. mu guards headers and paths.
	mu      sync.Mutex
	headers []http.Header
	paths   []string
}

const goodToken = "good"

func newStub(t *testing.T) *stub {
	s := &stub{denies: func(string) bool { return false }}
	s.Server = serveTLS(t, s)
	return s
}

// serveTLS starts a server that runs until the test ends.
func serveTLS(t *testing.T, h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // the tests make handshakes fail
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// authority returns the CA certificate with which clients verify the server.
func authority(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.headers, s.paths = append(s.headers, r.Header), append(s.paths, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Header.Get("Authorization") != "Bearer "+goodToken {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`)
		return
	}
	switch {
	case r.URL.Path == "/version":
		fmt.Fprint(w, `{"gitVersion":"v1.37.1"}`)
	case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
		answer := authenticationv1.SelfSubjectReview{}
		answer.Status.UserInfo.Username = "alice"
		_ = json.NewEncoder(w).Encode(answer)
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		var review authorizationv1.SelfSubjectAccessReview
		body, _ := io.ReadAll(r.Body)
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, &review); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if a := review.Spec.ResourceAttributes; a != nil {
			resource := a.Resource
			if a.Subresource != "" {
				resource += "/" + a.Subresource
			}
			review.Status.Allowed = !s.denies(a.Verb + " " + resource)
		} else {
			review.Status.Allowed = !s.denies(review.Spec.NonResourceAttributes.Verb + " " + review.Spec.NonResourceAttributes.Path)
		}
		_ = json.NewEncoder(w).Encode(review)
	case strings.HasSuffix(r.URL.Path, "/endpointslices"):
		fmt.Fprint(w, `{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","items":[{"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"]},{"addresses":["10.0.0.2"]}]}]}`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// asked returns all requests so far, such as "GET /version".
func (s *stub) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.paths)
}

// kubeconfig returns the path of a kubeconfig for the stub, with a token.
func (s *stub) kubeconfig(t *testing.T, token string) string {
	return kubeconfig(t, s.URL, authority(s.Server), token)
}

func kubeconfig(t *testing.T, server string, ca []byte, token string) string {
	t.Helper()
	return kubeconfigOf(t, fmt.Sprintf("server: %q, certificate-authority-data: %s", server, base64.StdEncoding.EncodeToString(ca)), "token: "+token)
}

// kubeconfigOf returns the path of a kubeconfig with the given fields of its cluster and user.
func kubeconfigOf(t *testing.T, cluster, user string) string {
	t.Helper()
	return file(t, "kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: here
clusters: [{name: staging, cluster: {%s}}]
users: [{name: alice, user: {%s}}]
contexts:
- {name: here, context: {cluster: staging, user: alice}}
- {name: broken, context: {cluster: nowhere, user: alice}}
`, cluster, user))
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// parsed returns a scenario with its defaults.
func parsed(t *testing.T, yaml string) *plan.Plan {
	t.Helper()
	s, err := scenario.Parse("test.yaml", []byte("apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: test\n"+yaml), nil)
	if err != nil {
		t.Fatal(err)
	}
	return plan.Of(s)
}

// builtIn returns a built-in scenario with the overrides `sets`.
func builtIn(t *testing.T, name string, sets ...string) *plan.Plan {
	t.Helper()
	s, err := scenario.Read(name, sets)
	if err != nil {
		t.Fatal(err)
	}
	return plan.Of(s)
}

const quiet = "phases: [{name: steady, for: 1s}]\n"
