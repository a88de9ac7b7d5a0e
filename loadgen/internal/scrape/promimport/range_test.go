package promimport

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestLongRange: a Prometheus server refuses over 11,000 points of a series, so a day in steps of 5 s is requested in
// parts.
func TestLongRange(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number := func(name string) float64 {
			v, err := strconv.ParseFloat(r.FormValue(name), 64)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return v
		}
		start, end, step := number("start"), number("end"), number("step")
		if n := (end-start)/step + 1; n > 11_000 {
			http.Error(w, `{"status":"error","errorType":"bad_data","error":"exceeded maximum resolution of 11,000 points per timeseries"}`, http.StatusBadRequest)
			return
		}
		asked++
		var values []string
		for at := start; at <= end; at += step {
			values = append(values, fmt.Sprintf(`[%f,"1"]`, at))
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"instance":"etcd-0"},"values":[%s]}]}}`, strings.Join(values, ","))
	}))
	t.Cleanup(server.Close)
	s, err := New(Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	start, step := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC), 5*time.Second
	all, err := s.Range(t.Context(), "up", start, start.Add(24*time.Hour), step)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || len(all[0].Points) != 24*60*12+1 || asked != 2 {
		t.Fatalf("got %d series in %d queries", len(all), asked)
	}
	for i, p := range all[0].Points {
		if !p.T.Equal(start.Add(time.Duration(i) * step)) {
			t.Fatalf("point %d has the value of %s", i, p.T)
		}
	}
}

// A response that lacks a store's data is an error; Prometheus' remarks on the PromQL are not.
func TestWarningIsAnError(t *testing.T) {
	for warning, want := range map[string]string{
		"receive series from Addr: 10.0.0.7:10901:\nunavailable": "the response is incomplete: receive series from Addr: 10.0.0.7:10901: unavailable (repair the store",
		`PromQL info: metric might not be a counter: "x" (1:6)`:  "",
		`PromQL warning: bucket label "le" is missing (1:20)`:    "",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"status":"success","warnings":[%q],"data":{"resultType":"matrix","result":[]}}`, warning)
		}))
		t.Cleanup(server.Close)
		s, err := New(Config{URL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		at := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
		_, ranged := s.Range(t.Context(), "up", at, at, time.Second)
		_, asked := s.Ambiguous(t.Context(), at)
		for what, err := range map[string]error{"a range": ranged, "the targets": asked} {
			if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
				t.Errorf("%s with %q: %v", what, warning, err)
			}
		}
	}
}

// If a target exists twice for a moment, such as when a pod replaces another, only the steps of that moment are lost.
func TestTargetThatIsThereTwice(t *testing.T) {
	start, step := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC), 15*time.Second
	twice := func(i int) bool { return i == 100 || i == 101 }
	always := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var values []string
		from, _ := strconv.ParseFloat(r.FormValue("start"), 64)
		to, _ := strconv.ParseFloat(r.FormValue("end"), 64)
		for at := from; at <= to; at += step.Seconds() {
			if always || twice(int((at-float64(start.Unix()))/step.Seconds())) {
				w.WriteHeader(http.StatusUnprocessableEntity)
				fmt.Fprint(w, `{"status":"error","errorType":"execution","error":"found duplicate series for the match group {instance=\"a\"} on the left hand-side of the operation: [{}, {}];many-to-many matching not allowed: matching labels must be unique on one side"}`)
				return
			}
			values = append(values, fmt.Sprintf(`[%f,"1"]`, at))
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"instance":"a"},"values":[%s]}]}}`, strings.Join(values, ","))
	}))
	t.Cleanup(server.Close)
	s, err := New(Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Range(t.Context(), "up", start, start.Add(239*step), step)
	if err != nil || len(all) != 1 || len(all[0].Points) != 238 {
		t.Fatalf("%d series: %v", len(all), err)
	}
	for _, p := range all[0].Points {
		if twice(int(p.T.Sub(start) / step)) {
			t.Errorf("there is a point at %s", p.T)
		}
	}
	always = true
	if _, err := s.Range(t.Context(), "up", start, start.Add(239*step), step); err == nil || !strings.Contains(err.Error(), "duplicate series") {
		t.Errorf("what is twice all the time: %v", err)
	}
}

// Series without numbers are ignored: native histograms have none, and foreign servers send such series.
func TestSeriesWithoutNumbers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[null,{"metric":{"job":"apiserver","instance":"a"},"values":[]}]}}`)
	}))
	t.Cleanup(server.Close)
	s, err := New(Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	if clusters, err := s.Ambiguous(t.Context(), at); err != nil || clusters != "" {
		t.Errorf("%q: %v", clusters, err)
	}
	if all, err := s.Range(t.Context(), "up", at, at, time.Second); err != nil || len(all) != 0 {
		t.Errorf("%v: %v", all, err)
	}
}

// Jobs other than the four components of every cluster have the same name on every Prometheus.
func TestJobsOfOtherKinds(t *testing.T) {
	s, err := New(Config{URL: "http://127.0.0.1:9"})
	if err != nil {
		t.Fatal(err)
	}
	for ours, want := range map[string]string{
		`up{job=~"etcd|kube-apiserver|token-webhook|loadgen"}`: `up{job=~"apiserver|kube-etcd|loadgen|token-webhook"}`,
		`up{job=~"etcd|kube-scheduler"}`:                       `up{job=~"kube-etcd|kube-scheduler"}`,
		`up{job="token-webhook"}`:                              `up{job="token-webhook"}`,
	} {
		if got, err := s.translate(ours); err != nil || got != want {
			t.Errorf("%s is %s, want %s: %v", ours, got, want, err)
		}
	}
}

// A small compressed response may be large in memory.
func TestLargeAnswerIsRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		defer z.Close()
		spaces := bytes.Repeat([]byte(" "), 1<<20)
		for range 70 {
			_, _ = z.Write(spaces)
		}
		fmt.Fprint(z, `{"status":"success","data":{"resultType":"matrix","result":[]}}`)
	}))
	t.Cleanup(server.Close)
	s, err := New(Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	if _, err := s.Range(t.Context(), "up", start, start.Add(time.Minute), time.Second); err == nil || !strings.Contains(err.Error(), "the response is larger than 67108864 bytes") {
		t.Errorf("an answer of 70 MiB: %v", err)
	}
}
