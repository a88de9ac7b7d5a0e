package scrape

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// No sample of a scrape is settled while the scrape runs, and all are settled once
// it has ended.
func TestSettled(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-answer
	}))
	defer server.Close()
	now := time.UnixMilli(1_800_000_000_000)
	ahead := make(chan time.Duration, 1) // how far the clock has advanced
	ahead <- 0
	r, err := Open(t.TempDir(), []control.ScrapeTarget{{Job: etcd, Instance: "etcd-0", URL: server.URL}}, Options{Now: func() time.Time {
		d := <-ahead
		ahead <- d
		return now.Add(d)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	done := make(chan time.Time)
	go func() {
		at, err := r.ScrapeNow(t.Context())
		if err != nil {
			t.Error(err)
		}
		done <- at
	}()
	<-asked
	<-ahead
	ahead <- time.Minute
	if got := r.Settled(); !got.Before(now) {
		t.Errorf("during the scrape at %v, the recording is settled up to %v", now, got)
	}
	close(answer)
	if at := <-done; r.Settled().Before(at) {
		t.Errorf("after the scrape at %v, the recording is settled up to %v", at, r.Settled())
	}
}
