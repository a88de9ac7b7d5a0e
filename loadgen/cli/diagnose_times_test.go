package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/judge/diagnosis"
	"github.com/stormglass/stormglass/loadgen/internal/scrape/promimport"
	"github.com/stormglass/stormglass/loadgen/result"
)

func TestTimesOfADiagnosis(t *testing.T) {
	first := time.Date(2026, 11, 21, 23, 50, 0, 300e6, time.UTC)
	for text, want := range map[string][2]string{
		"23:50:00,23:51:00": {"2026-11-21T23:50:00Z", "2026-11-21T23:51:00Z"},
		"23:59:00,00:01:00": {"2026-11-21T23:59:00Z", "2026-11-22T00:01:00Z"},
		"23:49:00,23:51:00": {"2026-11-21T23:49:00Z", "2026-11-21T23:51:00Z"},
		"10s,1m":            {"2026-11-21T23:50:10Z", "2026-11-21T23:51:00Z"},
		"2026-11-21T23:55:00Z,2026-11-21T23:56:00Z": {"2026-11-21T23:55:00Z", "2026-11-21T23:56:00Z"},
	} {
		s, err := parseSpan(text, first, first)
		if err != nil || s.From.Format(time.RFC3339) != want[0] || s.To.Format(time.RFC3339) != want[1] {
			t.Errorf("%s: %s to %s: %v", text, s.From, s.To, err)
		}
	}
	for _, c := range []struct{ now, text, want string }{
		{"2026-11-21T15:00:00Z", "14:58:00,14:59:00", "2026-11-21T14:58:00Z to 2026-11-21T14:59:00Z"},
		{"2026-11-21T15:00:00Z", "16:00:00,17:00:00", "2026-11-20T16:00:00Z to 2026-11-20T17:00:00Z"},
		{"2026-11-21T15:00:00Z", "14:00:00,16:00:00", "2026-11-21T14:00:00Z to 2026-11-21T15:00:00Z"}, // not over yet
		{"2026-11-21T00:02:00Z", "23:58:00,00:05:00", "2026-11-20T23:58:00Z to 2026-11-21T00:02:00Z"},
		{"2026-11-21T15:00:00Z", "14:05:00,14:00:00", ""},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		s, err := parseSpan(c.text, time.Time{}, now)
		if got := s.From.Format(time.RFC3339) + " to " + s.To.Format(time.RFC3339); c.want == "" && err == nil || c.want != "" && got != c.want {
			t.Errorf("at %s %s is %s, want %q: %v", c.now, c.text, got, c.want, err)
		}
	}
	for _, text := range []string{"", "10s", "1m,10s", "23:53:00,23:52:00", "25:00:00,26:00:00", "noon,night"} {
		if s, err := parseSpan(text, first, first); err == nil {
			t.Errorf("parseSpan(%q) = %s to %s", text, s.From, s.To)
		}
	}
}

// A time outside the recorded time is refused. A time that extends beyond it is cut, because values would otherwise seem to
// continue after the last scrape.
func TestTimesOutsideTheRun(t *testing.T) {
	first := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	last := first.Add(2 * time.Minute)
	phases := map[string]result.Phase{"steady": {Start: first, End: first.Add(time.Minute)}, "slow": {Start: first.Add(time.Minute), End: last.Add(time.Second)}}
	for text, want := range map[string]string{
		"slow":   "14:01:00 to 14:02:00",
		"20s,9m": "14:00:20 to 14:02:00",
		"3m,5m":  "no metrics were recorded in that time; the recording has only metrics from 2026-11-21 14:00:00 to 2026-11-21 14:02:00",
		"stedy":  "the run has no phase with this name: it has steady, slow (name a phase, or write FROM,TO",
	} {
		s, err := spanOfRun(text, phases, first)
		if err == nil {
			s, err = clip(s, first, last)
		}
		got := s.From.Format(time.TimeOnly) + " to " + s.To.Format(time.TimeOnly)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// A named time is refused if its diagnosis would be too large.
func TestLongTimesAreRefused(t *testing.T) {
	from := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		length, step time.Duration
		want         string
	}{
		{48 * time.Hour, 0, ""},
		{49 * time.Hour, time.Hour, `--period "soak": a period of 49h0m0s is too long`},
		{46 * time.Hour, 15 * time.Second, `--period "soak": the period has 11040 steps of 15s, the maximum is 11000 (choose a larger --step`},
		{46 * time.Hour, 30 * time.Second, ""},
	} {
		err := diagnoseOptions{Under: "soak"}.bounded(diagnosis.Options{Under: result.Span{From: from, To: from.Add(c.length)}, Step: c.step})
		if c.want == "" && err != nil || c.want != "" && (exitcode.Of(err) != exitcode.Usage || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s in steps of %s: %v", c.length, c.step, err)
		}
	}
}

// While a symptom lasts, the comparison period stays before the symptom. If the comparison period no longer has data,
// another comparison period is used.
func TestLiveForgetsACalmTimeWithoutData(t *testing.T) {
	slowFrom := time.Now().Add(-75 * time.Second)
	slow, recorded := true, true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var values []string
		if recorded && strings.Contains(r.FormValue("query"), `apiserver_request_duration_seconds_sum{job="kube-apiserver", verb=~"POST`) { // the mean time of writes
			number := func(name string) float64 {
				v, err := strconv.ParseFloat(r.FormValue(name), 64)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				return v
			}
			end, step := number("end"), number("step")
			for at := number("start"); at <= end && step > 0; at += step {
				seconds := "0.01"
				if slow && at > float64(slowFrom.Unix()) {
					seconds = "5"
				}
				values = append(values, fmt.Sprintf("[%f,%q]", at, seconds))
			}
		}
		all := ""
		if len(values) > 0 {
			all = fmt.Sprintf(`{"metric":{"job":"kube-apiserver","instance":"kube-apiserver-0"},"values":[%s]}`, strings.Join(values, ","))
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`, all)
	}))
	t.Cleanup(server.Close)
	diagnose := prometheusDiagnosis(promimport.Config{URL: server.URL, Ours: true}, diagnoseOptions{Step: 15 * time.Second})
	first, err := diagnose(t.Context())
	if err != nil || first.Answer != result.Unknown || len(first.Symptoms) != 1 {
		t.Fatalf("%s, %+v: %v", first.Answer, first.Symptoms, err)
	}
	if kept, err := diagnose(t.Context()); err != nil || kept.Calm != first.Calm {
		t.Errorf("while it lasts it is compared with %v, not %v: %v", kept.Calm, first.Calm, err)
	}
	recorded = false
	if _, err := diagnose(t.Context()); exitcode.Of(err) != exitcode.NoData {
		t.Errorf("without data: %v", err)
	}
	recorded, slow = true, false
	if last, err := diagnose(t.Context()); err != nil || last.Answer != result.CannotTell || len(last.Doubts) != 1 || !last.Calm.From.After(first.Calm.From) {
		t.Errorf("%s, compared with %v as before, %v: %v", last.Answer, last.Calm, first.Calm, err)
	}
}

// An answer that lacks the data of a store names no cause.
func TestIncompleteAnswerIsNotDiagnosed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","warnings":["store 10.0.0.7:10901 is unavailable"],"data":{"resultType":"matrix","result":[]}}`)
	}))
	t.Cleanup(server.Close)
	_, err := prometheusDiagnosis(promimport.Config{URL: server.URL, Ours: true}, diagnoseOptions{Step: 15 * time.Second})(t.Context())
	if exitcode.Of(err) != exitcode.Environment || !strings.Contains(err.Error(), "store 10.0.0.7:10901 is unavailable (") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

