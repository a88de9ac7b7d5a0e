package scrape

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

const etcd = control.KindEtcd

func counter(name string, v any) string {
	return fmt.Sprintf("# HELP %[1]s text\n# TYPE %[1]s counter\n%[1]s %[2]v\n", name, v)
}

// The counts of a phase are exact whether a series existed before it, appeared during it, or appeared in its last
// scrape. Earlier increases do not leak in.
func TestIncreaseOverAPhaseIsExact(t *testing.T) {
	s := newStub(t)
	b := newBench(t, Options{}, s.target(etcd))
	says := func(old, born, late int) {
		text := counter("etcd_server_old_total", old)
		if born >= 0 {
			text += fmt.Sprintf("# TYPE etcd_disk_h histogram\netcd_disk_h_bucket{le=\"1\"} %d\netcd_disk_h_bucket{le=\"+Inf\"} %d\netcd_disk_h_sum 7.5\netcd_disk_h_count %d\n", born/2, born, born)
		}
		if late >= 0 {
			text += counter("etcd_server_late_total", late)
		}
		s.says(100, text)
	}
	says(1_000_000, -1, -1)
	b.scrape(0)
	says(1_000_777, -1, -1)
	start := b.scrape(3 * time.Second)
	says(1_002_000, 40, -1)
	b.scrape(5 * time.Second)
	says(1_003_000, 90, -1)
	b.scrape(5 * time.Second)
	says(1_010_777, 100, 3)
	end := b.scrape(2 * time.Second)
	says(2_000_000, 900, 900)
	b.scrape(time.Second)
	a := b.archive()

	window := archive.Window(start, end)
	for expr, want := range map[string]float64{
		"etcd_server_old_total":      10_000,
		"etcd_disk_h_count":          100,
		`etcd_disk_h_bucket{le="1"}`: 50,
		"etcd_disk_h_sum":            7.5,
		"etcd_server_late_total":     3,
	} {
		got := valueOf(t, a, fmt.Sprintf("increase(%s[%s])", expr, window), end)
		// One millisecond of extrapolation: rate/1000.
		if tolerance := want / end.Sub(start).Seconds() / 1000; math.Abs(got-want) > tolerance {
			t.Errorf("increase of %s is %v, want %v ± %v", expr, got, want, tolerance)
		}
	}
	for _, exact := range []string{"etcd_disk_h_count", "etcd_server_late_total"} {
		if got := valueOf(t, a, fmt.Sprintf("increase(%s[%s])", exact, window), end); got != math.Trunc(got) {
			t.Errorf("%s appeared in the phase, and its increase %v is not exact", exact, got)
		}
	}
}

func TestGaugesAndQuantilesGetNoZero(t *testing.T) {
	s := newStub(t)
	b := newBench(t, Options{}, s.target(etcd))
	s.says(100, "")
	first := b.scrape(0)
	s.says(100, "# TYPE etcd_disk_g gauge\netcd_disk_g 4\n# TYPE etcd_disk_s summary\netcd_disk_s{quantile=\"0.5\"} 4\netcd_disk_s_sum 4\netcd_disk_s_count 4\n")
	b.scrape(time.Second)
	a := b.archive()
	for expr, want := range map[string]float64{
		"etcd_disk_g": math.NaN(), `etcd_disk_s{quantile="0.5"}`: math.NaN(), "etcd_disk_s_sum": 0, "etcd_disk_s_count": 0,
	} {
		if got := valueOf(t, a, expr, first); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s is %v a scrape before it appeared, want %v", expr, got, want)
		}
	}
}

// A new process may have counted since any time: its counters get no zero.
func TestRestartAddsNoZero(t *testing.T) {
	s := newStub(t)
	b := newBench(t, Options{}, s.target(etcd))
	s.says(100, "")
	first := b.scrape(0)
	s.says(250, counter("etcd_server_x_total", 5))
	b.scrape(time.Second)
	a := b.archive()
	if got := valueOf(t, a, "etcd_server_x_total", first); !math.IsNaN(got) {
		t.Errorf("the counter of the new process is %v before its first scrape", got)
	}
}

