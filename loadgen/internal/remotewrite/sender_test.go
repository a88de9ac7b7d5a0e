package remotewrite_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/remotewrite"
	"github.com/stormglass/stormglass/loadgen/result"
)

// sending is a Sender at work.
type sending struct {
	s     *remotewrite.Sender
	end   context.CancelFunc
	hurry chan struct{}
	done  chan struct{}

	mu     sync.Mutex
	logged *sync.Cond
	said   string
}

// await waits until a line is logged.
func (x *sending) await(line string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for !strings.Contains(x.said, line) {
		x.logged.Wait()
	}
}

// start begins to send a recording to a receiver, with very short waits.
func start(t *testing.T, rec *recording, c remotewrite.Config, drain time.Duration) *sending {
	t.Helper()
	if c.Retry == 0 {
		c.Retry = time.Millisecond
	}
	client, err := remotewrite.New(c)
	if err != nil {
		t.Fatal(err)
	}
	x := &sending{hurry: make(chan struct{}), done: make(chan struct{})}
	x.logged = sync.NewCond(&x.mu)
	x.s = remotewrite.NewSender(client, remotewrite.Options{
		Samples: rec.Live(), Settled: rec.Settled, From: time.UnixMilli(rec.now.Load()), Every: time.Millisecond,
		Labels: map[string]string{"run": "mine"}, Drain: drain, Log: func(format string, args ...any) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.said += fmt.Sprintf(format, args...) + "\n"
			x.logged.Broadcast()
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	x.end = cancel
	go func() {
		defer close(x.done)
		x.s.Run(ctx, x.hurry)
	}()
	t.Cleanup(func() { cancel(); <-x.done })
	return x
}

// finish ends the recording and returns the samples that were sent.
func (x *sending) finish() result.RemoteWrite {
	x.end()
	<-x.done
	return x.s.Stats()
}

const (
	away = http.StatusServiceUnavailable
	long = time.Hour
)

func refuse(code int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "out of order sample", code)
		return false
	}
}

// A receiver that is unavailable for a time has all samples in the end, each once and in order. They include the zero
// before a counter that appears late, and the ends of series.
func TestAbsentReceiverMissesNothing(t *testing.T) {
	rec, stub := record1(t), newReceiver(t)
	rec.etcd.Add("etcd_server_leader_changes_seen_total", 1)
	x := start(t, rec, remotewrite.Config{URL: stub.url}, long)
	at := rec.scrape()
	rec.pass(time.Second)
	stub.await(`{__name__="up", instance="etcd-0", job="etcd", run="mine"}`, at) // the zero of the late counter has this time, too

	stub.answers(refuse(away))
	rec.etcd.Add("etcd_server_slow_apply_total", 3)
	rec.pass(5 * time.Second)
	rec.scrape()
	rec.pass(5 * time.Second)
	x.await("fails; trying again: server returned HTTP status 503")
	rec.etcd.SetDown(true)
	rec.scrape()
	rec.pass(2 * time.Minute)
	rec.etcd.SetDown(false)
	rec.scrape()
	stub.answers(nil)
	got := x.finish()
	x.await("works again")

	want, n := rec.contents("run", "mine")
	stub.mu.Lock()
	defer stub.mu.Unlock()
	if has, wants := bits(stub.samples), bits(want); !maps.Equal(has, wants) {
		t.Errorf("the receiver has\n%v\nwant\n%v", has, wants)
	}
	if got.Sent != n || got.Refused+got.Unsent != 0 || got.Lost("runs/x") != "" {
		t.Errorf("%+v, of %d samples", got, n)
	}
	zero := want[`{__name__="etcd_server_slow_apply_total", instance="etcd-0", job="etcd", run="mine"}`]
	if len(zero) == 0 || zero[0].T != at || zero[0].F != 0 {
		t.Errorf("the late counter has no zero: %v", zero)
	}
}

// Samples that are refused are counted and not sent again; the next are sent.
func TestRefusedSamplesAreCounted(t *testing.T) {
	rec, stub := record1(t), newReceiver(t)
	stub.answers(refuse(http.StatusBadRequest))
	x := start(t, rec, remotewrite.Config{URL: stub.url}, long)
	rec.scrape()
	rec.pass(time.Second)
	x.await("rejects samples")
	_, first := rec.contents("run", "mine")
	stub.answers(nil)
	rec.pass(5 * time.Second)
	rec.scrape()
	got := x.finish()
	_, all := rec.contents("run", "mine")
	if got.Refused != first || got.Sent != all-first || got.Unsent != 0 {
		t.Errorf("%+v, of %d samples and then %d", got, first, all-first)
	}
	if said := got.Lost("runs/x"); !strings.Contains(said, "rejected") || !strings.Contains(said, "out of order sample") || strings.Contains(said, "\n") {
		t.Errorf("Lost = %q, want one line about the rejected samples", said)
	}
}