// A time that ends before it begins is refused, also for a run of more than twelve hours.
func TestInvertedTimesOfALongRun(t *testing.T) {
	first := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	if s, err := parseSpan("14:00:00,13:00:00", first, first); err == nil {
		t.Errorf("parseSpan accepts a span that ends before it starts: %s to %s", s.From, s.To)
	}
}

// The present is unknown if a Prometheus server has stopped scraping or has a different clock.
func TestOldScrapesTellNothingOfThePresent(t *testing.T) {
	age := 3 * time.Minute
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		values := ""
		if strings.HasPrefix(r.FormValue("query"), "max(timestamp(up") {
			values = fmt.Sprintf(`{"metric":{},"values":[[%s,"%d"]]}`, r.FormValue("end"), time.Now().Add(-age).Unix())
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`, values)
	}))
	t.Cleanup(server.Close)
	diagnose := prometheusDiagnosis(promimport.Config{URL: server.URL, Ours: true}, diagnoseOptions{Step: 15 * time.Second})
	if _, err := diagnose(t.Context()); exitcode.Of(err) != exitcode.NoData || !strings.Contains(err.Error(), "ago: there is no current data (is the cluster still scraped, and are the clocks right?)") {
		t.Errorf("after 3 minutes: %v", err)
	}
	age = 20 * time.Second
	if _, err := diagnose(t.Context()); exitcode.Of(err) != exitcode.NoData || strings.Contains(err.Error(), "there is no current data") {
		t.Errorf("after 20 seconds: %v", err)
	}
}

// An interrupted diagnosis has not failed.
func TestInterruptedDiagnosis(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_ = r.FormValue("query") // a server notices that a client disconnects only after it has read the request
		cancel()
		<-r.Context().Done()
	}))
	t.Cleanup(hung.Close)
	if _, err := prometheusDiagnosis(promimport.Config{URL: hung.URL, Ours: true}, diagnoseOptions{Step: 15 * time.Second})(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("of a Prometheus: %v", err)
	}
	if _, err := diagnoseRun(ctx, archivetest.SoundRun(t), diagnoseOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("of a run: %v", err)
	}
}

// A run without metrics cannot be judged; that is not a usage error.
func TestDiagnosisOfADamagedRun(t *testing.T) {
	dir := archivetest.SoundRun(t)
	if err := os.RemoveAll(filepath.Join(dir, result.TSDBDir)); err != nil {
		t.Fatal(err)
	}
	if _, err := diagnoseRun(t.Context(), dir, diagnoseOptions{}); exitcode.Of(err) != exitcode.NoData || !strings.Contains(err.Error(), "tsdb") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

// A gate that failed in a part of a run is a symptom of this part, and of no other part. A gate that failed over the whole
// run belongs to no part.
func TestGatesOfAPart(t *testing.T) {
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	span := func(from, to int) result.Span {
		return result.Span{From: start.Add(time.Duration(from) * time.Second), To: start.Add(time.Duration(to) * time.Second)}
	}
	gates := []diagnosis.FailedGate{{Name: "calm", Broken: []result.Span{span(0, 20)}}, {Name: "both", Broken: []result.Span{span(0, 20), span(20, 60)}}, {Name: "whole"}}
	for part, want := range map[result.Span]string{span(0, 10): "calm both", span(20, 60): "both", span(15, 30): "calm both", span(60, 90): ""} {
		var names []string
		for _, g := range failedWithin(gates, part) {
			names = append(names, g.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%v: %q, want %q", part, got, want)
		}
	}
}