func TestLostScrapeIsCountedAndEndsSeries(t *testing.T) {
	s := newStub(t)
	var logged []string
	b := newBench(t, Options{Log: func(f string, a ...any) { logged = append(logged, fmt.Sprintf(f, a...)) }}, s.target(etcd))
	s.says(100, counter("etcd_server_x_total", 5))
	first := b.scrape(0)
	s.fails()
	lost := b.scrape(time.Second)
	s.says(100, counter("etcd_server_x_total", 9)+counter("etcd_server_new_total", 2))
	back := b.scrape(time.Second)
	if got := b.Scrapes(); got.Done != 3 || got.Failed["etcd-0"] != 1 {
		t.Errorf("counted %+v, want 3 scrapes with one of etcd-0 lost", got)
	}
	if len(logged) != 2 || !strings.Contains(logged[0], "etcd-0") || !strings.Contains(logged[0], "503") {
		t.Errorf("logged %q", logged)
	}
	a := b.archive()
	for at, want := range map[time.Time]float64{first: 1, lost: 0, back: 1} {
		if got := valueOf(t, a, "up", at); got != want {
			t.Errorf("up is %v at %v, want %v", got, at, want)
		}
	}
	if got := valueOf(t, a, "etcd_server_x_total", lost); !math.IsNaN(got) {
		t.Errorf("while the target was unavailable, its counter was still %v", got)
	}
	if got := valueOf(t, a, fmt.Sprintf("increase(etcd_server_x_total[%s])", archive.Window(first, back)), back); math.Round(got) != 4 {
		t.Errorf("increase across the lost scrape is %v, want 4", got)
	}
	// The series appeared after the last good scrape: its zero has that scrape's time.
	if got := valueOf(t, a, fmt.Sprintf("increase(etcd_server_new_total[%s])", archive.Window(first, back)), back); got != 2 {
		t.Errorf("increase of a counter born while the target was away is %v, want 2", got)
	}
}

// If a fault makes a component unavailable, this is logged twice: when its scrapes begin to fail, and when they succeed
// again, with the number of failed scrapes.
func TestAbsenceIsLoggedOnce(t *testing.T) {
	s := newStub(t)
	var logged []string
	b := newBench(t, Options{Log: func(f string, a ...any) { logged = append(logged, fmt.Sprintf(f, a...)) }}, s.target(etcd))
	s.says(100, "")
	b.scrape(0)
	for range 2 {
		s.fails()
		for range 30 {
			b.scrape(time.Second)
		}
		s.says(100, "")
		b.scrape(time.Second)
		b.scrape(time.Second)
	}
	away, back := "scrapes of etcd-0 fail: ", "scrapes of etcd-0 succeed again; 30 scrapes failed"
	if len(logged) != 4 || !strings.HasPrefix(logged[0], away) || logged[1] != back || !strings.HasPrefix(logged[2], away) || logged[3] != back {
		t.Errorf("logged %q", logged)
	}
	if got := b.Scrapes(); got.Failed["etcd-0"] != 60 {
		t.Errorf("counted %+v, want 60 lost", got)
	}
}

// A failed scrape records the component's response: an HTTP status is not a refused connection.
func TestFailedScrapeHasItsReason(t *testing.T) {
	s := newStub(t)
	b := newBench(t, Options{}, s.target(etcd))
	s.says(100, "")
	b.scrape(0)
	s.fails()
	answered := b.scrape(time.Second)
	s.Close()
	refused := b.scrape(time.Second)
	a := b.archive()
	for reason, want := range map[string][2]float64{"503": {1, 0}, "refused": {math.NaN(), 1}} {
		expr := fmt.Sprintf(`scrape_failed{job="etcd", reason=%q}`, reason)
		for i, at := range []time.Time{answered, refused} {
			got := math.NaN()
			if samples, err := a.Instant(t.Context(), expr, at); err != nil {
				t.Fatal(err)
			} else if len(samples) == 1 {
				got = samples[0].V
			}
			if got != want[i] && !(math.IsNaN(got) && math.IsNaN(want[i])) {
				t.Errorf("%s at scrape %d: %v, want %v", expr, i+2, got, want[i])
			}
		}
	}
}

func TestInvalidExpositionIsNotStored(t *testing.T) {
	s := newStub(t)
	b := newBench(t, Options{}, s.target(etcd))
	s.says(100, counter("etcd_server_x_total", 5)+counter("etcd_server_y_total", "five"))
	at := b.scrape(0)
	s.says(100, counter("etcd_server_x_total", 6))
	later := b.scrape(time.Second)
	a := b.archive()
	if got := valueOf(t, a, "up", at); got != 0 {
		t.Errorf("up is %v", got)
	}
	if got := valueOf(t, a, "etcd_server_x_total", at); !math.IsNaN(got) {
		t.Errorf("half of a bad exposition was stored: %v", got)
	}
	if got := valueOf(t, a, "etcd_server_x_total", later); got != 6 {
		t.Errorf("the series is %v after the target came to its senses, want 6", got)
	}
}

