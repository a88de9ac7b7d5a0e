package run

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A fault that takes time to begin is requested early, so that it is active at its scheduled time.
func TestSlowFaultsAreRequestedEarly(t *testing.T) {
	r := underway(t, parse(t, "phases: [{name: p, for: 20s, faults: [{kind: diskContention, for: 1s, repeat: 2, every: 10s}]}]"))
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		s.takes = 70 * time.Millisecond
		r.phases.supervisor = s
		ctx, fail := context.WithCancelCause(t.Context())
		defer fail(nil)
		faults := r.phases.startFaults(ctx, &r.o.Scenario.Phases[0], time.Now(), fail)
		time.Sleep(20 * time.Second)
		if err := faults.end(ctx); err != nil {
			t.Fatal(err)
		}
		if want := []string{"70ms begin diskContention", "10.03s begin diskContention"}; !slices.Equal(s.log, want) {
			t.Errorf("%q, want %q", s.log, want)
		}
	})
}
