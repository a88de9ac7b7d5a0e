package apiclient

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/stormglass/stormglass/internal/proxytest"
	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
)

// noProxy hides the proxies in the environment of the test.
func noProxy(t *testing.T) {
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"} {
		t.Setenv(name, "")
		t.Setenv(strings.ToLower(name), "")
	}
}

// status sends one request with the HTTP/2 client, and returns the status of the response.
func status(t *testing.T, c *rest.Config) (int, error) {
	t.Helper()
	to, err := New(c, &Roots{})
	if err != nil {
		return 0, err
	}
	conn, err := to.Connect(t.Context(), h2conn.Options{})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	r, err := to.Request(http.MethodGet, "/api/v1/namespaces/ns/configmaps")
	if err != nil {
		return 0, err
	}
	answer, err := conn.RoundTrip(t.Context(), r)
	if err != nil {
		return 0, err
	}
	return answer.Header.Status, nil
}

// The HTTP/2 client uses the same proxies as client-go.
func TestConnectionsGoThroughTheProxy(t *testing.T) {
	s, err := stubapi.Start(stubapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	byName := "example.com:6443" // the stub's certificate has this name, but only the proxy can resolve it
	for name, c := range map[string]struct {
		proxyURL string // proxy-url of the kubeconfig; ADDR stands for the proxy's address
		env      map[string]string
		host     string
		login    string
		through  bool
	}{
		"none":                         {host: s.Addr()},
		"http":                         {proxyURL: "http://ADDR", host: s.Addr(), through: true},
		"http with a login":            {proxyURL: "http://me:se%20cret@ADDR", host: s.Addr(), login: "me:se cret", through: true},
		"socks5":                       {proxyURL: "socks5://ADDR", host: s.Addr(), through: true},
		"socks5, the name unresolved":  {proxyURL: "socks5://ADDR", host: byName, through: true},
		"HTTPS_PROXY":                  {env: map[string]string{"HTTPS_PROXY": "http://ADDR"}, host: byName, through: true},
		"HTTPS_PROXY, socks5h":         {env: map[string]string{"HTTPS_PROXY": "socks5h://ADDR"}, host: byName, through: true},
		"HTTPS_PROXY, not of loopback": {env: map[string]string{"HTTPS_PROXY": "http://ADDR"}, host: s.Addr()},
		"NO_PROXY, but the kubeconfig's": {
			proxyURL: "http://ADDR", env: map[string]string{"NO_PROXY": "*"}, host: s.Addr(), through: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			noProxy(t)
			p := proxytest.Start(t)
			p.To, p.Login = s.Addr(), c.login
			for key, value := range c.env {
				t.Setenv(key, strings.ReplaceAll(value, "ADDR", p.Addr()))
			}
			config := s.Config()
			config.Host = "https://" + c.host
			if c.proxyURL != "" {
				via, err := url.Parse(strings.ReplaceAll(c.proxyURL, "ADDR", p.Addr()))
				if err != nil {
					t.Fatal(err)
				}
				config.Proxy = http.ProxyURL(via)
			}
			if got, err := status(t, config); err != nil || got != http.StatusOK {
				t.Errorf("status %d, error %v", got, err)
			}
			var want []string
			if c.through {
				want = []string{c.host}
			}
			if got := p.Asked(); !slices.Equal(got, want) {
				t.Errorf("the proxy received requests for %q, want %q", got, want)
			}
		})
	}
}

func TestNoProxyExcludesTheServer(t *testing.T) {
	for noProxies, want := range map[string]string{"": "http://proxy:3128", "10.0.0.0/8": "", ".example.com": "http://proxy:3128", "10.1.2.3": "", "*": ""} {
		noProxy(t)
		t.Setenv("HTTPS_PROXY", "http://proxy:3128")
		t.Setenv("NO_PROXY", noProxies)
		via, err := Proxy(&rest.Config{Host: "https://10.1.2.3:6443"})
		if got := ""; err != nil {
			t.Error(err)
		} else {
			if via != nil {
				got = via.String()
			}
			if got != want {
				t.Errorf("with NO_PROXY=%s the proxy is %q, want %q", noProxies, got, want)
			}
		}
	}
}

