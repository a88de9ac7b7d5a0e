package run

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// A repeated action counts the rounds that began and the rounds that were due before the phase ended. The due rounds
// include those that passed while the last round ran.
func TestRoundsOfAnActionAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		every, after, takes, phase time.Duration
		due, done                  int64
	}{
		"in time":                {time.Second, 0, 900 * time.Millisecond, 29500 * time.Millisecond, 30, 30},
		"later":                  {time.Second, 10 * time.Second, 0, 29500 * time.Millisecond, 20, 20},
		"each takes too long":    {time.Second, 0, 3500 * time.Millisecond, 29500 * time.Millisecond, 30, 8},
		"the first never ends":   {time.Second, 0, time.Hour, 29500 * time.Millisecond, 30, 1},
		"the last is cut off":    {10 * time.Second, 0, 9 * time.Second, 25 * time.Second, 3, 3},
		"once, without a number": {0, time.Second, time.Second, 29500 * time.Millisecond, 0, 1},
		"once, and cut off":      {0, time.Second, time.Hour, 29500 * time.Millisecond, 0, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.phase)
			defer cancel()
			work := &asked{}
			a := scenario.Action{Every: scenario.Duration(c.every), After: scenario.Duration(c.after)}
			_ = repeat(ctx, a, time.Now(), work, func(ctx context.Context) error {
				select {
				case <-time.After(c.takes):
				case <-ctx.Done():
				}
				return ctx.Err()
			})
			cut := strings.Contains(name, "once, and cut off")
			if work.RoundsDue != c.due || work.Rounds != c.done || work.Cut != cut {
				t.Errorf("%s: %d of %d rounds, cut off %t; want %d of %d, %t", name, work.Rounds, work.RoundsDue, work.Cut, c.done, c.due, cut)
			}
		})
	}
}

// Watches whose first list got no response count as due but never opened, only in the phase of the load.
func TestWatchesThatNeverOpenedWereDue(t *testing.T) {
	s := parse(t, `
phases:
- {name: open, for: 10s, load: [{kind: watches, count: 50, rate: 10/s}]}
- {name: after, for: 5s}
`)
	synctest.Test(t, func(t *testing.T) {
		refuse := stubapi.Only(func(r stubapi.Request) bool {
			return r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/configmaps")
		}, func(stubapi.Request) stubapi.Answer {
			return stubapi.Answer{Status: http.StatusServiceUnavailable}
		})
		server, err := stubapi.Start(stubapi.Options{Listener: stubapi.NewPipes(), NoRecord: true, Policy: refuse})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		ls, err := newLoads(t.Context(), plan.Of(s), load.Target{Config: server.Config(), Namespace: "storm", Namespaces: []string{"storm"}, Seed: 1}, t.TempDir(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var m result.Measurements
		for _, p := range s.Phases {
			ls.beginPhase(p.Name, time.Now())
			m.Phases = append(m.Phases, result.Phase{Name: p.Name})
			stop := ls.start(ls.of(p.Name))
			time.Sleep(p.For.D()) // virtual
			if err := stop(); err != nil {
				t.Error(err)
			}
			ls.drain(t.Context(), ls.of(p.Name))
		}
		ls.stopAll()
		if err := ls.addTo(&m); err != nil {
			t.Fatal(err)
		}
		if w := m.Phases[0].Watches; len(w) != 1 || w[0].Due != 50 || w[0].Open != 0 {
			t.Errorf("watches in the phase of the load: %+v, want 50 due and none open", w)
		}
		if w := m.Phases[1].Watches; len(w) != 0 {
			t.Errorf("watches after the phase of the load: %+v, want none", w)
		}
	})
}
