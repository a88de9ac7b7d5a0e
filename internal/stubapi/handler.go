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

// ServeHandler serves a test's own handler over TLS and HTTP/2 until the test ends, and returns how clients reach it.
func ServeHandler(t testing.TB, h http.Handler) *rest.Config {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// Watches hands a test the watches that clients open at its handler.
type Watches struct {
	t      testing.TB
	opened chan *OpenWatch
}

// OpenWatch is one watch. The test sends events as they go over the wire, and closes the channel to end it.
type OpenWatch struct {
	Path, Version string // of the request
	Events        chan string
}

// NewWatches makes Watches for a test.
func NewWatches(t testing.TB) *Watches { return &Watches{t, make(chan *OpenWatch)} }

// Serve answers a watch with the events of the test, until it ends or the client leaves.
func (w *Watches) Serve(rw http.ResponseWriter, r *http.Request, contentType string) {
	w.serve(rw, r, contentType, func(open *OpenWatch) {
		select {
		case w.opened <- open:
		case <-r.Context().Done():
		}
	})
}

// ServeSilent answers a watch that the test is not about: nothing happens in it.
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

// Next waits for the next watch that is opened.
func (w *Watches) Next() *OpenWatch {
	w.t.Helper()
	select {
	case open := <-w.opened:
		return open
	case <-w.t.Context().Done():
		w.t.Fatal("no watch was opened")
		return nil
	}
}

// RunBeside runs f until the test ends, which must then return that it was cancelled.
func RunBeside(t testing.TB, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	})
}
