package report

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
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

// A peak belongs to each phase that its window overlaps, and to the time before the first phase.
func TestPeakBelongsToTheWholeWindow(t *testing.T) {
	p := &page{}
	p.Grid = chart.NewGrid(at(0), at(40), 2*time.Second)
	p.result.Measurements.Phases = []result.Phase{{Name: "steady", Start: at(11), End: at(20)}, {Name: "storm", Start: at(20.1), End: at(30)}}
	for _, c := range []struct {
		window float64
		point  int
		want   string
	}{
		{rateSteps, 5, "0:10"}, {rateSteps, 6, "0:12, before or in steady"}, {rateSteps, 8, "0:16, in steady"}, {rateSteps, 11, "0:22, in steady or storm"},
		{rateSteps, 7, "0:14, before or in steady"}, {rateSteps, 13, "0:26, in storm"}, {rateSteps, 18, "0:36"},
		{0, 6, "0:12, in steady"}, {0, 16, "0:32"},
	} {
		if got := p.when(c.window)(c.point); got != c.want {
			t.Errorf("window %v, point %d: %q, want %q", c.window, c.point, got, c.want)
		}
	}
}

// The chart of CPU use also shows other programs, and the number of processors, if the control plane ran on the same
// machine.
func TestCPUChartShowsOtherPrograms(t *testing.T) {
	for _, bundled := range []bool{true, false} {
		r := stormRun()
		r.Run.Host.CPUs, r.Run.Cluster.Bundled = 2, bundled
		for i := range r.Measurements.Phases {
			p := &r.Measurements.Phases[i]
			p.Machine = &result.Machine{BusySeconds: 1.9 * p.Seconds(), OwnSeconds: .4 * p.Seconds()}
		}
		page := render(t, r, recording{result: r})
		_, section, _ := strings.Cut(page, `id="chart-cpu-by-component-in-cores-t"`)
		section, _, _ = strings.Cut(section, "</figure>")
		if got := strings.Contains(section, `data-figure="1.5"`) && strings.Contains(section, "other programs</span>") && strings.Contains(section, "2 processors of the machine"); got != bundled {
			t.Errorf("bundled %v: other programs shown is %v\n%s", bundled, got, section)
		}
	}
}
