package site

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/runs"
	"github.com/stormglass/stormglass/loadgen/internal/runs/runstest"
	"github.com/stormglass/stormglass/loadgen/internal/scratch"
	"github.com/stormglass/stormglass/loadgen/result"
)

// serve serves a folder, after the first scan.
func serve(tb testing.TB, dir string) *httptest.Server {
	tb.Helper()
	index, err := runs.Open([]string{dir}, []string{""})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	tb.Cleanup(cancel)
	index.Scan(ctx)
	server := httptest.NewServer(NewServer(ctx, index))
	tb.Cleanup(server.Close)
	return server
}

func get(tb testing.TB, url string) (*http.Response, string) {
	tb.Helper()
	answer, err := http.Get(url)
	if err != nil {
		tb.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return answer, string(text)
}

const hostile = `<script>alert(1)</script>"'&`

// The server sends only the files of entries, and no path leaves the folder. It refuses requests that write.
func TestServerKeepsToTheFolder(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "runs")
	run := filepath.Base(runstest.Write(t, dir, 1, 1, nil)[0])
	for path, text := range map[string]string{
		filepath.Join(outer, "secret", result.RunFile): "secret", filepath.Join(outer, result.ResultFile): "secret", filepath.Join(dir, run, "notes.txt"): "secret",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{
		filepath.Join(dir, run, result.JUnitFile): filepath.Join(outer, result.ResultFile), filepath.Join(dir, "link"): filepath.Join(outer, "secret"),
	} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	server := serve(t, dir)
	for path, want := range map[string]int{
		"/":                                        200,
		"/run/" + run + "/report.html":             200,
		"/run/" + run + "/result.json":             200,
		"/run/" + run + "/junit.xml":               404, // a link that leaves the folder
		"/run/" + run + "/notes.txt":               404,
		"/run/link/run.json":                       404,
		"/run/%2e%2e/result.json":                  404,
		"/run/" + run + "/..%2f..%2fresult.json":   404,
		"/run/" + run + "%2f..%2f..%2fresult.json": 404,
		"/run/..%5cresult.json":                    404,
		"/run//etc/passwd":                         404,
		"/run/" + run + "/report.html%00":          404,
		"/trend?scenario=nothing":                  404,
		"/trend.csv":                               404,
		"/compare":                                 404,
		"/compare?run=" + run + "&run=../secret":   404,
		"/compare?run=" + run + "&run=" + run:      404,
		"/?from=-5&text=%00%ff":                    200,
		"/?from=99999999999999999999":              200,
	} {
		answer, text := get(t, server.URL+path)
		if answer.StatusCode != want || strings.Contains(text, "secret") {
			t.Errorf("%s: %d, want %d\n%s", path, answer.StatusCode, want, text)
		}
		if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") && answer.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s has no content security policy", path)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, answer.StatusCode)
		}
	}
}

// Names and texts of a hostile run stay texts, and the report of a run has no access to other pages.
func TestServerEscapesTexts(t *testing.T) {
	dir := t.TempDir()
	all := runstest.Write(t, dir, 2, 1, func(_ int, r *result.Result, _ *string) {
		r.Run.Scenario = strings.ReplaceAll(hostile, "/", "") // also the name of the directory
		r.Run.Versions.Kubernetes, r.Run.Host.CPUModel = hostile, hostile
		r.Run.Labels = map[string]string{"team": hostile}
		r.Verdict, r.Reasons = hostile, []string{hostile}
		r.Gates[0].Name, r.Figures[0].Name = hostile, hostile
	})
	server := serve(t, dir)
	paths := []string{"/", "/trend", "/?text=" + "%3Cscript%3Ealert(1)", "/compare?run=" + filepath.Base(all[0]) + "&run=" + filepath.Base(all[1])}
	for _, path := range paths {
		path = strings.NewReplacer(" ", "%20", "<", "%3C", ">", "%3E", `"`, "%22", "'", "%27", "&\"", "%26").Replace(path)
		answer, text := get(t, server.URL+path)
		if strings.Contains(text, "<script>alert") || answer.StatusCode >= 500 {
			t.Errorf("%s: %d: contains the script of a text", path, answer.StatusCode)
		}
	}
	_, list := get(t, server.URL+"/runs.json")
	var entries []runs.Entry
	if err := json.Unmarshal([]byte(list), &entries); err != nil || len(entries) != 2 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	if _, none := get(t, server.URL+"/runs.json?text=nothing"); none != "[]\n" {
		t.Errorf("a list without entries: %q", none)
	}
	answer, _ := get(t, server.URL+"/"+links{}.file(&entries[0], result.HTMLFile))
	if policy := answer.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "sandbox allow-scripts") || strings.Contains(policy, "allow-same-origin") {
		t.Errorf("policy of a report: %q", policy)
	}
}

