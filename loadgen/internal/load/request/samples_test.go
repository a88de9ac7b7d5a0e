package request

import (
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn/h2test"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// The samples of all slots add up to the results.
func TestSamplesAddUpToTheResults(t *testing.T) {
	for name, status := range map[string]int{"answered": 200, "refused": 503} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			recorder, err := samples.Open(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			s := h2test.Serve(t, h2test.Options{Answer: h2test.Respond(status, []byte("{}"))})
			to := target(s)
			to.Samples = recorder
			r := newLoad(t, to, schedule{200, 200 * time.Microsecond}, func(_ *gets, l *scenario.Load) { l.MaxInFlight = 5 })
			if err := r.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := start(t, r)
			h2test.Await(t, "all arrivals", func() bool { seen := one(r); return seen.Offered == 200 })
			end := got()
			if err := recorder.Close(); err != nil {
				t.Fatal(err)
			}
			slots, err := samples.Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			var sum samples.RequestSlot
			var failed int64
			for _, slot := range slots {
				seen := slot.Requests["test"]
				sum.Succeeded += seen.Succeeded
				sum.Unsent += seen.Unsent
				sum.Slowest = max(sum.Slowest, seen.Slowest)
				failed += seen.Failed["503"]
			}
			if sum.Succeeded != end.Succeeded || sum.Unsent != end.Unsent || failed != end.Outcomes["503"] || sum.Succeeded+failed+sum.Unsent != 200 {
				t.Errorf("the pulse has %+v and %d refused; the results %+v", sum, failed, end)
			}
			if sum.Slowest <= 0 || sum.Slowest > end.Latency.Max*1.001 {
				t.Errorf("the slowest took %v s, in the results %v s", sum.Slowest, end.Latency.Max)
			}
		})
	}
}
