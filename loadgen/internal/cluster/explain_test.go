package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/stormglass/stormglass/internal/proxytest"
)

// For each wrong or missing response of a cluster, the error is one line with a matching hint.
func TestAnswersInPlaceOfACluster(t *testing.T) {
	status := func(code int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprint(w, text)
		}
	}
	plain := httptest.NewServer(status(200, "hello"))
	t.Cleanup(plain.Close)
	good := newStub(t)
	ca := authority(good.Server)
	over := func(h http.Handler) string {
		s := serveTLS(t, h)
		return kubeconfig(t, s.URL, authority(s), goodToken)
	}
	insecure := fmt.Sprintf("server: %q, insecure-skip-tls-verify: true", good.URL)
	through := func(proxy string) string {
		return kubeconfigOf(t, fmt.Sprintf("%s, proxy-url: %q", insecure, proxy), "token: good")
	}
	refusing := func(status int) string {
		p := proxytest.Start(t)
		p.Refuse = status
		return "http://" + p.Addr()
	}
	over1 := func(h http.Handler) string {
		s := httptest.NewTLSServer(h)
		t.Cleanup(s.Close)
		return kubeconfig(t, s.URL, authority(s), goodToken)
	}
	plugin := func(command, args string) string {
		return kubeconfigOf(t, insecure, fmt.Sprintf("exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: %s, args: %s}", command, args))
	}
	certificate, _, err := cert.GenerateSelfSignedCertKey("alice", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, foreignKey, err := cert.GenerateSelfSignedCertKey("bob", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	empty, text := file(t, "empty", "\n"), file(t, "text", "hello")
	refuses := httptest.NewServer(status(http.StatusForbidden, "not through me")) // a proxy
	t.Cleanup(refuses.Close)
	ssh := listener(t, func(c net.Conn) { fmt.Fprint(c, "SSH-2.0-OpenSSH_9.6\r\n") })
	kubeStatus := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"%s","reason":"%s","code":%d}`
	for _, c := range []struct{ name, path, want string }{
		{"403 as JSON of no Status", over(status(403, `{"message": "denied"}`)), "403 Forbidden: the user of the kubeconfig is not allowed"},
		{"403 as a Status", over(status(403, fmt.Sprintf(kubeStatus, "no", "Forbidden", 403))), "403 Forbidden: the user of the kubeconfig is not allowed"},
		{"403 as text", over(status(403, `denied`)), "403 Forbidden: "},
		{"404", over(status(404, `{"error": "no route"}`)), "404 Not Found: there is no Kubernetes API at this address (is the port or path"},
		{"404 of a web server", over(http.NotFoundHandler()), "404 Not Found: "},
		{"401 as text", over(status(401, `who?`)), "401 Unauthorized: it does not accept the credentials"},
		{"429", over(status(429, `slow down`)), "429 Too Many Requests: "},
		{"503 of a balancer", over(status(503, `no backend`)), "503 Service Unavailable (is its control plane up?"},
		{"418", over(status(418, `tea`)), "418 I'm a teapot (is this the address"},
		{"a page", over(status(200, `<html>log in</html>`)), "does not answer like a Kubernetes API server"},
		{"JSON of something else", over(status(200, `{"hello": 1}`)), "does not answer like a Kubernetes API server"},
		{"TLS to HTTP", kubeconfig(t, "https://"+plain.Listener.Addr().String(), ca, goodToken), "it uses HTTP without TLS (is this the port"},
		{"HTTP to TLS", kubeconfig(t, "http://"+good.Listener.Addr().String(), nil, goodToken), "it uses TLS, but server in the kubeconfig is an http:// address (write https://)"},
		{"speaks SSH", kubeconfig(t, "https://"+ssh, ca, goodToken), "it does not use TLS (is this the port"},
		{"another scheme", kubeconfig(t, "ftp://127.0.0.1:1", ca, goodToken), "its address is not an https:// URL (write https:// in server)"},
		{"no such host", kubeconfig(t, "https://nowhere.invalid:6443", ca, goodToken), "no such host nowhere.invalid (is the address right"},
		{"a dead proxy", through("http://127.0.0.1:1"), "its proxy cannot be used: dial tcp 127.0.0.1:1: connect: connection refused (proxy-url"},
		{"a proxy of no such name", through("http://nowhere.invalid:3128"), "its proxy cannot be used: "},
		{"a dead SOCKS proxy", through("socks5://127.0.0.1:1"), "its proxy cannot be used: "},
		{"a proxy that refuses", through(refuses.URL), "its proxy refuses to connect: " + refuses.URL + " answers 403 Forbidden (does the proxy permit"},
		{"a proxy that wants a login", through(refusing(http.StatusProxyAuthRequired)), "its proxy requires a user name and password: http://"},
		{"a proxy that does not reach it", through(refusing(http.StatusBadGateway)), "its proxy cannot reach it: http://"},
		{"a server that is not a proxy", through("http://" + ssh), "its proxy cannot be used: http://" + ssh + " does not answer like an HTTP proxy"},
		{"a server without HTTP/2", over1(good), "it does not offer HTTP/2, which loads and simulated nodes use (does a gateway"},
		{"a plugin that fails", plugin("sh", `["-c", "exit 3"]`), "the exec plugin of the kubeconfig gave no credentials: exec: executable sh failed with exit code 3 (run the plugin by hand"},
		{"a plugin that is not there", plugin("no-such-plugin", "[]"), "the exec plugin of the kubeconfig gave no credentials: exec: executable no-such-plugin not found"},
		{"a plugin that says something else", plugin("echo", "[hello]"), "the exec plugin of the kubeconfig gave no credentials: "},
		{"an empty authority", kubeconfigOf(t, fmt.Sprintf("server: %q, certificate-authority: %s", good.URL, empty), "token: good"), empty + ": the file is empty (name a readable file"},
		{"an authority of no certificate", kubeconfigOf(t, fmt.Sprintf("server: %q, certificate-authority: %s", good.URL, text), "token: good"), "certificate-authority holds no certificate in PEM form (`kubectl --kubeconfig"},
		{"an empty token file", kubeconfigOf(t, insecure, "tokenFile: "+empty), empty + ": the file is empty (name a readable file"},
		{"a certificate of another key", kubeconfigOf(t, insecure, fmt.Sprintf("client-certificate: %s, client-key: %s", file(t, "crt", string(certificate)), file(t, "key", string(foreignKey)))), "cannot use the client certificate: tls: private key does not match public key (`kubectl"},
		{"a certificate without key", kubeconfigOf(t, insecure, "client-certificate: "+file(t, "crt", string(certificate))), "client-key must be specified"},
		{"credentials that are no longer built in", kubeconfigOf(t, insecure, "auth-provider: {name: gcp}"), `no Auth Provider found for name "gcp" (` + "`kubectl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := FromKubeconfig(t.Context(), Kubeconfig{Files: c.path}, "r1", parsed(t, quiet), func(string) {})
			if err == nil {
				t.Fatal("accepted")
			}
			text := err.Error()
			if !strings.Contains(text, c.want) || strings.Contains(text, "\n") || strings.Contains(strings.ToLower(text), "unknown") || !strings.Contains(text, "(") {
				t.Errorf("\n got %s\nwant %s", text, c.want)
			}
		})
	}
}

