package balancer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/internal/balancer"
)

// api is a server that responds with its name and can be made unready.
type api struct {
	*httptest.Server
	name    string
	unready atomic.Bool
}

func newAPI(t *testing.T, name string) *api {
	a := &api{name: name}
	a.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/echo":
			_, _ = io.Copy(w, r.Body)
		case r.URL.Path == "/readyz" && a.unready.Load():
			w.WriteHeader(http.StatusInternalServerError)
		default:
			fmt.Fprint(w, name)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *api) address() string { return strings.TrimPrefix(a.URL, "https://") }

// start starts a balancer in front of some servers and waits until it has found all of them ready.
func start(t *testing.T, opts balancer.Options, servers ...*api) *balancer.Balancer {
	t.Helper()
	var backends []balancer.Backend
	for _, s := range servers {
		backends = append(backends, balancer.Backend{Name: s.name, Address: s.address(), Ready: s.URL + "/readyz"})
	}
	health := servers[0].Client() // all test servers have the same certificate
	b, err := balancer.Listen("127.0.0.1:0", backends, health, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

var quick = balancer.Options{Interval: 2 * time.Millisecond, Timeout: 20 * time.Second}

// ready waits until exactly these servers get connections.
func ready(t *testing.T, b *balancer.Balancer, names ...string) {
	t.Helper()
	await(t, fmt.Sprint("ready are ", names), func() bool {
		var now []string
		for _, s := range b.States() {
			if s.Ready {
				now = append(now, s.Name)
			}
		}
		return strings.Join(now, " ") == strings.Join(names, " ")
	})
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatal("never: ", what)
		case <-tick.C:
		}
	}
}

// ask sends a request over a new connection, and returns the name of the server that responds.
func ask(t *testing.T, b *balancer.Balancer, a *api) string {
	t.Helper()
	transport := a.Client().Transport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	resp, err := (&http.Client{Transport: transport}).Get("https://" + b.Address() + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// held opens a raw connection through the balancer.
func held(t *testing.T, b *balancer.Balancer) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", b.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func connections(b *balancer.Balancer) (all []int) {
	for _, s := range b.States() {
		all = append(all, s.Connections)
	}
	return all
}

func TestConnectionsAreSpread(t *testing.T) {
	x, y := newAPI(t, "x"), newAPI(t, "y")
	b := start(t, quick, x, y)
	ready(t, b, "x", "y")
	for n := 1; n <= 10; n++ {
		held(t, b)
		await(t, "each connection finds a server", func() bool { c := connections(b); return c[0]+c[1] == n })
	}
	if c := connections(b); c[0] != 5 || c[1] != 5 {
		t.Errorf("10 connections are spread %v, want 5 and 5", c)
	}
}

// TestUnreadyServerDrains checks that an unready server gets no new connections and keeps its existing ones.
func TestUnreadyServerDrains(t *testing.T) {
	x, y := newAPI(t, "x"), newAPI(t, "y")
	b := start(t, quick, x, y)
	ready(t, b, "x", "y")
	for range 2 {
		held(t, b)
	}
	await(t, "one on each", func() bool { c := connections(b); return c[0] == 1 && c[1] == 1 })
	x.unready.Store(true)
	ready(t, b, "y")
	for range 5 {
		if got := ask(t, b, x); got != "y" {
			t.Errorf("a new connection went to %s", got)
		}
	}
	if c := connections(b); c[0] != 1 {
		t.Errorf("the unready server has %d connections, want 1", c[0])
	}
	x.unready.Store(false)
	ready(t, b, "x", "y")
}

// TestDeadServerLosesItsConnections checks that the clients of a server that responds to no check lose their
// connections immediately, instead of waiting for their own timeouts.
func TestDeadServerLosesItsConnections(t *testing.T) {
	x, y := newAPI(t, "x"), newAPI(t, "y")
	// silent listens and never responds, like a stopped process.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	b, err := balancer.Listen("127.0.0.1:0", []balancer.Backend{
		{Name: "silent", Address: silent.Addr().String(), Ready: "https://" + silent.Addr().String() + "/readyz"},
	}, x.Client(), balancer.Options{Interval: time.Millisecond, Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	conn := held(t, b)
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("read from a dead server = %v, want io.EOF", err)
	}
	// Nothing listens at the address of the other dead server.
	both := start(t, quick, x, y)
	ready(t, both, "x", "y")
	x.Close()
	ready(t, both, "y")
	for range 4 {
		if got := ask(t, both, y); got != "y" {
			t.Errorf("response from %s, want y", got)
		}
	}
}

// TestBalancerForwardsAllBytes sends much data in both directions at the same time, and ends one direction before the
// other.
func TestBalancerForwardsAllBytes(t *testing.T) {
	x := newAPI(t, "x")
	b := start(t, quick, x)
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	client := &http.Client{Transport: x.Client().Transport}
	resp, err := client.Post("https://"+b.Address()+"/echo", "text/plain", bytes.NewReader(want))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, want) {
		t.Errorf("received %d of %d bytes: %v", len(got), len(want), err)
	}
}

// TestHalfClose checks that a client that has closed its write side still receives the response.
func TestHalfClose(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		all, _ := io.ReadAll(conn) // until the client has ended
		_, _ = conn.Write(bytes.ToUpper(all))
	}()
	b, err := balancer.Listen("127.0.0.1:0", []balancer.Backend{{Name: "x", Address: listener.Addr().String(), Ready: "https://x/"}}, unreachable(), balancer.Options{Interval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	conn := held(t, b)
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "HELLO" {
		t.Errorf("response = %q, %v; want HELLO", got, err)
	}
}

// unreachable returns a client whose checks get no response.
func unreachable() *http.Client { return &http.Client{Transport: refuse{}} }

type refuse struct{}

func (refuse) RoundTrip(*http.Request) (*http.Response, error) { return nil, os.ErrDeadlineExceeded }

func TestCloseReleasesEverything(t *testing.T) {
	x := newAPI(t, "x")
	b := start(t, quick, x)
	ready(t, b, "x")
	conns := []net.Conn{held(t, b), held(t, b)}
	await(t, "both have a server", func() bool { return connections(b)[0] == 2 })
	b.Close()
	for _, conn := range conns {
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("a connection is open after Close")
		}
	}
	if _, err := net.Dial("tcp", b.Address()); err == nil {
		t.Error("the balancer still listens after Close")
	}
	b.Close() // a second Close has no effect
}

func TestAddressTaken(t *testing.T) {
	x := newAPI(t, "x")
	b := start(t, quick, x)
	if _, err := balancer.Listen(b.Address(), nil, x.Client(), quick); err == nil {
		t.Error("a second balancer could listen at the same address")
	}
}
