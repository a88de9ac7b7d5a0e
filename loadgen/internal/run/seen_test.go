package run

import (
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// A phase is as long as its last request takes; arrivals were due for less.
func TestRatesAreOverTheTimeThatArrivalsWereDue(t *testing.T) {
	phase := result.Phase{Name: "storm", Start: time.Unix(0, 0), End: time.Unix(45, 0)}
	(&placed{}).put(&phase, []result.Requests{{Offered: 1500, Succeeded: 1470, DueSeconds: 15, OfferedRate: 100, AchievedRate: 98}})
	if got := phase.Requests[0]; got.OfferedRate != 100 || got.AchievedRate != 98 {
		t.Errorf("%v/s offered, %v/s achieved; want 100 and 98", got.OfferedRate, got.AchievedRate)
	}
}
