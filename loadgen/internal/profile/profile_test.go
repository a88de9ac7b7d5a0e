package profile

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// served responds like a component and records the requested URIs.
func served(t *testing.T, answer func(w http.ResponseWriter)) (Source, *[]string) {
	t.Helper()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RequestURI())
		answer(w)
	}))
	t.Cleanup(server.Close)
	return Remote("etcd-0", "etcd", server.URL+"/debug/pprof", server.Client()), &asked
}

// own is a profile of this process.
func own(t *testing.T) []byte {
	t.Helper()
	data, err := Own("loadgen").Take(t.Context(), "goroutine", 0)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestTakeAsksAsPprofDoes(t *testing.T) {
	data := own(t)
	source, asked := served(t, func(w http.ResponseWriter) { _, _ = w.Write(data) })
	for _, kind := range []string{"cpu", "heap", "goroutine", "allocs", "mutex", "block"} {
		got, err := source.Take(t.Context(), kind, 7*time.Second)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes, %v", kind, len(got), err)
		}
	}
	want := "[/debug/pprof/profile?seconds=7 /debug/pprof/heap /debug/pprof/goroutine /debug/pprof/allocs /debug/pprof/mutex /debug/pprof/block]"
	if got := fmt.Sprint(*asked); got != want {
		t.Errorf("requests = %s, want %s", got, want)
	}
}

func TestRefusalsSayWhy(t *testing.T) {
	status := func(code int, text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { http.Error(w, text, code) }
	}
	var empty bytes.Buffer
	if err := gzip.NewWriter(&empty).Close(); err != nil {
		t.Fatal(err)
	}
	for want, answer := range map[string]func(http.ResponseWriter){
		"403 Forbidden: the user is not permitted to get the URL /debug/pprof/mutex":    status(403, "no"),
		"401 Unauthorized: the user is not permitted to get the URL /debug/pprof/mutex": status(401, "no"),
		"404 Not Found: it serves no profiles":                                          status(404, "no"),
		"500 Internal Server Error: could not enable CPU profiling":                     status(500, "could not enable CPU profiling\nmore"),
		"the response of etcd-0 is not a profile: gzip: invalid header":                 func(w http.ResponseWriter) { fmt.Fprint(w, "<!doctype html>") },
		"etcd-0 sampled no mutex events":                                                func(w http.ResponseWriter) { _, _ = w.Write(empty.Bytes()) },
		"the response of etcd-0 is not a profile: EOF":                                  func(http.ResponseWriter) {},
	} {
		source, _ := served(t, answer)
		if _, err := source.Take(t.Context(), "mutex", 0); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestTakeEndsWithItsContext(t *testing.T) {
	over := errors.New("the phase is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	source, _ := served(t, func(http.ResponseWriter) {})
	for _, s := range []Source{source, Own("loadgen")} {
		if _, err := s.Take(ctx, "cpu", time.Hour); !errors.Is(err, over) {
			t.Errorf("%s: %v", s.Component, err)
		}
	}
}

// A process that is busy has samples of CPU time, and one that waits for mutexes has those when it is watched.
func TestOwnProfiles(t *testing.T) {
	stop := Watch([]string{"mutex", "block"})
	defer stop()
	var done atomic.Bool
	busy := make(chan struct{})
	go func() {
		defer close(busy)
		for !done.Load() { // takes CPU time
		}
	}()
	_, err := Own("loadgen").Take(t.Context(), "cpu", time.Second)
	done.Store(true)
	<-busy
	if err != nil {
		t.Error(err)
	}
	if _, err := Own("loadgen").Take(t.Context(), "block", 0); err != nil {
		t.Error(err)
	}
	if _, err := Own("loadgen").Take(t.Context(), "heap", 0); err != nil {
		t.Error(err)
	}
	if _, err := Own("loadgen").Take(t.Context(), "nonsense", 0); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Error(err)
	}
}
