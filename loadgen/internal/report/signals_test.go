package report

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// The scenario's own metric is drawn with its judgement. A signal without samples gives
// the reason.
func TestSignalsAreDrawn(t *testing.T) {
	r := failoverRun()
	points := func(from, to, v float64) (all []result.SignalPoint) {
		for s := from; s <= to; s += 5 {
			all = append(all, result.SignalPoint{Time: at(s), Value: v})
		}
		return all
	}
	fsync := &r.Signals[0]
	fsync.Unit = "seconds"
	fsync.Expr = `histogram_quantile(0.99, sum by (le) (rate(etcd_disk_wal_fsync_duration_seconds_bucket{instance=~"etcd-.*"}[$window])))`
	fsync.Steady.Points, fsync.Under.Points = points(20, 60, .0029), points(65, 110, .0321)
	fsync.After = &result.SignalWindow{Points: points(165, 200, .0031)}
	var b bytes.Buffer
	if err := HTML(context.Background(), &b, r, failoverEvents(r), failoverPulse(), []byte("name: component-loss"), recording{result: r}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{
		`id="chart-signal-fsync"`, "etcd_disk_wal_fsync_duration_seconds_bucket", "mean before the fault", "Change during the fault: 41.7× noise. Returned after the fault: yes.", "Peak 32.1 ms",
		"only 0 samples in the steady phases; at least 3 are required",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	quiet := floodRun()
	if strings.Contains(render(t, quiet, recording{result: quiet}), "chart-signal") {
		t.Error("a run without signals draws some")
	}
}
