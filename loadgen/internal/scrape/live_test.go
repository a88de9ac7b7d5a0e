package scrape

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// TestLive: an observer sees every scrape immediately, each target's health, and
// the types of the recorded families.
func TestLive(t *testing.T) {
	s := newStub(t)
	b := newBench(t, Options{}, s.target(etcd))
	if state := b.Targets()[0]; !state.Scraped.IsZero() || state.Job != etcd || state.URL != s.URL+"/metrics" {
		t.Errorf("before the first scrape: %+v", state)
	}
	s.says(100, counter("etcd_server_changes_total", 3))
	at := b.scrape(0)
	a := archive.Evaluating(b.Live())
	samples, err := a.Samples(t.Context(), at, at, labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, "etcd_server_changes_total"))
	if err != nil || len(samples) != 1 || samples[0].Points[0].V != 3 {
		t.Errorf("live are %v (%v)", samples, err)
	}
	if state := b.Targets()[0]; !state.Scraped.Equal(at) || state.Failed != "" {
		t.Errorf("after a scrape: %+v", state)
	}
	if types := b.Types(); types["etcd_server_changes_total"] != model.MetricTypeCounter || types["process_start_time_seconds"] != model.MetricTypeGauge {
		t.Errorf("types: %v", types)
	}
	s.fails()
	b.scrape(time.Second)
	if state := b.Targets()[0]; !strings.Contains(state.Failed, "503") {
		t.Errorf("after a lost scrape: %+v", state)
	}
}

// TestRetention: an observer's recorder drops old samples, and resumes a series
// that was away for longer than storage remembers it.
func TestRetention(t *testing.T) {
	const keeps = 80 * time.Minute
	s := newStub(t)
	b := newBench(t, Options{Retention: keeps}, s.target(etcd))
	var at time.Time
	for minute := range 240 {
		text := counter("etcd_server_always_total", minute)
		if minute < 10 || minute == 239 {
			text += counter("etcd_server_seldom_total", minute)
		}
		s.says(100, text)
		at = b.scrape(time.Minute)
		if minute%30 == 29 {
			if err := b.db.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	a := archive.Evaluating(b.Live())
	points := func(name string) []archive.Point {
		samples, err := a.Samples(t.Context(), at.Add(-24*time.Hour), at, labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, name))
		if err != nil || len(samples) != 1 {
			t.Fatalf("%s: %v, %v", name, samples, err)
		}
		return samples[0].Points
	}
	if always := points("etcd_server_always_total"); at.Sub(always[0].T) < keeps || at.Sub(always[0].T) > 2*keeps {
		t.Errorf("the archive keeps %v of four hours, want %v and not much more", at.Sub(always[0].T), keeps)
	}
	if seldom := points("etcd_server_seldom_total"); len(seldom) != 1 || seldom[0].V != 239 {
		t.Errorf("samples of the series that returned = %v, want one sample with the value 239", seldom)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// TestNames: an import from elsewhere keeps exactly the series that would have been
// recorded.
func TestNames(t *testing.T) {
	pattern, dropped := Names(etcd, []string{"mine_total"}, []string{"etcd_disk_wal_write_bytes_total", "etcd_mvcc_range_duration_seconds"})
	matcher := labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, pattern)
	for series, want := range map[string]bool{
		"etcd_disk_wal_fsync_duration_seconds_bucket": true, "process_open_fds": true, "go_sched_latencies_seconds_bucket": true, "mine_total": true,
		"apiserver_request_total": false, "process_open_fds_high": false, "xprocess_open_fds": false,
		"etcd_disk_wal_write_bytes_total": false, "etcd_mvcc_range_duration_seconds_count": false,
	} {
		if got := matcher.Matches(series) && !dropped(series); got != want {
			t.Errorf("%s: %v, want %v", series, got, want)
		}
	}
}