// The page of a trend names the run and the setting that made a gate worse, and links to both runs.
func TestTrendPage(t *testing.T) {
	dir := t.TempDir()
	all := runstest.Write(t, dir, 30, 1, worse)
	server := serve(t, dir)
	for _, path := range []string{"/", "/trend?scenario=ci-gate"} {
		_, page := get(t, server.URL+path)
		for _, want := range []string{"mutating-latency", ">worse<", filepath.Base(all[19]), "scenario: controlPlane.webhookDelay: 10ms → 25ms", "compare?run="} {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %q", path, want)
			}
		}
	}
	// The report of the run leads to the runs before and after it.
	_, report := get(t, server.URL+"/run/"+filepath.Base(all[19])+"/report.html")
	for _, want := range []string{`<a href="../.././">All runs</a>`, `<a href="../../trend?scenario=ci-gate">Trends of ci-gate</a>`, filepath.Base(all[18]) + `/report.html">Run before</a>`, filepath.Base(all[20]) + `/report.html">Run after</a>`} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q: %s", want, report)
		}
	}
	_, csv := get(t, server.URL+"/trend.csv?scenario=ci-gate")
	if lines := strings.Split(strings.TrimSpace(csv), "\n"); len(lines) != 31 || !strings.HasPrefix(lines[0], "run,started,verdict,stormglass,kubernetes,") {
		t.Errorf("%d lines of CSV, the first: %s", len(lines), lines[0])
	}
	_, text := get(t, server.URL+"/trend.json?scenario=ci-gate")
	var trend result.Trend
	if err := json.Unmarshal([]byte(text), &trend); err != nil || len(trend.Runs) != 30 || len(trend.Figures[0].Changes) != 1 {
		t.Errorf("trend %+v, %v", trend, err)
	}
}

// A page of trends as one file shows one variant, and names the others.
func TestTrendFileNamesOtherVariants(t *testing.T) {
	dir := t.TempDir()
	runstest.Write(t, dir, 5, 1, func(i int, r *result.Result, _ *string) {
		if i >= 3 {
			r.Run.Variant = "large"
		}
	})
	index, err := runs.Open([]string{dir}, []string{""})
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	if err := WriteTrend(t.Context(), &page, index); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), "3 runs, ") || !strings.Contains(page.String(), "ci-gate (large) (2 runs)") {
		t.Errorf("the page lacks the number of its runs or the other variant: %s", &page)
	}
}

// The largest values of a gate have positions in the chart.
func TestTrendOfLargeValues(t *testing.T) {
	dir := t.TempDir()
	runstest.Write(t, dir, 2, 1, func(_ int, r *result.Result, _ *string) { r.Gates[0].Value = new(1e308) })
	if _, page := get(t, serve(t, dir).URL+"/trend"); strings.Contains(page, "Inf") {
		t.Error("a position in the chart is infinite")
	}
}

// worse makes the gate mutating-latency worse from run 19 on.
func worse(i int, r *result.Result, scenario *string) {
	if i >= 19 {
		*r.Gates[0].Value *= 1.4
		*scenario = strings.Replace(*scenario, "webhookDelay: 10ms", "webhookDelay: 25ms", 1)
	}
}

