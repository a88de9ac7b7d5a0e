package accuracy

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/replay"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// storm is a recording of 20 s: four clients at random times, a burst every 5 s, and ten watches of 7 s.
func storm(t *testing.T, seed uint64) *recording.Recording {
	t.Helper()
	draw := rand.New(rand.NewPCG(seed, 0))
	h := recording.Header{}
	for i := range 4 {
		h.Actors = append(h.Actors, recording.Actor{Name: fmt.Sprint("client-", i), UserAgent: "test"})
	}
	tr, err := recording.Load(h, func(yield func(recording.Request, error) bool) {
		burst := recording.Micros(5e6)
		for at := recording.Micros(0); at < 20e6; at += recording.Micros(1 + draw.Int64N(20_000)) {
			r := recording.Request{At: at, Actor: draw.IntN(4), Version: "v1", Resource: "configmaps", Namespace: "prod", Code: 200}
			switch n := draw.IntN(10); {
			case n < 6:
				r.Verb, r.Name = "get", fmt.Sprint("c-", draw.IntN(20))
			case n < 9:
				r.Verb, r.Name = "update", fmt.Sprint("c-", draw.IntN(20))
			default:
				r.Verb, r.ResourceVersion = "list", "0"
			}
			if at < 1e6 && r.Verb == "list" {
				r.Verb, r.ResourceVersion, r.Took = "watch", "17", 7e6
			}
			for n := 1; n > 0; n-- {
				if at >= burst {
					n, burst = 60, burst+5e6
				}
				if !yield(r, nil) {
					return
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// The API server receives exactly the recording: each request at its time, the same counts and dispersion by second, and
// each watch for its recorded duration, at any speed and in any number of copies.
func TestReplayIsItsRecording(t *testing.T) {
	for _, c := range []struct {
		speed  float64
		copies int
	}{{1, 1}, {2, 1}, {0.5, 1}, {1, 3}, {4, 2}} {
		t.Run(fmt.Sprintf("speed %g copies %d", c.speed, c.copies), func(t *testing.T) {
			const seed = 3
			t.Logf("seed %d", seed)
			synctest.Test(t, func(t *testing.T) {
				s, err := stubapi.Start(stubapi.Options{Listener: stubapi.NewPipes()})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				tr := storm(t, seed)
				l := scenario.Load{
					Name: "tuesday", Kind: "replay", MaxInFlight: 10_000, Connections: 2, Timeout: scenario.Duration(time.Minute), Namespaces: 1,
					Replayed: scenario.Replayed{Recorded: tr, Speed: c.speed, Copies: c.copies, OnMissing: "fail"},
				}
				r, err := replay.New(load.Target{Config: s.Config(), Namespace: "storm", Seed: seed}, l)
				if err != nil {
					t.Fatal(err)
				}
				if err := r.Prepare(t.Context()); err != nil {
					t.Fatal(err)
				}
				before := len(s.Exchanges())
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(30/c.speed*float64(time.Second)))
				defer cancel()
				if err := r.Run(ctx); err != nil {
					t.Fatal(err)
				}
				due := replay.Schedule(tr, replay.Options{Name: "tuesday", Seed: seed, Speed: c.speed, Copies: c.copies}, nil)
				received := s.Exchanges()[before:]
				if len(received) != len(due) {
					t.Fatalf("the server received %d requests, but %d were due", len(received), len(due))
				}
				for i, e := range received {
					if late := e.At.Sub(begin.Add(due[i].At)); late < -time.Millisecond || late > 2*time.Millisecond {
						t.Fatalf("request %d arrived %s after its time %s", i, late, due[i].At)
					}
				}
				faithful(t, r.Replay(), int64(len(due)))
			})
		})
	}
}

func faithful(t *testing.T, got result.Replay, due int64) {
	t.Helper()
	if got.Due != due || got.Sent != due || *got.RateError != 0 {
		t.Errorf("%d of %d sent, rate error %g", got.Sent, got.Due, *got.RateError)
	}
	if got.DispersionDue < 1.5 || *got.DispersionError > 0.02 {
		t.Errorf("dispersion %g of %g due", got.DispersionSent, got.DispersionDue)
	}
	if got.NotFound.Replay != 0 || got.Conflicts.Replay != 0 {
		t.Errorf("404: %+v, 409: %+v, of a recording without any", got.NotFound, got.Conflicts)
	}
	w := got.Watches
	if w.Due == 0 || w.Opened != w.Due || w.EndedEarly != 0 || math.Abs(w.HeldSeconds-w.DueSeconds) > 0.002*float64(w.Due) {
		t.Errorf("%+v", w)
	}
}
