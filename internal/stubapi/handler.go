package stubapi

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

// ServeHandler serves h over TLS and HTTP/2 until the test ends. It returns a client configuration for this server.
func ServeHandler(t testing.TB, h http.Handler) *rest.Config {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// Watches lets a test control the watches that clients open at the test's HTTP handler.
type Watches struct {
	t      testing.TB
	opened chan *OpenWatch
}

// OpenWatch is one open watch. The test sends encoded events to the channel Events, and closes the channel to end the watch.
type OpenWatch struct {
	Path, Version string // path and resourceVersion of the request
	Events        chan string
}

// NewWatches returns Watches for a test.
func NewWatches(t testing.TB) *Watches { return &Watches{t, make(chan *OpenWatch)} }

// Serve responds to a watch request with the events that the test sends, until the test ends the watch or the client
// disconnects.
func (w *Watches) Serve(rw http.ResponseWriter, r *http.Request, contentType string) {
	w.serve(rw, r, contentType, func(open *OpenWatch) {
		select {
		case w.opened <- open:
		case <-r.Context().Done():
		}
	})
}

// ServeSilent responds to a watch request but sends no events. It returns when the client disconnects. Next does not
// return such a watch.
func (w *Watches) ServeSilent(rw http.ResponseWriter, r *http.Request, contentType string) {
	w.serve(rw, r, contentType, func(*OpenWatch) {})
}

func (w *Watches) serve(rw http.ResponseWriter, r *http.Request, contentType string, announce func(*OpenWatch)) {
	rw.Header().Set("Content-Type", contentType)
	rw.WriteHeader(http.StatusOK)
	rw.(http.Flusher).Flush()
	open := &OpenWatch{Path: r.URL.Path, Version: r.URL.Query().Get("resourceVersion"), Events: make(chan string)}
	announce(open)
	for {
		select {
		case e, more := <-open.Events:
			if !more {
				return
			}
			_, _ = io.WriteString(rw, e)
			rw.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// Next waits until a client opens a watch, and returns it.
func (w *Watches) Next() *OpenWatch {
	w.t.Helper()
	select {
	case open := <-w.opened:
		return open
	case <-w.t.Context().Done():
		w.t.Fatal("no client opened a watch")
		return nil
	}
}

// RunBeside runs f in the background. It cancels f's context when the test ends; the test fails unless f then returns
// context.Canceled.
func RunBeside(t testing.TB, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the function returned %v, want context.Canceled", err)
		}
	})
}