// The page of an active run shows its phase. When the run has ended, it leads to the report.
func TestPageOfAnActiveRun(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "active")
	if err := os.MkdirAll(run, 0o755); err != nil {
		t.Fatal(err)
	}
	event := `{"time":"2026-10-05T00:00:00Z","kind":"phase-start","name":"storm"}` + "\n"
	if err := os.WriteFile(filepath.Join(run, result.TimelineFile), []byte(event), 0o600); err != nil {
		t.Fatal(err)
	}
	lock, err := scratch.LockDir(run)
	if err != nil || lock == nil {
		t.Fatal(err)
	}
	defer lock.Close()
	answer, page := get(t, serve(t, dir).URL+"/run/active/")
	if !strings.Contains(page, "RUNNING") || !strings.Contains(page, "Phase storm is in progress.") || answer.Header.Get("Refresh") == "" {
		t.Errorf("page of the active run: %s", page)
	}
	runstest.Put(t, run, runstest.Latest(), runstest.Scenario)
	answer, page = get(t, serve(t, dir).URL+"/run/active/")
	if !strings.HasSuffix(answer.Request.URL.Path, "/report.html") || !strings.Contains(page, "Report of ci-gate") {
		t.Errorf("after the end: %s: %s", answer.Request.URL, page)
	}
}

// A browser that has the current version of the list is not sent it again.
func TestListIsSentOnce(t *testing.T) {
	dir := t.TempDir()
	runstest.Write(t, dir, 3, 1, nil)
	server := serve(t, dir)
	answer, _ := get(t, server.URL)
	r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("If-None-Match", answer.Header.Get("ETag"))
	again, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	again.Body.Close()
	if again.StatusCode != http.StatusNotModified {
		t.Errorf("status %d, want 304", again.StatusCode)
	}
	if other, _ := get(t, serve(t, dir).URL); other.Header.Get("ETag") == answer.Header.Get("ETag") {
		t.Error("another server has the same version")
	}
}

// A run that was removed after the scan cannot be compared. The answer contains no path of the machine.
func TestComparisonOfARemovedRun(t *testing.T) {
	dir := t.TempDir()
	all := runstest.Write(t, dir, 2, 1, nil)
	server := serve(t, dir)
	if err := os.RemoveAll(all[0]); err != nil {
		t.Fatal(err)
	}
	answer, text := get(t, server.URL+"/compare?run="+filepath.Base(all[0])+"&run="+filepath.Base(all[1]))
	if answer.StatusCode != http.StatusInternalServerError || strings.Contains(text, dir) || !strings.Contains(text, filepath.Base(all[0])+": result.json is missing") {
		t.Errorf("%d: %s", answer.StatusCode, text)
	}
}

// A run that was reduced to its results is compared without charts, and the page says so.
func TestComparisonOfAReducedRun(t *testing.T) {
	dir := t.TempDir()
	all := runstest.Write(t, dir, 2, 1, nil)
	reduced := `{"time": "2026-11-30T00:00:00Z", "removed": ["tsdb"]}`
	if err := os.WriteFile(filepath.Join(all[0], result.ReducedFile), []byte(reduced), 0o600); err != nil {
		t.Fatal(err)
	}
	answer, text := get(t, serve(t, dir).URL+"/compare?run="+filepath.Base(all[0])+"&run="+filepath.Base(all[1]))
	if answer.StatusCode != http.StatusOK || !strings.Contains(text, "has no charts") || !strings.Contains(text, "mutating-latency") {
		t.Errorf("%d: %s", answer.StatusCode, text)
	}
}

// stalled is the response of a browser that reads nothing.
type stalled struct {
	httptest.ResponseRecorder
	sent func()
}

func (w *stalled) Write([]byte) (int, error) {
	w.sent()
	return 0, io.ErrClosedPipe
}

