package h2conn

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

const patience = 20 * time.Second

// urgent is the number of streams that the connections of these tests keep free.
const urgent = 16

// serve starts a TLS server with few concurrent streams and small windows, so that the tests reach every limit.
func serve(t *testing.T, h http.HandlerFunc) (addr string, config *tls.Config) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams: 40, MaxReceiveBufferPerStream: 70000, MaxReceiveBufferPerConnection: 70000,
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return strings.TrimPrefix(s.URL, "https://"), &tls.Config{RootCAs: roots}
}

func mustDial(t *testing.T, addr string, config *tls.Config) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), addr, Options{TLS: config, Urgent: urgent})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		<-c.Done()
	})
	return c
}

func TestRoundTripCarriesEverything(t *testing.T) {
	addr, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/x")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s %s %s %s", r.Method, r.URL, r.Header.Get("Accept"), r.Header.Get("Authorization"), r.Header.Get("Content-Type"), body)
	})
	c := mustDial(t, addr, config)
	got, err := c.RoundTrip(t.Context(), &Request{
		Method: "PUT", Path: "/a?b=c%2Cd", Accept: "text/y", ContentType: "text/z", Body: []byte("hello"),
		Extra: http.Header{"Authorization": {"Bearer x"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Header{Status: 418, ContentType: "text/x", RetryAfter: 7 * time.Second}
	if got.Header != want || string(got.Body) != "PUT /a?b=c%2Cd text/y Bearer x text/z hello" {
		t.Errorf("%+v %q", got.Header, got.Body)
	}
}

// TestFlowControl sends and receives a body that is larger than every window.
func TestFlowControl(t *testing.T) {
	addr, config := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	c := mustDial(t, addr, config)
	body := bytes.Repeat([]byte("0123456789abcdef"), 700_000) // 11 MB, more than the stream's window of 4 MB
	got, err := c.RoundTrip(t.Context(), &Request{Method: "POST", Path: "/", Body: body})
	if err != nil || !bytes.Equal(got.Body, body) {
		t.Fatalf("%v; got %d of %d bytes back", err, len(got.Body), len(body))
	}
}

func TestServersStreamLimitIsKept(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	addr, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		now--
		mu.Unlock()
	})
	c := mustDial(t, addr, config)
	var wg sync.WaitGroup
	for range 300 {
		wg.Go(func() {
			if r, err := c.RoundTrip(t.Context(), &Request{Method: "POST", Path: "/", Body: []byte("x")}); err != nil || r.Status != 200 {
				t.Errorf("%v %v", r, err)
			}
		})
	}
	wg.Wait()
	if most > 40-urgent {
		t.Errorf("%d concurrent streams, but %d must stay free for urgent requests", most, urgent)
	}
}

// blocked is a server whose /block does not respond until the test ends.
func blocked(t *testing.T) (*Conn, chan struct{}) {
	began := make(chan struct{}, 100)
	addr, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/block" {
			began <- struct{}{}
			<-r.Context().Done()
		}
	})
	return mustDial(t, addr, config), began
}

func TestUrgentRequestsFindAPlace(t *testing.T) {
	c, began := blocked(t)
	for range 40 - urgent {
		if _, err := c.Open(&Request{Method: "GET", Path: "/block"}, &waiter{done: make(chan struct{})}); err != nil {
			t.Fatal(err)
		}
		<-began
	}
	if r, err := c.RoundTrip(t.Context(), &Request{Method: "GET", Path: "/", Urgent: true}); err != nil || r.Status != 200 {
		t.Errorf("%v %v", r, err)
	}
}

func TestCancelledRequestFreesItsStream(t *testing.T) {
	c, began := blocked(t)
	for range 100 { // more than the maximum number of streams
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-began
			cancel()
		}()
		if _, err := c.RoundTrip(ctx, &Request{Method: "GET", Path: "/block"}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if r, err := c.RoundTrip(t.Context(), &Request{Method: "GET", Path: "/"}); err != nil || r.Status != 200 {
		t.Errorf("%v %v", r, err)
	}
}

func TestEndOfConnectionEndsItsStreams(t *testing.T) {
	for name, end := range map[string]func(*Conn){"close": (*Conn).Close, "abort": (*Conn).Abort} {
		t.Run(name, func(t *testing.T) {
			c, began := blocked(t)
			go func() {
				<-began
				end(c)
			}()
			if _, err := c.RoundTrip(t.Context(), &Request{Method: "GET", Path: "/block"}); !errors.Is(err, ErrClosed) {
				t.Errorf("the stream ended with %v, want ErrClosed", err)
			}
			<-c.Done()
			if _, err := c.Open(&Request{Method: "GET", Path: "/"}, &waiter{done: make(chan struct{})}); !errors.Is(err, ErrClosed) || c.Usable() {
				t.Errorf("Open on a closed connection: %v, want ErrClosed", err)
			}
		})
	}
}

func TestGoAwayLetsStreamsFinish(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	addr, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // makes Go's server send a GOAWAY, like an API server's --goaway-chance
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		close(began)
		<-finish
		fmt.Fprint(w, "whole")
	})
	c := mustDial(t, addr, config)
	type outcome struct {
		r   *Response
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		r, err := c.RoundTrip(t.Context(), &Request{Method: "GET", Path: "/"})
		done <- outcome{r, err}
	}()
	<-began
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for c.Usable() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the client did not notice the GOAWAY")
		}
	}
	if _, err := c.Open(&Request{Method: "GET", Path: "/"}, &waiter{done: make(chan struct{})}); !errors.Is(err, ErrGoAway) {
		t.Errorf("Open after a GOAWAY: %v, want ErrGoAway", err)
	}
	close(finish)
	if o := <-done; o.err != nil || string(o.r.Body) != "whole" {
		t.Errorf("the stream that was open before the GOAWAY: %+v", o)
	}
}

func TestServerWithoutHTTP2IsRefused(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	if _, err := Dial(t.Context(), s.Listener.Addr().String(), Options{TLS: &tls.Config{RootCAs: roots}}); err == nil || !strings.Contains(err.Error(), "HTTP/2") {
		t.Errorf("dialled: %v", err)
	}
}