// A receiver that accepts connections and never answers does not delay the recording, and delays its end only for the
// time Options.Drain. The unsent samples are counted.
func TestSilentReceiverHoldsUpNothing(t *testing.T) {
	rec, stub := record1(t), newReceiver(t)
	over := make(chan struct{})
	t.Cleanup(func() { close(over) }) // before the server closes
	stub.answers(func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-r.Context().Done():
		case <-over:
		}
		return false
	})
	x := start(t, rec, remotewrite.Config{URL: stub.url}, time.Millisecond)
	first := rec.scrape()
	rec.pass(time.Second)
	<-stub.asked
	for range 20 {
		rec.pass(5 * time.Second)
		rec.scrape()
	}
	got := x.finish()
	_, all := rec.contents("run", "mine")
	if got.Unsent != all || got.Sent != 0 || got.UnsentFrom.UnixMilli() != first {
		t.Errorf("%+v, of %d samples from %d", got, all, first)
	}
	if said := got.Lost("runs/x"); !strings.Contains(said, "loadgen export runs/x --format remote-write") {
		t.Errorf("how to send the rest is not said: %q", said)
	}
}

// A user who does not want to wait ends the sending.
func TestHurryEndsSending(t *testing.T) {
	rec, stub := record1(t), newReceiver(t)
	stub.answers(refuse(away))
	x := start(t, rec, remotewrite.Config{URL: stub.url}, long)
	rec.scrape()
	rec.pass(time.Second)
	<-stub.asked
	x.end()
	close(x.hurry)
	if got := x.finish(); got.Unsent == 0 || got.Sent != 0 {
		t.Errorf("%+v", got)
	}
}

// A body that breaks off, a redirect and an endless response are not a success.
func TestStrangeAnswers(t *testing.T) {
	elsewhere := newReceiver(t)
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		sent   bool // a retry sends the samples
	}{
		"broken off": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(http.StatusOK)
			panic(http.ErrAbortHandler)
		}, true},
		"redirect": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, elsewhere.url, http.StatusFound)
			return false
		}, false},
		"endless": {func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(http.StatusBadRequest)
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					break
				}
			}
			return false
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			rec, stub := record1(t), newReceiver(t)
			stub.answers(c.answer)
			x := start(t, rec, remotewrite.Config{URL: stub.url}, long)
			rec.scrape()
			rec.pass(time.Second)
			if <-stub.asked; c.sent {
				x.await("trying again")
				stub.answers(nil)
			}
			got := x.finish()
			if c.sent != (got.Sent > 0) || c.sent == (got.Refused > 0) || got.Unsent > 0 || len(got.Error) > 1000 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Headers come from a file, and no error shows them.
func TestHeaders(t *testing.T) {
	rec, stub := record1(t), newReceiver(t)
	file := filepath.Join(t.TempDir(), "headers")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# of the team\nX-Scope-OrgID: storms\n\nauthorization: Bearer s3cret\n")
	x := start(t, rec, remotewrite.Config{URL: stub.url + "?token=s3cret", HeaderFile: file}, long)
	rec.scrape()
	rec.pass(time.Second)
	if got := x.finish(); got.Sent == 0 || strings.Contains(got.URL, "s3cret") {
		t.Errorf("%+v", got)
	}
	stub.mu.Lock()
	for name, want := range map[string]string{
		"X-Scope-OrgID": "storms", "Authorization": "Bearer s3cret", "Content-Encoding": "snappy",
		"Content-Type": "application/x-protobuf", "X-Prometheus-Remote-Write-Version": "0.1.0",
	} {
		if got := stub.headers.Get(name); got != want && !strings.HasPrefix(got, want+";") {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	stub.mu.Unlock()
	for text, want := range map[string]string{
		"Bearer s3cret\n":                    "line 1 is not a header",
		"\nX-A: b\n s3 cret: x\n":            "line 3 is not a header",
		"Content-Type: text/s3cret\n":        "the protocol sets Content-Type",
		"X-A: s3cret\x00\n":                  "line 1 is not a header",
		"content-encoding: gzip, s3cret\n\n": "the protocol sets Content-Encoding",
	} {
		write(text)
		_, err := remotewrite.New(remotewrite.Config{URL: stub.url, HeaderFile: file})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for _, url := range []string{"", "9090", "ftp://127.0.0.1/write", "http://", "http://me:s3cret@127.0.0.1/write", "s3cret@host?x"} {
		if _, err := remotewrite.New(remotewrite.Config{URL: url}); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// If not all samples fit into one request, several requests send them, and none twice.
func TestManyRequests(t *testing.T) {
	rec, stub := record1(t), newReceiver(t)
	for i := range 7000 {
		rec.etcd.Add(fmt.Sprintf(`etcd_server_slow_apply_total{n="%d"}`, i), 1)
	}
	x := start(t, rec, remotewrite.Config{URL: stub.url}, long)
	rec.scrape()
	rec.pass(5 * time.Second)
	rec.scrape()
	got := x.finish()
	want, n := rec.contents("run", "mine")
	stub.mu.Lock()
	defer stub.mu.Unlock()
	if got.Sent != n || n < 14_000 || !maps.Equal(bits(stub.samples), bits(want)) {
		t.Errorf("%+v, of %d samples; the receiver has %d series of %d", got, n, len(stub.samples), len(want))
	}
}
