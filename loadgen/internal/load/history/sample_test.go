package history

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
)

// The samples record a fault's effects on a history's clients and watchers: the outcomes of its requests, with
// conflicts among the successes, and watches that broke or had to list again. They record nothing after the load.
func TestHistoryOutcomesAreSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		beats, err := samples.Open(dir, nil)
		must(t, err)
		s, err := stubapi.Start(stubapi.Options{Listener: stubapi.NewPipes(), Policy: stubapi.Fixed(time.Millisecond)})
		must(t, err)
		defer s.Close()
		l, err := New(load.Target{Config: s.Config(), Namespace: "storm", Seed: 7, Samples: beats}, Config{Name: "registers", Rate: 40, Timeout: time.Second})
		must(t, err)
		must(t, l.Prepare(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		time.Sleep(5 * time.Second) // virtual
		s.SetPolicy(stubapi.Always(stubapi.Answer{Status: 503}))
		time.Sleep(3 * time.Second)
		s.SetPolicy(stubapi.Always(stubapi.Answer{Fault: stubapi.Silence}))
		time.Sleep(3 * time.Second)
		s.SetPolicy(stubapi.Fixed(time.Millisecond))
		s.EndWatches()
		time.Sleep(5 * time.Second)
		s.Compact()
		s.EndWatches()
		must(t, <-done)
		s.SetPolicy(stubapi.Always(stubapi.Answer{Status: 500}))
		late, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		must(t, l.Finish(late, t.Logf))
		must(t, beats.Close())
		slots, err := samples.Read(dir)
		must(t, err)

		var ok, conflicts, broke, relists int64
		failed := map[string]int64{}
		for _, slot := range slots {
			r, w := slot.Requests["registers"], slot.Streams["registers"]
			ok, broke, relists = ok+r.Succeeded, broke+w.Breaks, relists+w.Relists
			for outcome, n := range r.Failed {
				failed[outcome] += n
			}
		}
		r := l.Results()
		conflicts = r.Writes.Conflicts
		if ok == 0 || conflicts == 0 || failed["503"] == 0 || failed["timeout"] == 0 || len(failed) != 2 {
			t.Errorf("%d succeeded, %d of them conflicts; failed: %v, want 503 and timeout", ok, conflicts, failed)
		}
		if broke < 6 || relists == 0 || relists != r.Relists {
			t.Errorf("%d watches broke and %d relisted; 3 were ended twice, and the history has %d relists", broke, relists, r.Relists)
		}
	})
}
