package promimport

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestLongRange: a Prometheus refuses over 11,000 points of a series, so a day in steps of 5 s is asked for in parts.
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
		t.Fatalf("%d series in %d queries", len(all), asked)
	}
	for i, p := range all[0].Points {
		if !p.T.Equal(start.Add(time.Duration(i) * step)) {
			t.Fatalf("point %d is of %s", i, p.T)
		}
	}
}

// An answer that lacks a store's data is none; what Prometheus remarks on the PromQL is no lack.
func TestWarningIsAnError(t *testing.T) {
	for warning, want := range map[string]string{
		"receive series from Addr: 10.0.0.7:10901:\nunavailable": "the answer is not complete: receive series from Addr: 10.0.0.7:10901: unavailable (mend the store",
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