// A browser that does not read a comparison does not block the comparisons of others.
func TestSlowBrowserBlocksNoOther(t *testing.T) {
	dir := t.TempDir()
	all := runstest.Write(t, dir, 2, 1, nil)
	index, err := runs.Open([]string{dir}, []string{""})
	if err != nil {
		t.Fatal(err)
	}
	index.Scan(t.Context())
	server := NewServer(t.Context(), index)
	r := httptest.NewRequest("GET", "/compare?run="+filepath.Base(all[0])+"&run="+filepath.Base(all[1]), nil)
	sent := false
	server.ServeHTTP(&stalled{*httptest.NewRecorder(), func() {
		sent = true
		if len(server.reading) > 0 {
			t.Error("other comparisons wait until the browser has read this one")
		}
	}}, r)
	if !sent {
		t.Error("no page was sent")
	}
}

// Publish writes all pages and reports, and nothing if it fails.
func TestPublish(t *testing.T) {
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "new", "site")
	all := runstest.Write(t, dir, 4, 1, func(i int, _ *result.Result, scenario *string) {
		*scenario = strings.Replace(*scenario, "webhookDelay: 10ms", fmt.Sprintf("webhookDelay: %dms", i), 1)
	})
	index, err := runs.Open([]string{dir}, []string{""})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Publish(t.Context(), index, out)
	if err != nil || p.Runs != 4 {
		t.Fatalf("%+v, %v", p, err)
	}
	for _, name := range []string{"index.html", "trend-ci-gate.html", "compare.html", "run/" + filepath.Base(all[0]) + "/report.html", "run/" + filepath.Base(all[0]) + "/result.json"} {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}
	page, err := os.ReadFile(filepath.Join(out, "compare.html"))
	if err != nil || strings.Contains(string(page), dir) || !strings.Contains(string(page), "loadgen ab run/"+filepath.Base(all[3])+"/scenario.yaml") {
		t.Errorf("the command names a directory outside the site: %v", err)
	}
	if _, err := Publish(t.Context(), index, out); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("second call: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Publish(ctx, index, out+"2"); err == nil {
		t.Error("no error after a cancellation")
	}
	if index, err = runs.Open([]string{filepath.Dir(out)}, []string{""}); err != nil {
		t.Fatal(err)
	}
	if index.Scan(t.Context()); len(index.Snapshot().Entries) > 0 {
		t.Error("an index contains the copies of runs in a site")
	}
	if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) != 1 {
		t.Errorf("after a failure: %v, %v", left, err)
	}
}

// Publish writes to an empty directory that it cannot replace: a link to it, or the working directory.
func TestPublishToAnEmptyDirectory(t *testing.T) {
	dir, empty, link := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "link")
	runstest.Write(t, dir, 1, 1, nil)
	index, err := runs.Open([]string{dir}, []string{""})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(empty, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for out, at := range map[string]string{link: empty, ".": "."} {
		if _, err := Publish(t.Context(), index, out); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(at); err != nil || len(left) != 3 { // the marker, index.html and run
			t.Errorf("--out %s: %v, %v", out, left, err)
		}
	}
}

// If a run cannot be compared, Publish writes all other pages, and says so. No link leads to a missing page.
func TestPublishWithADamagedRun(t *testing.T) {
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "site")
	all := runstest.Write(t, dir, 2, 1, func(i int, r *result.Result, _ *string) {
		if i == 1 {
			r.Schema = "unknown"
		}
	})
	index, err := runs.Open([]string{dir}, []string{""})
	if err != nil {
		t.Fatal(err)
	}
	index.Scan(t.Context())
	if err := os.Remove(filepath.Join(all[0], result.HTMLFile)); err != nil { // after the scan
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(all[1], result.HTMLFile), 1<<30); err != nil {
		t.Fatal(err)
	}
	p, err := Publish(t.Context(), index, out)
	if err != nil || len(p.Notes) != 2 || !strings.Contains(p.Notes[0], "report.html was not copied: it is larger than 64 MiB") || !strings.Contains(p.Notes[1], "compare.html was not written") {
		t.Fatalf("%+v, %v", p, err)
	}
	page, err := os.ReadFile(filepath.Join(out, "index.html"))
	if err != nil || strings.Contains(string(page), "compare.html") || strings.Contains(string(page), "/report.html") {
		t.Errorf("the list leads to a page that is missing, or %v", err)
	}
}

