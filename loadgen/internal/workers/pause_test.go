package workers

import (
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn/h2test"
)

// The loads of all workers pause and resume.
func TestPauseReachesWorkers(t *testing.T) {
	b := prepared(t, 3, "phases: [{name: p, for: 10m, load: [{kind: requests, name: reads, verb: get, rate: 300/s, objects: 8}]}]")
	b.fleet.BeginPhase("p", time.Now())
	loads := b.run("reads")
	h2test.Await(t, "reads", func() bool { return b.received("GET") >= 100 })
	b.fleet.Pause(time.Now())
	// Messages arrive in order, so a reply that follows the pause comes from a worker that has received the pause.
	offered := func() (sum int64) {
		t.Helper()
		for _, r := range b.measured().Requests {
			sum += r.Offered
		}
		return sum
	}
	// Arrivals that were due before the pause may still start after it began.
	before := offered()
	h2test.Await(t, "a second without arrivals", func() bool {
		began, last := time.Now(), before
		h2test.Await(t, "time in which 300 were due", func() bool { return time.Since(began) > time.Second })
		before = offered()
		return before == last
	})
	b.fleet.Resume(time.Now())
	h2test.Await(t, "arrivals after the pause", func() bool { return offered() >= before+100 })
	if err := loads.end(); err != nil {
		t.Error(err)
	}
}
