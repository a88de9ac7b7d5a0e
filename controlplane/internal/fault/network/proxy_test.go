package network_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/internal/fault/network"
)

// peer is an HTTPS server that counts its requests.
type peer struct {
	*httptest.Server
	requests atomic.Int64
}

func startPeer(t *testing.T, name string) *peer {
	t.Helper()
	p := &peer{}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.requests.Add(1)
		_, _ = io.WriteString(w, name)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *peer) address() string { return p.Listener.Addr().String() }

const (
	host1 = "etcd-1.stormglass.invalid:2380"
	host2 = "etcd-2.stormglass.invalid:2380"
)

// startProxy starts the proxy of etcd-0 to two peers, and returns it with a client that uses the proxy in the same way
// as etcd.
func startProxy(t *testing.T, peer1, peer2 *peer) (*network.Proxy, *http.Client) {
	t.Helper()
	p, err := network.ListenProxy("etcd-0", "127.0.0.1:0", []network.Target{
		{To: "etcd-1", Host: host1, Upstream: peer1.address()},
		{To: "etcd-2", Host: host2, Upstream: peer2.address()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	roots := x509.NewCertPool()
	roots.AddCert(peer1.Certificate())
	transport := &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: p.Addr()}),
		// The certificate of the test servers contains this name, but not the name in the CONNECT request.
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return p, &http.Client{Transport: transport}
}

func get(ctx context.Context, c *http.Client, host string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/", nil)
	if err != nil {
		return "", err
	}
	response, err := c.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func mustGet(t *testing.T, c *http.Client, host, want string) {
	t.Helper()
	if got, err := get(t.Context(), c, host); err != nil || got != want {
		t.Fatalf("GET %s = %q, %v; want %q", host, got, err, want)
	}
}

func TestProxyResolvesLinksByName(t *testing.T) {
	p, client := startProxy(t, startPeer(t, "one"), startPeer(t, "two"))
	mustGet(t, client, host1, "one")
	mustGet(t, client, host2, "two")
	mustGet(t, client, host2, "two")
	for i, want := range []string{"etcd-0 -> etcd-1", "etcd-0 -> etcd-2"} {
		link := p.Links()[i]
		if _, opened := link.Connections(); link.String() != want || opened != 1 {
			t.Errorf("link %d = %s with %d connections, want %s with one", i, link, opened, want)
		}
	}
}

func TestPartitionAffectsOneLink(t *testing.T) {
	one, two := startPeer(t, "one"), startPeer(t, "two")
	p, client := startProxy(t, one, two)
	mustGet(t, client, host1, "one") // leaves a connection open

	p.Links()[0].Cut()
	type outcome struct {
		body string
		err  error
	}
	outcomes := make(chan outcome)
	const requests = 3 // one on the open connection, two on new connections
	for range requests {
		go func() {
			body, err := get(t.Context(), client, host1)
			outcomes <- outcome{body, err}
		}()
	}
	awaitOpen(t, p.Links()[0], requests)
	for range 20 {
		mustGet(t, client, host2, "two")
	}
	if n := one.requests.Load(); n != 1 {
		t.Errorf("%d requests reached the peer over a cut link", n-1)
	}

	p.Links()[0].Restore()
	for range requests {
		if got := <-outcomes; got.err != nil || got.body != "one" {
			t.Errorf("request after Restore = %+v, want a response of peer one", got)
		}
	}
}

func TestClientTimesOutUnderPartition(t *testing.T) {
	one := startPeer(t, "one")
	p, client := startProxy(t, one, startPeer(t, "two"))
	mustGet(t, client, host1, "one")
	p.Links()[0].Cut()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := get(ctx, client, host1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("request = %v, want the client's own timeout", err)
	}
	p.Links()[0].Restore()
	mustGet(t, client, host1, "one")
	client.CloseIdleConnections()
	awaitOpen(t, p.Links()[0], 0)
}

func TestProxyDelay(t *testing.T) {
	p, client := startProxy(t, startPeer(t, "one"), startPeer(t, "two"))
	const delay = 10 * time.Millisecond
	p.Links()[0].Delay(delay, 0, 0)
	start := time.Now()
	mustGet(t, client, host1, "one")
	// TCP, TLS 1.3 and the request need one round trip each.
	if took := time.Since(start); took < 6*delay {
		t.Errorf("the first request took %s with a delay of %s", took, delay)
	}
	start = time.Now()
	mustGet(t, client, host1, "one")
	if took := time.Since(start); took < 2*delay {
		t.Errorf("the second request took %s with a delay of %s", took, delay)
	}
}

func TestProxyRefusesOtherRequests(t *testing.T) {
	one := startPeer(t, "one")
	p, client := startProxy(t, one, startPeer(t, "two"))
	if _, err := get(t.Context(), client, "etcd-3.stormglass.invalid:2380"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("request to an unknown peer = %v, want Forbidden", err)
	}
	one.Listener.Close()
	if _, err := get(t.Context(), client, host1); err == nil || !strings.Contains(err.Error(), "Bad Gateway") {
		t.Errorf("request to a peer that does not listen = %v, want Bad Gateway", err)
	}
	for request, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: " + host1 + "\r\n\r\n": "405",
		"nonsense\r\n\r\n": "400",
	} {
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		say(t, c, request)
		if got, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 "+want) {
			t.Errorf("response to %q = %q, %v; want status %s", request, got, err, want)
		}
		c.Close()
	}
}

// dialProxy starts the proxy of etcd-0 and connects to it.
func dialProxy(t *testing.T, targets []network.Target) (*network.Proxy, net.Conn) {
	t.Helper()
	p, err := network.ListenProxy("etcd-0", "127.0.0.1:0", targets)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return p, c
}

// A CONNECT request needs only a few hundred bytes. The proxy refuses a header that does not end.
func TestUnterminatedRequestIsRefused(t *testing.T) {
	_, c := dialProxy(t, nil)
	say(t, c, "CONNECT "+host1+" HTTP/1.1\r\nX: ")
	n, err := io.Copy(c, endless{new(atomic.Int64)})
	if err == nil || n > 64<<20 { // the kernel also buffers some bytes
		t.Errorf("the proxy read %d bytes of a header: %v", n, err)
	}
}

// The proxy forwards bytes that a client sends together with the CONNECT request.
func TestEarlyBytesAreKept(t *testing.T) {
	s := startServer(t)
	_, c := dialProxy(t, []network.Target{{To: "etcd-1", Host: host1, Upstream: s.addr()}})
	say(t, c, "CONNECT "+host1+" HTTP/1.1\r\nHost: "+host1+"\r\n\r\nearly")
	hear(t, c, "HTTP/1.1 200 Connection established\r\n\r\nearly")
	exchange(t, c, "later")
}

func TestCloseEndsConnectionsWithoutRequest(t *testing.T) {
	p, c := dialProxy(t, nil)
	say(t, c, "CONN")
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	// The proxy may respond to what it has read before it closes the connection. An open connection would end only at
	// the deadline.
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
}

func TestBadTargets(t *testing.T) {
	for want, targets := range map[string][]network.Target{
		"host of etcd-1":            {{To: "etcd-1", Host: "etcd-1.stormglass.invalid"}},
		"is both etcd-1 and etcd-2": {{To: "etcd-1", Host: host1}, {To: "etcd-2", Host: host1}},
	} {
		if _, err := network.ListenProxy("etcd-0", "127.0.0.1:0", targets); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ListenProxy = %v, want %q in it", err, want)
		}
	}
}
