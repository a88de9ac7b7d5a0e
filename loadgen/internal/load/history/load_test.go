package history

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/history/check"
	"github.com/stormglass/stormglass/loadgen/result"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// past runs a load against a stub in virtual time, calls the given function meanwhile, and returns the results.
func past(t *testing.T, o stubapi.Options, c Config, length time.Duration, meanwhile func(*stubapi.Server)) result.History {
	t.Helper()
	o.Listener = stubapi.NewPipes()
	s, err := stubapi.Start(o)
	must(t, err)
	defer s.Close()
	c.Name = "history"
	l, err := New(load.Target{Config: s.Config(), Namespace: "storm", Seed: 7}, c)
	must(t, err)
	must(t, l.Prepare(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	done := make(chan error)
	go func() { done <- l.Run(ctx) }()
	if meanwhile != nil {
		meanwhile(s)
	}
	must(t, <-done)
	s.SetPolicy(stubapi.Fixed(time.Millisecond))
	must(t, l.Finish(t.Context(), t.Logf))
	return l.Results()
}

// An API server that fails only in ways that the API allows causes no violations.
func TestBadButTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := []stubapi.Answer{
			{Status: 500}, {Status: 503}, {Status: 429}, {Status: 403}, {Status: 504},
			{Fault: stubapi.Reset}, {Fault: stubapi.Reset, Commits: true}, {Fault: stubapi.Hangup}, {Fault: stubapi.Hangup, Commits: true},
			{Fault: stubapi.Silence}, {Fault: stubapi.Silence, Commits: true}, {Fault: stubapi.GoAway}, {Fault: stubapi.Cut}, {Fault: stubapi.Garbled},
			{After: 700 * time.Millisecond}, {Ack: 700 * time.Millisecond}, {After: 400 * time.Millisecond, Ack: 50 * time.Millisecond},
		}
		// After the preparations, every other request is a fault.
		policy := func(r stubapi.Request) stubapi.Answer {
			if r.N < 20 || r.Watch || r.N%2 == 0 {
				return stubapi.Answer{After: 3 * time.Millisecond, Ack: 2 * time.Millisecond}
			}
			return faults[int(r.N/2)%len(faults)]
		}
		o := stubapi.Options{Policy: policy, EventDelay: func(k, n int64) time.Duration { return time.Duration((k+n)%9) * time.Millisecond }}
		r := past(t, o, Config{Rate: 40, Timeout: 500 * time.Millisecond}, time.Minute, func(s *stubapi.Server) {
			for range 5 {
				time.Sleep(4 * time.Second) // virtual
				s.Bookmark()
				time.Sleep(4 * time.Second)
				s.EndWatches()
			}
			s.Compact()
			s.EndWatches()
		})
		if r.ViolationCount > 0 || len(r.Unjudged) > 0 || r.Linearizable != "yes" {
			t.Errorf("violations %+v and unjudged %q, want none", r.Violations, r.Unjudged)
		}
		for what, n := range map[string]int64{
			"acknowledged": r.Writes.Succeeded, "conflicting": r.Writes.Conflicts, "refused": r.Writes.Refused, "unknown": r.Writes.Unknown, "unknown, and happened": r.UnknownHappened,
			"read": r.Reads.Succeeded, "cached": r.CachedReads.Succeeded, "skipped": r.Skipped,
			"events": r.Events, "bookmarks": r.Bookmarks, "resumed": r.Resumes, "relisted": r.Relists,
		} {
			if n == 0 {
				t.Errorf("nothing is %s: %+v", what, r)
			}
		}
	})
}

// A whole run finds the faults of a watch.
func TestWatchFaults(t *testing.T) {
	for kind, spoil := range map[string]stubapi.Spoil{
		result.MissedEvent: stubapi.Drop, result.DoubledEvent: stubapi.Double, result.ReorderedEvent: stubapi.Swap,
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := stubapi.Options{Script: stubapi.Spoils(map[int64]map[int64]stubapi.Spoil{1: {12: spoil}})}
				r := past(t, o, Config{}, 10*time.Second, nil)
				if r.ViolationCount != 1 || r.ViolationCounts[kind] != 1 {
					t.Errorf("violations: %v, want one of %s", r.ViolationCounts, kind)
				}
			})
		})
	}
}

// Events that were missing because of a 410 or a malformed stream are delivered afterwards.
func TestWatchesComeBack(t *testing.T) {
	for _, spoil := range []stubapi.Spoil{stubapi.Gone, stubapi.End, stubapi.Abort, stubapi.Garble} {
		synctest.Test(t, func(t *testing.T) {
			o := stubapi.Options{Script: stubapi.Spoils(map[int64]map[int64]stubapi.Spoil{0: {5: spoil}, 1: {9: spoil}, 3: {2: spoil}})}
			r := past(t, o, Config{}, 10*time.Second, nil)
			if r.ViolationCount > 0 || len(r.Unjudged) > 0 {
				t.Errorf("spoil %d: %+v, unjudged %q", spoil, r.Violations, r.Unjudged)
			}
			if back := r.Resumes + r.Relists; back != 3 {
				t.Errorf("spoil %d: %d watches came back, want 3", spoil, back)
			}
		})
	}
}

