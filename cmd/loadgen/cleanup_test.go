package main

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What cleanup could not see it says nothing of, but why it could not.
func TestCleanupNeverClaimsWhatItHasNotSeen(t *testing.T) {
	status := func(code int, reason string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
		}
	}
	html := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(code)
			fmt.Fprint(w, "<html><body>Sign in</body></html>")
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		broken bool // the authority in the kubeconfig is another's
		closed bool // nobody listens
		want   string
	}{
		"refused":             {answer: status(200, ""), closed: true, want: "connection refused"},
		"unauthorized":        {answer: status(401, "Unauthorized"), want: "401"},
		"an HTML page":        {answer: html(200), want: "does not answer like a Kubernetes API server"},
		"an HTML error":       {answer: html(502), want: "cluster"},
		"another's authority": {answer: status(200, ""), broken: true, want: "authority"},
		"it hangs up":         {answer: func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, want: "cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(c.answer)
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.StartTLS()
			defer server.Close()
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			if c.broken {
				ca = []byte(otherAuthority)
			}
			if c.closed {
				server.Close()
			}
			kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
			text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]\n"+
				"users: [{name: u, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n", server.URL, base64.StdEncoding.EncodeToString(ca))
			if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), []string{"cleanup", "--kubeconfig", kubeconfig, "--yes"}, strings.NewReader(""), &stdout, &stderr)
			if code != 4 || stdout.Len() > 0 || strings.Contains(stderr.String(), "nothing to remove") {
				t.Errorf("exit code %d, said %s and\n%s", code, &stdout, &stderr)
			}
			if lines := strings.Count(stderr.String(), "\n"); lines != 1 || !strings.Contains(stderr.String(), c.want) {
				t.Errorf("want one line with %q, not\n%s", c.want, &stderr)
			}
		})
	}
}

// otherAuthority has signed nothing.
const otherAuthority = `-----BEGIN CERTIFICATE-----
MIIBejCCASGgAwIBAgIUUO744vvzrwz4uV7KHrFzLpasDKowCgYIKoZIzj0EAwIw
EjEQMA4GA1UEAwwHYW5vdGhlcjAgFw0yNjExMjIwNzA0NTJaGA8yMTI2MTAyOTA3
MDQ1MlowEjEQMA4GA1UEAwwHYW5vdGhlcjBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABJS/JmeTmAvQPX0SJUBCE5qaJoWCx10I4vjneEdPPnUHhyp/TT2/VcMD5UOO
tccuMk5a8ffTb4DG2a1QE75ZR8qjUzBRMB0GA1UdDgQWBBQ/5EV1YkeKNGqYjRfp
Hk7iXVO8azAfBgNVHSMEGDAWgBQ/5EV1YkeKNGqYjRfpHk7iXVO8azAPBgNVHRMB
Af8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCIFpfGbYqp2scjr16jONnwVuTg5nx
Fct4LX7Z36A7n49pAiAuDaKM2OFrjz3L67dnOfOHtCAWD3YIrAJ8Lz0520rb4Q==
-----END CERTIFICATE-----
`
