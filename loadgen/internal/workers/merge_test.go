package workers

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/result"
)

// The merge adds the responses that workers got in a phase, and the requests without a response at its end. If one
// worker did not record them, the sum is unknown.
func TestAnswersOfWorkersAreAdded(t *testing.T) {
	part := func(answered *int64, backlog int64) load.RequestsPart {
		return load.RequestsPart{Sums: result.Requests{Offered: 100, Sent: 100, Succeeded: 100, DueSeconds: 10, Answered: answered, Backlog: backlog}}
	}
	got, err := addRequests([]load.RequestsPart{part(new(int64(80)), 20), part(new(int64(70)), 30)})
	if err != nil || got.AnsweredInPhase() != 150 || got.Backlog != 50 || got.OfferedRate != 20 || got.AchievedRate != 15 {
		t.Errorf("%+v, %v; want 150 responses, a backlog of 50, 15/s of 20/s", got, err)
	}
	if got, err = addRequests([]load.RequestsPart{part(new(int64(80)), 20), part(nil, 0)}); err != nil || got.Answered != nil || got.AchievedRate != 20 {
		t.Errorf("%+v, %v; want unknown responses, and all successes", got, err)
	}
	sum, err := mergeWatches([]load.Part{
		{Watches: &load.WatchesPart{Sums: result.Watches{Wanted: 50, Due: 40, Open: 30}}}, {Watches: &load.WatchesPart{Sums: result.Watches{Wanted: 50, Due: 41, Open: 41}}},
	})
	if err != nil || sum.Due != 81 || sum.Open != 71 {
		t.Errorf("%+v, %v; want 71 of 81 due watches open", sum, err)
	}
}