// The job's own list and the metrics that gates name are kept. Drop takes precedence over both.
func TestFamiliesKeptAndDropped(t *testing.T) {
	s := newStub(t)
	b := newBench(t, Options{Extra: []string{"wanted_bucket", "etcd_debugging_odd"}, Drop: []string{"etcd_server_gone_total", "etcd_debugging_odd"}}, s.target(etcd))
	s.says(100, counter("etcd_server_kept_total", 1)+counter("etcd_server_gone_total", 1)+counter("etcd_debugging_odd", 1)+
		counter("apiserver_request_total", 1)+counter("go_unknown_total", 1)+"untyped_stray 1\n"+
		"# TYPE wanted histogram\nwanted_bucket{le=\"+Inf\"} 1\nwanted_sum 1\nwanted_count 1\n")
	at := b.scrape(0)
	a := b.archive()
	got, err := a.Instant(context.Background(), `count by (__name__) ({job="etcd"})`, at)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, s := range got {
		have[s.Labels[model.MetricNameLabel]] = true
	}
	for name, want := range map[string]bool{
		"etcd_server_kept_total": true, "wanted_bucket": true, "wanted_sum": true, "process_start_time_seconds": true, "up": true,
		"etcd_server_gone_total": false, "etcd_debugging_odd": false, "apiserver_request_total": false, "go_unknown_total": false, "untyped_stray": false,
	} {
		if have[name] != want {
			t.Errorf("%s recorded: %v, want %v", name, have[name], want)
		}
	}
	if got := valueOf(t, a, "scrape_samples_scraped", at); got != 10 {
		t.Errorf("the target exposed %v series, want 10", got)
	}
}

func TestLabelsOfTheTargetWin(t *testing.T) {
	s := newStub(t)
	b := newBench(t, Options{}, s.target(etcd))
	s.says(100, "# TYPE etcd_server_l gauge\netcd_server_l{instance=\"theirs\",a=\"b\\\"c\"} 1\n")
	at := b.scrape(0)
	got, err := b.archive().Instant(context.Background(), "etcd_server_l", at)
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	for name, want := range map[string]string{"job": "etcd", "instance": "etcd-0", "exported_instance": "theirs", "a": `b"c`} {
		if got[0].Labels[name] != want {
			t.Errorf("label %s is %q, want %q", name, got[0].Labels[name], want)
		}
	}
}

// At a boundary, the samples of all targets, including the generator, have the same timestamp.
func TestBoundaryScrapesShareOneTime(t *testing.T) {
	one, two := newStub(t), newStub(t)
	registry := prometheus.NewRegistry()
	own := prometheus.NewCounter(prometheus.CounterOpts{Name: "stormglass_things_total", Help: "x"})
	registry.MustRegister(own)
	b := newBench(t, Options{Registry: registry}, one.target(etcd), two.target(control.KindScheduler))
	one.says(1, "")
	two.says(1, "")
	b.scrape(0)
	own.Add(12)
	at := b.scrape(0) // the clock stands still, but sample times advance
	a := b.archive()
	for _, instance := range []string{"etcd-0", "kube-scheduler-0", "loadgen"} {
		up, err := a.Samples(context.Background(), at, at, labels.MustNewMatcher(labels.MatchEqual, "instance", instance), labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, "up"))
		if err != nil || len(up) != 1 || len(up[0].Points) != 1 {
			t.Errorf("%s has no sample at the boundary: %v %v", instance, up, err)
		}
	}
	if got := valueOf(t, a, `stormglass_things_total{job="loadgen",instance="loadgen"}`, at); got != 12 {
		t.Errorf("own counter is %v, want 12", got)
	}
	if first, last, err := a.Bounds(context.Background()); err != nil || !last.Equal(at) || last.Sub(first) != time.Millisecond {
		t.Errorf("bounds %v to %v: %v", first, last, err)
	}
}

func TestRunScrapesUntilItIsStopped(t *testing.T) {
	s := newStub(t)
	s.says(1, "")
	r, err := Open(t.TempDir(), []control.ScrapeTarget{s.target(etcd)}, Options{Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	for range 3 {
		<-s.seen
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run ended with %v", err)
	}
	if n := r.Scrapes(); n.Done < 2 || n.Failed["etcd-0"] != 0 {
		t.Errorf("counted %+v: a canceled scrape counts as lost", n)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestOpenNamesInvalidTarget(t *testing.T) {
	for want, target := range map[string]control.ScrapeTarget{
		"scrape target x: read the CA":              {Instance: "x", URL: "https://h/metrics", CAFile: "/nonexistent"},
		"scrape target x: read the client cert":     {Instance: "x", URL: "https://h/metrics", CertFile: "/nonexistent", KeyFile: "/nonexistent"},
		`scrape target x: "metrics" is not the URL`: {Instance: "x", URL: "metrics"},
	} {
		if _, err := Open(t.TempDir(), []control.ScrapeTarget{target}, Options{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