// Each scenario and variant has its own file of a length that file systems permit.
func TestTrendFilesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range [][2]string{{"ci-gate", ""}, {"ci", "gate"}, {"CI-gate", ""}, {"-ci-gate", ""}, {"ci-gate", "!"}, {strings.Repeat("x", 300), ""}, {strings.Repeat("x", 301), ""}} {
		file := trendFile(name[0], name[1])
		if seen[file] || len(file) > 200 {
			t.Errorf("file of %q: %s", name, file)
		}
		seen[file] = true
	}
}

// The list of 5,000 runs has a page of rows, links to older runs, and bounded memory.
func TestListOfManyRuns(t *testing.T) {
	dir := t.TempDir()
	runstest.Write(t, dir, 5000, 1, nil)
	server := serve(t, dir)
	_, page := get(t, server.URL)
	if n := strings.Count(page, `type="checkbox"`); n != pageLength || !strings.Contains(page, "5000 of 5000 match; 1 to 100 are shown") || !strings.Contains(page, `from=100">Older`) {
		t.Errorf("%d rows on the first page", n)
	}
	if _, last := get(t, server.URL+"/?from=4950"); strings.Count(last, `type="checkbox"`) != 50 || strings.Contains(last, "Older") {
		t.Error("the last page has not 50 rows")
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if mb := m.HeapAlloc >> 20; mb > 100 {
		t.Errorf("%d MB of memory for 5,000 runs, want at most 100", mb)
	}
}

// BenchmarkList sends the list of 5,000 runs.
func BenchmarkList(b *testing.B) {
	dir := b.TempDir()
	runstest.Write(b, dir, 5000, 1, nil)
	server := serve(b, dir)
	for b.Loop() {
		if answer, _ := get(b, server.URL); answer.StatusCode != 200 {
			b.Fatal(answer.Status)
		}
	}
}

// The page of several runs shows the command that sets what differs between them.
func TestCommandOfAComparison(t *testing.T) {
	for name, c := range map[string]struct {
		change func(i int, r *result.Result, scenario *string)
		want   string
	}{
		"a changed field": {worse19, "--a controlPlane.webhookDelay=10ms"},
		"a new field": {func(i int, _ *result.Result, scenario *string) {
			if i == 1 {
				*scenario += "seed: 2\ntracing:\n  sample: 5%\n"
			}
		}, "--b tracing.sample=5%"},
		"another Kubernetes": {func(i int, r *result.Result, _ *string) {
			if i == 1 {
				r.Run.Versions.Kubernetes = "v1.38.0"
			}
		}, "--a PATH/controlplane-v1.37.1 --b PATH/controlplane-v1.38.0"},
		"another Stormglass": {func(i int, r *result.Result, _ *string) {
			if i == 1 {
				r.Run.Versions.Stormglass = "v1.0.0"
			}
		}, "--a rev=v0.9.0 --b rev=v1.0.0"},
		"no difference": {nil, ""},
	} {
		dir := t.TempDir()
		all := runstest.Write(t, dir, 2, 1, c.change)
		_, page := get(t, serve(t, dir).URL+"/compare?run="+filepath.Base(all[0])+"&run="+filepath.Base(all[1]))
		if has := strings.Contains(page, "loadgen ab "); has != (c.want != "") || !strings.Contains(page, c.want) {
			t.Errorf("%s: the page lacks %q", name, c.want)
		}
	}
}

// worse19 changes the second of two runs as worse changes the runs from 19 on.
func worse19(i int, r *result.Result, scenario *string) { worse(i+18, r, scenario) }