// listener handles each connection with a function.
func listener(t *testing.T, answer func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = c.Read(make([]byte, 1)) // the ClientHello
				answer(c)
			}()
		}
	}()
	return l.Addr().String()
}

// The run gives up on a plugin that hangs, and the error names the plugin. The same applies to a server that does not
// respond after the plugin has ended.
func TestHangingPluginTimesOut(t *testing.T) {
	hangs := func(ctx context.Context) error { <-ctx.Done(); <-t.Context().Done(); return nil }
	err := bounded(t.Context(), "aws eks get-token", time.Millisecond, time.Hour, hangs)
	if err == nil || !strings.Contains(explain(err).Error(), "has not ended within 1ms: aws eks get-token (run the plugin by hand to see what it waits for)") {
		t.Errorf("%v", err)
	}
	err = bounded(t.Context(), "", time.Hour, time.Millisecond, hangs)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(explain(err).Error(), "no response within 10s (does a firewall") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := bounded(ctx, "plugin", time.Hour, time.Hour, hangs); !errors.Is(err, context.Canceled) {
		t.Errorf("Ctrl-C: %v", err)
	}
}

// The client retries against a server that closes each connection, until the timeout. Then the error says that the
// server closed the connection.
func TestServerClosingEachConnection(t *testing.T) {
	for _, before := range []error{io.EOF, &net.OpError{Op: "read", Err: syscall.ECONNRESET}} {
		for _, err := range []error{
			before,
			errors.Join(fmt.Errorf("context canceled - error from a previous attempt: %s", before), context.DeadlineExceeded),
		} {
			if told := explain(err); !strings.Contains(told.Error(), "it closed the connection without a response (is this the port") {
				t.Errorf("%v: %v", err, told)
			}
		}
	}
}

// The timeout of the server starts when the plugin has ended.
func TestPluginTimeIsExcludedFromServerTimeout(t *testing.T) {
	silent := listener(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	cfg := &rest.Config{Host: "https://" + silent}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	err = bounded(t.Context(), "plugin", time.Hour, time.Millisecond, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host, nil)
		if err != nil {
			return err
		}
		_, err = client.Do(req)
		return err
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
