package watch

import (
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// The samples of all slots add up to the results.
func TestSamplesAddUpToTheResults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		during          func(*testing.T, *stub)
		breaks, relists int64
	}{
		"connections lost": {func(t *testing.T, s *stub) {
			s.loseConnections()
			await(t, "all watches again", func() bool { return s.count(&s.watches) >= 2*testWatches })
		}, testWatches, 0},
		// Each watch breaks at the end of its stream, and again when the next
		// stream reports that its version is gone.
		"versions gone": {func(t *testing.T, s *stub) {
			s.end(true)
			await(t, "all watches again", func() bool { return s.count(&s.watches) >= 3*testWatches })
		}, 2 * testWatches, testWatches},
		"nothing": {func(*testing.T, *stub) {}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			recorder, err := samples.Open(dir, nil)
			must(t, err)
			s := newStub(t, func(s *stub) { s.inBand = true })
			target := s.target()
			target.Samples = recorder
			st := startStorm(t, s, target, func(l *scenario.Load) { l.Start = "list" })
			await(t, "some writes", func() bool { return s.count(&s.patches) >= testWrites/3 })
			c.during(t, s)
			enough := s.count(&s.patches) + testWrites
			await(t, "all writes", func() bool { return s.count(&s.patches) >= enough })
			st.stopWrites()
			await(t, "all watches", func() bool { return st.watches.Open() == testWatches })
			// A relist skips what was written meanwhile, which counts as lost.
			if _, err := st.watches.Drain(t.Context(), 2*time.Second); err != nil {
				t.Fatal(err)
			}
			st.stopWatches()
			must(t, recorder.Close())
			slots, err := samples.Read(dir)
			must(t, err)
			var sum samples.StreamSlot
			for _, slot := range slots {
				seen := slot.Streams["watches"]
				sum.Breaks += seen.Breaks
				sum.Relists += seen.Relists
				sum.Delivered += seen.Delivered
			}
			w := st.watches.Results()["storm"]
			if sum.Delivered != w.Delivered || sum.Delivered == 0 || sum.Relists != w.Relists || sum.Relists != c.relists || sum.Breaks != c.breaks {
				t.Errorf("the pulse has %+v; want %d breaks, %d relists and what the results have: %+v", sum, c.breaks, c.relists, w)
			}
		})
	}
}
