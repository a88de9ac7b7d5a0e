package h2conn

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn/h2test"
)

// CancelWith calls End once. Then the stream may be reused.
func TestCancelWithEndsOnce(t *testing.T) {
	s := h2test.Serve(t, h2test.Options{Answer: h2test.Respond(200, []byte("{}"))})
	c := to(t, s, Options{Queued: true})
	mine := errors.New("mine")
	var stream Stream
	cancelled := 0
	for range 2000 {
		h := collect()
		for c.TryOpen(&stream, get, []byte("/"), nil, h) == ErrBusy {
		}
		if stream.CancelWith(mine) {
			cancelled++
			if err := h.wait(t); err != mine {
				t.Fatalf("the cancelled stream ended with %v", err)
			}
		} else if err := h.wait(t); err != nil {
			t.Fatalf("the stream ended with %v", err)
		}
		if h.ends.Load() != 1 {
			t.Fatal("ended twice")
		}
	}
	if cancelled == 0 {
		t.Error("CancelWith never came before the response")
	}
}

// TryOpen and reading complete responses allocate nothing, except in crypto/tls.
func TestTryOpenDoesNotAllocate(t *testing.T) {
	s := h2test.Serve(t, h2test.Options{})
	c := to(t, s, Options{Queued: true})
	path, body := []byte("/api/v1/namespaces/default/configmaps/x"), bytes.Repeat([]byte("x"), 500)
	put := NewTemplate(Request{Method: "PUT", ContentType: "application/json"})
	var stream Stream
	h := collect()
	open := func() {
		if err := c.TryOpen(&stream, put, path, body, h); err != nil {
			t.Fatal(err)
		}
		stream.Cancel()
		c.mu.Lock() // discard what the writer would have sent
		c.out = c.out[:0]
		c.mu.Unlock()
	}
	if n := testing.AllocsPerRun(1000, open); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}

// A template can be used on several connections. The server receives the whole request on each of them.
func TestTemplateCarriesEverything(t *testing.T) {
	addr, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintln(w, r.Method, r.URL, r.Host, r.ContentLength, string(body))
		_ = r.Header.Write(w)
	})
	long := strings.Repeat("x", 40_000) // needs several frames
	template := NewTemplate(Request{
		Method: "PATCH", Accept: "text/y", ContentType: "text/z", UserAgent: "agent",
		Extra: http.Header{"Impersonate-Group": {"a", "b"}, "X-Long": {long}},
	})
	want := fmt.Sprintf("PATCH /a?b=c%%2Cd %s 5 hello\nAccept: text/y\r\nContent-Length: 5\r\nContent-Type: text/z\r\nImpersonate-Group: a\r\nImpersonate-Group: b\r\nUser-Agent: agent\r\nX-Long: %s\r\n", addr, long)
	for range 2 {
		c := mustDial(t, addr, config)
		for range 2 {
			w := &waiter{done: make(chan struct{})}
			if err := c.TryOpen(&Stream{}, template, []byte("/a?b=c%2Cd"), []byte("hello"), w); err != nil {
				t.Fatal(err)
			}
			if <-w.done; w.err != nil || string(w.response.Body) != want {
				t.Fatalf("%v; the server read\n%s", w.err, w.response.Body)
			}
		}
	}
}