// If a proxy fails, the error is a *net.OpError of the proxy.
func TestProxyErrors(t *testing.T) {
	noProxy(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for name, c := range map[string]struct {
		refuse int
		login  string
		scheme string
		at     string // "" means the proxy's address
		want   string
	}{
		"refused":              {refuse: http.StatusForbidden, scheme: "http", want: "answers 403 Forbidden"},
		"a login is wanted":    {login: "a:b", scheme: "http", want: "answers 407 Proxy Authentication Required"},
		"cannot reach it":      {refuse: http.StatusBadGateway, scheme: "http", want: "answers 502 Bad Gateway"},
		"not there":            {scheme: "http", at: "127.0.0.1:1", want: "connection refused"},
		"SOCKS, not there":     {scheme: "socks5", at: "127.0.0.1:1", want: "connection refused"},
		"SOCKS to nowhere":     {scheme: "socks5", want: "connection refused"},
		"silent":               {scheme: "http", at: silent.Addr().String(), want: context.Canceled.Error()},
		"SOCKS that is silent": {scheme: "socks5", at: silent.Addr().String(), want: context.Canceled.Error()},
		"another scheme":       {scheme: "quic", want: `scheme "quic" is not supported (http, https, socks5 and socks5h are)`},
	} {
		t.Run(name, func(t *testing.T) {
			p := proxytest.Start(t)
			p.Refuse, p.Login, p.To = c.refuse, c.login, "127.0.0.1:1"
			if c.at == "" {
				c.at = p.Addr()
			}
			config := &rest.Config{Host: "https://127.0.0.1:2", Proxy: http.ProxyURL(&url.URL{Scheme: c.scheme, Host: c.at, User: url.UserPassword("u", "secret")})}
			if c.scheme == "socks5" {
				config.Proxy = http.ProxyURL(&url.URL{Scheme: c.scheme, Host: c.at})
			}
			dial, err := Dialer(config)
			if err == nil {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if strings.Contains(name, "silent") {
					go func() { // when the proxy has received the request
						if c, err := silent.Accept(); err == nil {
							_, _ = c.Read(make([]byte, 1))
							cancel()
						}
					}()
				}
				_, err = dial(ctx, "tcp", "127.0.0.1:2")
				var op *net.OpError
				if !errors.As(err, &op) || op.Op != "proxyconnect" && op.Op != "socks connect" {
					t.Errorf("the error is not a *net.OpError of the proxy: %#v", err)
				}
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

// If a client certificate is replaced in its file, new connections use the new certificate.
func TestCertificateFilesAreReadAgain(t *testing.T) {
	noProxy(t)
	dir := t.TempDir()
	crt, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	replace := func(name string) {
		c, k, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for file, data := range map[string][]byte{crt: c, key: k} {
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	names := make(chan string, 8)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, VerifyConnection: func(s tls.ConnectionState) error {
		names <- s.PeerCertificates[0].Subject.CommonName
		return nil
	}}
	server.StartTLS()
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), CertFile: crt, KeyFile: key,
	}}
	replace("first")
	to, err := New(config, &Roots{})
	if err != nil {
		t.Fatal(err)
	}
	connect := func() string {
		conn, err := to.Connect(t.Context(), h2conn.Options{})
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		name, _, _ := strings.Cut(<-names, "@")
		return name
	}
	if got := connect(); got != "first" {
		t.Fatalf("connected with certificate %s, want first", got)
	}
	replace("second")
	for connect() != "second" { // client-go caches the file for a second
		if t.Context().Err() != nil {
			t.Fatal("new connections do not use the new certificate")
		}
	}
}
