package observe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/observe"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
)

// storm records an etcd member and an API server for a minute: 30 leader
// changes in its second half, and the API server away at its end.
func storm(t *testing.T) (lab *archivetest.Lab, end time.Time) {
	t.Helper()
	lab = archivetest.New(t, scrape.Options{}, "etcd-0", "kube-apiserver-0")
	lab.Parts["etcd-0"].Add("etcd_server_leader_changes_seen_total", 1)
	lab.Parts["kube-apiserver-0"].Add(`apiserver_request_total{code="200"}`, 10)
	lab.Boundary(0)
	lab.Boundary(30 * time.Second)
	lab.Parts["etcd-0"].Add("etcd_server_leader_changes_seen_total", 30)
	lab.Parts["kube-apiserver-0"].SetDown(true)
	return lab, lab.Boundary(30 * time.Second)
}

func start(t *testing.T, c observe.Config) *observe.Server {
	t.Helper()
	c.Version = "test"
	s, err := observe.Start(listen(t), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// With a token, every request needs the token as the first part of its path, also for the pages next to the API.
func TestToken(t *testing.T) {
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "page "+r.URL.Path) })
	lab, _ := storm(t)
	s := start(t, observe.Config{Public: true, Token: "SECRET", Pages: pages, Recorder: lab.Recorder()})
	base := strings.TrimSuffix(s.URL(), "/SECRET")
	for path, want := range map[string]string{
		"/SECRET/":               "200 page /",
		"/SECRET":                "200 page /", // by a redirect
		"/SECRET/run/a":          "200 page /run/a",
		"/SECRET/api/v1/targets": `200 {"status":"success"`,
		"/":                      "404 wrong token",
		"/api/v1/targets":        "404 wrong token",
		"/SECRE/":                "404 wrong token",
		"/SECRETS/":              "404 wrong token",
	} {
		answer, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err = errors.Join(err, answer.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%d %s", answer.StatusCode, text); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := observe.Listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func client(t *testing.T, s *observe.Server) v1.API {
	t.Helper()
	c, err := api.NewClient(api.Config{Address: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	return v1.NewAPI(c)
}

// must returns the decoded result of an API call without error and warnings.
func must[T any](t *testing.T) func(T, v1.Warnings, error) T {
	return func(v T, warnings v1.Warnings, err error) T {
		t.Helper()
		if err != nil || len(warnings) > 0 {
			t.Fatal(err, warnings)
		}
		return v
	}
}

// TestQueries: Prometheus' own client decodes the responses, and they are right.
func TestQueries(t *testing.T) {
	lab, end := storm(t)
	ask, ctx := client(t, start(t, observe.Config{Recorder: lab.Recorder()})), t.Context()

	got := must[model.Value](t)(ask.Query(ctx, "increase(etcd_server_leader_changes_seen_total[30001ms])", end)).(model.Vector)
	if len(got) != 1 || got[0].Metric["instance"] != "etcd-0" || got[0].Value < 30 || got[0].Value > 30.01 || !got[0].Timestamp.Time().Equal(end) {
		t.Errorf("the instant query gave %v, want 30 leader changes of etcd-0 at %v", got, end)
	}
	if got := must[model.Value](t)(ask.Query(ctx, "1/0", end)); got.String() != "scalar: +Inf @["+model.TimeFromUnixNano(end.UnixNano()).String()+"]" {
		t.Errorf("got %v for 1/0", got)
	}
	if got := must[model.Value](t)(ask.Query(ctx, "up == 2", end)).(model.Vector); len(got) != 0 {
		t.Errorf("got %v for an empty vector", got)
	}
	matrix := must[model.Value](t)(ask.QueryRange(ctx, `up{job="kube-apiserver"}`, v1.Range{Start: end.Add(-time.Minute), End: end, Step: 30 * time.Second})).(model.Matrix)
	if len(matrix) != 1 || len(matrix[0].Values) != 3 || matrix[0].Values[0].Value != 1 || matrix[0].Values[2].Value != 0 {
		t.Errorf("the range query gave %v, want 1, 1, 0", matrix)
	}
	raw := must[model.Value](t)(ask.Query(ctx, `up{job="etcd"}[10m]`, end)).(model.Matrix)
	if len(raw) != 1 || len(raw[0].Values) != 3 {
		t.Errorf("the raw samples are %v, want three", raw)
	}
	if got := must[model.Value](t)(ask.Query(ctx, "up", end, v1.WithStats(v1.AllStatsValue), v1.WithTimeout(time.Minute), v1.WithLookbackDelta(time.Second))); len(got.(model.Vector)) != 2 {
		t.Errorf("with options: %v", got)
	}
	if _, warnings, err := ask.Query(ctx, "up", end, v1.WithLimit(1)); err != nil || len(warnings) != 1 {
		t.Errorf("a result cut off by a limit, want one warning: %v, %v", warnings, err)
	}
	if got, err := ask.FormatQuery(ctx, "sum(up)by(job)"); err != nil || got != `"sum by (job) (up)"` { // its client does not unquote it
		t.Errorf("formatted: %q, %v", got, err)
	}
	if got, err := ask.QueryExemplars(ctx, "up", end.Add(-time.Minute), end); err != nil || len(got) != 0 {
		t.Errorf("exemplars: %v, %v", got, err)
	}
}

// TestSearches: series, labels and their values, as Grafana completes them.
func TestSearches(t *testing.T) {
	lab, end := storm(t)
	ask, ctx := client(t, start(t, observe.Config{Recorder: lab.Recorder()})), t.Context()
	from := end.Add(-time.Hour)

	series := must[[]model.LabelSet](t)(ask.Series(ctx, []string{"up", `{job="etcd",__name__="up"}`}, from, end))
	if len(series) != 2 || series[0]["instance"] != "etcd-0" || series[1]["instance"] != "kube-apiserver-0" {
		t.Errorf("series: %v", series)
	}
	names := must[model.LabelNames](t)(ask.LabelNames(ctx, []string{"apiserver_request_total"}, from, end))
	if want := (model.LabelNames{"__name__", "code", "instance", "job"}); !slices.Equal(names, want) {
		t.Errorf("labels %v, want %v", names, want)
	}
	jobs := must[model.LabelValues](t)(ask.LabelValues(ctx, "job", nil, from, end))
	if want := (model.LabelValues{"etcd", "kube-apiserver"}); !slices.Equal(jobs, want) {
		t.Errorf("jobs %v, want %v", jobs, want)
	}
	if got := must[model.LabelValues](t)(ask.LabelValues(ctx, "job", []string{"etcd_server_leader_changes_seen_total", "nothing"}, from, end)); !slices.Equal(got, model.LabelValues{"etcd"}) {
		t.Errorf("jobs with leader changes: %v", got)
	}
	if got := must[model.LabelValues](t)(ask.LabelValues(ctx, "none", nil, from, end)); len(got) != 0 {
		t.Errorf("values of no label: %v", got)
	}
	types, err := ask.Metadata(ctx, "", "")
	if err != nil || types["etcd_server_leader_changes_seen_total"][0].Type != v1.MetricTypeCounter || types["process_open_fds"][0].Type != v1.MetricTypeGauge {
		t.Errorf("metadata: %v, %v", types, err)
	}
	if one, err := ask.Metadata(ctx, "process_open_fds", ""); err != nil || len(one) != 1 {
		t.Errorf("metadata of one: %v, %v", one, err)
	}
}

// TestStatus: targets with their health, and the first queries of a client.
func TestStatus(t *testing.T) {
	lab, end := storm(t)
	ask, ctx := client(t, start(t, observe.Config{Recorder: lab.Recorder()})), t.Context()
	targets, err := ask.Targets(ctx)
	if err != nil || len(targets.Active) != 2 {
		t.Fatal(targets, err)
	}
	etcd, apiserver := targets.Active[0], targets.Active[1]
	if etcd.Health != v1.HealthGood || etcd.LastError != "" || etcd.ScrapePool != "etcd" || !strings.HasPrefix(etcd.ScrapeURL, "http://127.0.0.1:") || !etcd.LastScrape.Equal(end) {
		t.Errorf("etcd: %+v", etcd)
	}
	if apiserver.Health != v1.HealthBad || !strings.Contains(apiserver.LastError, "503") {
		t.Errorf("the API server that is away: %+v", apiserver)
	}
	build, err := ask.Buildinfo(ctx)
	if err != nil || !strings.HasPrefix(build.Version, "3.") || build.Revision != "stormglass test" {
		t.Errorf("build: %+v, %v", build, err)
	}
	if info, err := ask.Runtimeinfo(ctx); err != nil || info.CWD != "" {
		t.Errorf("runtime: %+v, %v", info, err)
	}
	if _, err := ask.Flags(ctx); err != nil {
		t.Error(err)
	}
	if c, err := ask.Config(ctx); err != nil || !strings.Contains(c.YAML, "scrape_interval: 5s") {
		t.Errorf("config: %v, %v", c, err)
	}
	if a, err := ask.AlertManagers(ctx); err != nil || len(a.Active) != 0 {
		t.Errorf("Alertmanagers: %v, %v", a, err)
	}
}

// TestString: the one type that Prometheus' client cannot decode.
func TestString(t *testing.T) {
	lab, _ := storm(t)
	req := httptest.NewRequest(http.MethodPost, start(t, observe.Config{Recorder: lab.Recorder()}).URL()+"/api/v1/query", strings.NewReader(`query="text"&time=1800000000.5`))
	req.RequestURI = ""
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if code, text := do(t, req); code != "200" || text != `{"status":"success","data":{"resultType":"string","result":[1800000000.5,"text"]}}` {
		t.Errorf("%s %s", code, text)
	}
}

// TestRefused: the response to an invalid request has one line, and paths that would change
// something do not exist.
func TestRefused(t *testing.T) {
	lab, _ := storm(t)
	s := start(t, observe.Config{Recorder: lab.Recorder()})
	endless := url.QueryEscape("max_over_time(max_over_time(up[30d:1ms])[30d:1ms])")
	for path, want := range map[string]string{
		"GET /api/v1/query?query=" + endless:                                                                      `400 invalid parameter "query": the subquery [30d:1ms] has 2592000000 steps`,
		"POST /api/v1/query_range?start=0&end=60&step=15&query=" + endless:                                        `400 invalid parameter "query": the subquery [30d:1ms] has 2592000000 steps`,
		"GET /api/v1/query_range?start=0&end=86400&step=60&query=" + url.QueryEscape("max_over_time(up[1s:1ms])"): `400 invalid parameter "query": the subquery [1s:1ms] has 86401000 steps`,
		"GET /api/v1/query?query=up&time=1e300":                                                                   `400 invalid parameter "time"`,
		"POST /api/v1/query?query=%zz":                                                                            `400 error parsing form values`,
		"POST /api/v1/write":                                                                                      `404 404 page not found`,
		"POST /api/v1/admin/tsdb/delete_series?match[]=up":                                                        `404 404 page not found`,
		"PUT /api/v1/query?query=up":                                                                              `405 Method Not Allowed`,
		"POST /-/quit":                                                                                            `404 404 page not found`,
	} {
		method, target, _ := strings.Cut(path, " ")
		at, err := url.Parse(s.URL() + target)
		if err != nil {
			at = &url.URL{Scheme: "http", Host: strings.TrimPrefix(s.URL(), "http://"), Path: "/api/v1/query", RawQuery: "query=%zz"}
		}
		req := &http.Request{Method: method, URL: at, Header: http.Header{}}
		code, text := do(t, req)
		status, words, _ := strings.Cut(want, " ")
		if code != status || !strings.Contains(strings.ReplaceAll(text, `\"`, `"`), words) {
			t.Errorf("%s: %s %s, want %s", path, code, text, want)
		}
	}
}

func do(t *testing.T, req *http.Request) (code, text string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(req.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b strings.Builder
	if err := resp.Write(&b); err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(b.String(), "\r\n\r\n")
	return resp.Status[:3], body
}

// TestThisMachineOnly: an address that other machines reach must be requested, and a
// page that a browser opened under another name gets nothing.
func TestThisMachineOnly(t *testing.T) {
	if l, err := observe.Listen("0.0.0.0:0", false); err == nil {
		l.Close()
		t.Error("Listen(\"0.0.0.0:0\", false) succeeds, want an error")
	}
	lab, _ := storm(t)
	s := start(t, observe.Config{Recorder: lab.Recorder()})
	for host, want := range map[string]string{"rebound.example.org": "403", "localhost:3000": "200", "127.0.0.1": "200", "[::1]": "200"} {
		req := httptest.NewRequest(http.MethodGet, s.URL()+"/api/v1/query?query=up", nil)
		req.RequestURI, req.Host = "", host
		if code, text := do(t, req); code != want {
			t.Errorf("Host %q: status %s, want %s: %s", host, code, want, text)
		}
	}
}

// TestOwnMetrics: the recording process can be scraped too.
func TestOwnMetrics(t *testing.T) {
	lab, _ := storm(t)
	registry := prometheus.NewRegistry()
	made := prometheus.NewCounter(prometheus.CounterOpts{Name: "stormglass_tests_total"})
	registry.MustRegister(made)
	made.Inc()
	for metrics, want := range map[prometheus.Gatherer]string{registry: "200", nil: "404"} {
		req, err := http.NewRequest(http.MethodGet, start(t, observe.Config{Recorder: lab.Recorder(), Metrics: metrics}).URL()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		if code, text := do(t, req); code != want || metrics != nil && !strings.Contains(text, "stormglass_tests_total 1") {
			t.Errorf("%s\n%s", code, text)
		}
	}
}

// TestPortTaken: the error is one line that names the address.
func TestPortTaken(t *testing.T) {
	lab, _ := storm(t)
	s := start(t, observe.Config{Recorder: lab.Recorder()})
	addr := strings.TrimPrefix(s.URL(), "http://")
	_, err := observe.Listen(addr, false)
	if err == nil || err.Error() != "listen on "+addr+": address already in use (use port 0 for a free port)" {
		t.Errorf("got %v", err)
	}
}

// await sends requests until cond holds, or the test's time is over.
func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never %s", what)
		}
	}
}
