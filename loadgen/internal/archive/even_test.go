package archive_test

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// At the border of two phases, a run scrapes up to three times within a second. A steady rate is shown as steady there.
func TestRateAtTheBorderOfPhases(t *testing.T) {
	db := stored(t)
	app := db.AppenderV2(t.Context())
	for _, ms := range []int64{0, 440, 2440, 3310, 4440, 6440, 8310, 8400, 10440, 12440, 14440, 16440, 18450, 18620, 18800, 20450, 22450, 24450} {
		if _, err := app.Append(0, labels.FromStrings("__name__", "requests_total"), 0, ms, float64(ms)/100, nil, nil, storage.AOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	rates := func(a *archive.Archive) (lowest, highest float64, points int) {
		all, err := a.Range(t.Context(), "rate(requests_total[5s])", time.UnixMilli(6000), time.UnixMilli(24000), time.Second)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		lowest = all[0].Points[0].V
		for _, p := range all[0].Points {
			lowest, highest = min(lowest, p.V), max(highest, p.V)
		}
		return lowest, highest, len(all[0].Points)
	}
	raw := archive.Evaluating(db)
	if lowest, _, _ := rates(raw); lowest > 7 {
		t.Errorf("the rate of all samples is at least %.3g: the test shows nothing", lowest)
	}
	if lowest, highest, points := rates(raw.Even(2 * time.Second)); lowest < 9.9 || highest > 10.1 || points != 19 {
		t.Errorf("a rate of 10/s is shown as %.3g to %.3g at %d times", lowest, highest, points)
	}
}
