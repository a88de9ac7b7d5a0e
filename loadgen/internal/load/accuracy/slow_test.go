package accuracy

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/load/watch"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Slow consumers let the server fill their window and then read perSecond bytes per second, no matter how much the
// server has to send. Other watches read everything.
func TestSlowConsumers(t *testing.T) {
	for _, encoding := range encodings {
		for _, perSecond := range []int64{0, 1_000, 50_000} {
			t.Run(fmt.Sprintf("%s %d", encoding, perSecond), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					slowConsumers(t, encoding, perSecond)
				})
			})
		}
	}
}

func slowConsumers(t *testing.T, encoding string, perSecond int64) {
	const (
		count  = 6 // every other one is slow
		window = 64 << 10
		size   = 20_000
		events = 60
		// The client returns the window once per tick, so the number of bytes taken may be off by one tick.
		tick = 100 * time.Millisecond
	)
	s, err := stubapi.Start(stubapi.Options{Listener: stubapi.NewPipes()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Fill("storm", "x", 1, size, map[string]string{load.LoadLabel: "watches"})
	l := scenario.Load{Name: "watches", Kind: "watches", Count: count, Rate: 1000, Connect: "shared", Start: "list"}
	l.Resource, l.Encoding, l.Form, l.Objects = "configmaps", encoding, "object", 1
	l.Slow = scenario.SlowWatches{Fraction: 0.5, BytesPerSecond: scenario.Bytes(perSecond), Window: window}
	w, err := watch.New(load.Target{Config: s.Config(), Namespace: "storm", Seed: 1}, l, newPacer(t, "constant", 1000, arrival.Shape{}), one{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.BeginPhase(phase, time.Now())
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { done <- w.Run(ctx) }()
	<-w.AllOpen()

	for range events {
		s.Touch("storm", "x-0")
	}
	synctest.Wait()
	begin, total := time.Now(), int64(events*size)
	for range 12 {
		least := window + perSecond*int64((time.Since(begin)-tick)/time.Millisecond)/1000
		most := window + perSecond*int64((time.Since(begin)+tick)/time.Millisecond)/1000
		slow := 0
		for _, sent := range s.Watches() {
			switch {
			case sent.Taken > total:
			case sent.Taken < least || sent.Taken > most:
				t.Errorf("after %v: watch %d has taken %d bytes, want %d to %d", time.Since(begin), sent.K, sent.Taken, least, most)
				slow++
			default:
				slow++
			}
		}
		if slow != count/2 {
			t.Errorf("after %v: %d of the watches are slow", time.Since(begin), slow)
		}
		time.Sleep(1300 * time.Millisecond)
		synctest.Wait()
	}
	taken, conns := int64(0), map[bool]map[int]bool{true: {}, false: {}}
	for _, sent := range s.Watches() {
		taken += sent.Taken
		conns[sent.Taken > total][sent.Conn] = true
	}
	if r := w.Results()[phase]; r.Slow != count/2 || r.Bytes != taken || r.Reconnects+r.Failed+r.Malformed != 0 {
		t.Errorf("reported %d slow watches and %d bytes, want %d bytes: %+v", r.Slow, r.Bytes, taken, r)
	}
	for conn := range conns[true] {
		if conns[false][conn] {
			t.Errorf("slow watches and others share connection %d", conn)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