// A load waits until a control plane has recovered from a fault of an earlier phase.
func TestBeginOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := stubapi.Start(stubapi.Options{Listener: stubapi.NewPipes()})
		must(t, err)
		defer s.Close()
		l, err := New(load.Target{Config: s.Config(), Namespace: "storm"}, Config{Name: "history"})
		must(t, err)
		must(t, l.Prepare(t.Context()))
		s.SetPolicy(stubapi.Always(stubapi.Answer{Status: 503}))
		time.AfterFunc(10*time.Second, func() { s.SetPolicy(stubapi.Fixed(time.Millisecond)) })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		must(t, l.Run(ctx))
		must(t, l.Finish(t.Context(), t.Logf))
		if r := l.Results(); r.Resumes+r.Relists > 0 || r.ViolationCount > 0 || len(r.Unjudged) > 0 {
			t.Errorf("%+v, unjudged %q", r.Violations, r.Unjudged)
		}
	})
}

// If the control plane does not recover, the history is reported as unjudged.
func TestNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := stubapi.Start(stubapi.Options{Listener: stubapi.NewPipes()})
		must(t, err)
		defer s.Close()
		l, err := New(load.Target{Config: s.Config(), Namespace: "storm"}, Config{Name: "history", Timeout: time.Second})
		must(t, err)
		must(t, l.Prepare(t.Context()))
		if err := l.Finish(t.Context(), t.Logf); err == nil {
			t.Error("Finish succeeds for a load that has not run")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		must(t, l.Run(ctx))
		s.SetPolicy(stubapi.Always(stubapi.Answer{Status: 503}))
		s.EndWatches()
		ending, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		must(t, l.Finish(ending, t.Logf))
		r := l.Results()
		if r.ViolationCount > 0 || len(r.Unjudged) < 5 {
			t.Errorf("%+v, unjudged %q", r.Violations, r.Unjudged)
		}
	})
}

// One wrong response of the store is found, and the evidence is written.
func TestLies(t *testing.T) {
	for name, c := range map[string]struct {
		tell   lie
		method string
		want   string
	}{
		"an acknowledged write is not kept": {forgotten, http.MethodPut, result.LostWrite},
		"a read gives an old state":         {outdated, http.MethodGet, result.NotLinearizable},
		"a write is answered as a conflict": {denied, http.MethodPut, result.Phantom},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLiar(t, func(r *http.Request, n int) lie {
				if n < 30 || r.Method != c.method {
					return truth
				}
				return c.tell
			})
			dir := t.TempDir()
			l, err := New(s.target(), Config{
				Name: "history", Registers: 1, Clients: 1, Rate: 300, Watchers: -1, Quiet: time.Millisecond, Timeout: time.Minute, Dir: dir,
			})
			must(t, err)
			must(t, l.Prepare(t.Context()))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error)
			go func() { done <- l.Run(ctx) }()
			<-s.seen
			cancel()
			must(t, <-done)
			must(t, l.Finish(t.Context(), t.Logf))
			r := l.Results()
			if r.ViolationCounts[c.want] == 0 {
				t.Errorf("violations: %v, want %s", r.ViolationCounts, c.want)
			}
			for _, name := range r.Files {
				is, err := os.Stat(filepath.Join(dir, name))
				must(t, err)
				if is.Mode() != 0o600 {
					t.Errorf("%s is %s; it holds what others must not read", name, is.Mode())
				}
			}
			if !slices.Contains(r.Files, "history-history.json") {
				t.Errorf("evidence = %q", r.Files)
			}
		})
	}
}

func TestOutcome(t *testing.T) {
	absent := `{"reason":"NotFound","details":{"kind":"configmaps"}}`
	for _, c := range []struct {
		kind   check.Kind
		status int
		body   string
		want   check.Outcome
	}{
		{check.Write, 200, "", check.OK}, {check.Read, 200, "", check.OK},
		{check.Write, 409, "", check.Conflict}, {check.Write, 404, absent, check.Absent}, {check.Read, 404, absent, check.OK},
		{check.Read, 404, "404 page not found", check.Refused}, {check.Write, 404, `{"reason":"NotFound","details":{"kind":"namespaces"}}`, check.Refused},
		{check.Write, 400, "", check.Refused}, {check.Write, 401, "", check.Refused}, {check.Write, 403, "", check.Refused},
		{check.Write, 422, "", check.Refused}, {check.Write, 429, "", check.Refused}, {check.Write, 408, "", check.Unknown},
		{check.Write, 500, "", check.Unknown}, {check.Write, 503, "", check.Unknown}, {check.Write, 504, "", check.Unknown},
	} {
		if got := outcome(c.kind, &h2conn.Response{Header: h2conn.Header{Status: c.status}, Body: []byte(c.body)}, nil); got != c.want {
			t.Errorf("kind %d, status %d, body %q: outcome %d, want %d", c.kind, c.status, c.body, got, c.want)
		}
	}
}

func TestConfig(t *testing.T) {
	for want, c := range map[string]Config{
		"a name":                  {},
		"clients: 101":            {Name: "x", Clients: 101},
		"objects: -1":             {Name: "x", Registers: -1},
		"watchers: 200":           {Name: "x", Watchers: 200},
		"rate: -3":                {Name: "x", Rate: -3},
		"120000 operations":       {Name: "x", Rate: 100, Length: 10 * time.Minute},
		"to 83.3/s":               {Name: "x", Rate: 100, Length: 10 * time.Minute},
		"a negative duration":     {Name: "x", Quiet: -1},
		"no client configuration": {Name: "x"},
	} {
		if _, err := New(load.Target{}, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q in it", c, err, want)
		}
	}
}
