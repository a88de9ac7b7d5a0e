package cluster

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// Whatever answers in place of a cluster, or does not, is told in one line with a
// hint that fits.
func TestWhoeverAnswersInPlaceOfACluster(t *testing.T) {
	status := func(code int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprint(w, text)
		}
	}
	tls := func(h http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	plain := httptest.NewServer(status(200, "hello"))
	t.Cleanup(plain.Close)
	ca := func(s *httptest.Server) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	}
	good := newStub(t)
	over := func(s *httptest.Server) string { return kubeconfig(t, s.URL, ca(s), goodToken) }
	through := func(proxy string) string {
		return file(t, "k", fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: here
clusters: [{name: staging, cluster: {server: %q, insecure-skip-tls-verify: true, proxy-url: %q}}]
users: [{name: alice, user: {token: good}}]
contexts: [{name: here, context: {cluster: staging, user: alice}}]
`, good.URL, proxy))
	}
	plugin := func(command, args string) string {
		return file(t, "k", fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: here
clusters: [{name: staging, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: alice, user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: %s, args: %s}}}]
contexts: [{name: here, context: {cluster: staging, user: alice}}]
`, good.URL, command, args))
	}
	refuses := httptest.NewServer(status(http.StatusForbidden, "not through me")) // a proxy
	t.Cleanup(refuses.Close)
	ssh := listener(t, func(c net.Conn) { fmt.Fprint(c, "SSH-2.0-OpenSSH_9.6\r\n") })
	kubeStatus := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"%s","reason":"%s","code":%d}`
	for _, c := range []struct{ name, path, want string }{
		{"403 as JSON of no Status", over(tls(status(403, `{"message": "denied"}`))), "403 Forbidden: the user of the kubeconfig may not"},
		{"403 as a Status", over(tls(status(403, fmt.Sprintf(kubeStatus, "no", "Forbidden", 403)))), "403 Forbidden: the user of the kubeconfig may not"},
		{"403 as text", over(tls(status(403, `denied`))), "403 Forbidden: "},
		{"404", over(tls(status(404, `{"error": "no route"}`))), "404 Not Found: there is no Kubernetes API at this address (is the port or path"},
		{"404 of a web server", over(tls(http.NotFoundHandler())), "404 Not Found: "},
		{"401 as text", over(tls(status(401, `who?`))), "401 Unauthorized: it does not accept the credentials"},
		{"429", over(tls(status(429, `slow down`))), "429 Too Many Requests: "},
		{"503 of a balancer", over(tls(status(503, `no backend`))), "503 Service Unavailable (is its control plane up?"},
		{"418", over(tls(status(418, `tea`))), "418 I'm a teapot (is it the address"},
		{"a page", over(tls(status(200, `<html>log in</html>`))), "does not answer like a Kubernetes API server"},
		{"JSON of something else", over(tls(status(200, `{"hello": 1}`))), "does not answer like a Kubernetes API server"},
		{"TLS to HTTP", kubeconfig(t, "https://"+plain.Listener.Addr().String(), ca(good.Server), goodToken), "it speaks HTTP without TLS (is it the port"},
		{"HTTP to TLS", kubeconfig(t, "http://"+good.Listener.Addr().String(), nil, goodToken), "it speaks TLS, and the kubeconfig says http:// (write https:// in server)"},
		{"speaks SSH", kubeconfig(t, "https://"+ssh, ca(good.Server), goodToken), "it does not speak TLS (is it the port"},
		{"another scheme", kubeconfig(t, "ftp://127.0.0.1:1", ca(good.Server), goodToken), "its address is no https:// URL (write https:// in server)"},
		{"no such host", kubeconfig(t, "https://nowhere.invalid:6443", ca(good.Server), goodToken), "no such host nowhere.invalid (is the address right"},
		{"a dead proxy", through("http://127.0.0.1:1"), "the proxy on the way to it cannot be used: dial tcp 127.0.0.1:1: connect: connection refused (proxy-url"},
		{"a proxy of no such name", through("http://nowhere.invalid:3128"), "the proxy on the way to it cannot be used: "},
		{"a dead SOCKS proxy", through("socks5://127.0.0.1:1"), "the proxy on the way to it cannot be used: "},
		{"a proxy that refuses", through(refuses.URL), "Forbidden (is the address right, and a proxy in between?)"},
		{"a plugin that fails", plugin("sh", `["-c", "exit 3"]`), "the exec plugin of the kubeconfig gave no credentials: exec: executable sh failed with exit code 3 (run it by hand"},
		{"a plugin that is not there", plugin("no-such-plugin", "[]"), "the exec plugin of the kubeconfig gave no credentials: exec: executable no-such-plugin not found"},
		{"a plugin that says something else", plugin("echo", "[hello]"), "the exec plugin of the kubeconfig gave no credentials: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := FromKubeconfig(t.Context(), c.path, "", "r1", parsed(t, quiet))
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

// listener answers each connection with a function.
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
				_, _ = c.Read(make([]byte, 1)) // the hello
				answer(c)
			}()
		}
	}()
	return l.Addr().String()
}

// A plugin that hangs is given up, and named; so is a server that is silent after it.
func TestAPluginThatHangsIsGivenUp(t *testing.T) {
	hangs := func(ctx context.Context) error { <-ctx.Done(); <-t.Context().Done(); return nil }
	err := bounded(t.Context(), "aws eks get-token", time.Millisecond, time.Hour, hangs)
	if err == nil || !strings.Contains(explain(err).Error(), "has not ended within 1ms: aws eks get-token (run it by hand to see what it waits for)") {
		t.Errorf("%v", err)
	}
	err = bounded(t.Context(), "", time.Hour, time.Millisecond, hangs)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(explain(err).Error(), "no answer within 10s (is a firewall") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := bounded(ctx, "plugin", time.Hour, time.Hour, hangs); !errors.Is(err, context.Canceled) {
		t.Errorf("Ctrl-C: %v", err)
	}
}

// A server that closes each connection is tried again until the time is over, and then
// told as what it is.
func TestAServerThatClosesEachConnection(t *testing.T) {
	for _, before := range []error{io.EOF, &net.OpError{Op: "read", Err: syscall.ECONNRESET}} {
		for _, err := range []error{
			before,
			errors.Join(fmt.Errorf("context canceled - error from a previous attempt: %s", before), context.DeadlineExceeded),
		} {
			if told := explain(err); !strings.Contains(told.Error(), "it closed the connection without an answer (is it the port") {
				t.Errorf("%v: %v", err, told)
			}
		}
	}
}

// After the plugin has ended it is the server's time that counts.
func TestThePluginsTimeIsNotTheServers(t *testing.T) {
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
