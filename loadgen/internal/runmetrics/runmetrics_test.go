package runmetrics_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/runmetrics"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

// storm records a run with a slow disk in its second phase. An API server goes away at the
// end of that phase.
func storm(t *testing.T) string {
	t.Helper()
	l := archivetest.New(t, scrape.Options{}, "etcd-0", "kube-apiserver-0")
	fsync := func(v float64) {
		l.Parts["etcd-0"].Observe("etcd_disk_wal_fsync_duration_seconds", "", []float64{0.008, 0.016}, v, 100)
	}
	fsync(0.001)
	calm := l.Phase("calm", func() { fsync(0.001) })
	slow := l.Phase("slow", func() { fsync(0.1) })
	for range 3 { // until the alert fires
		fsync(0.1)
		slow.End = l.Boundary(30 * time.Second)
	}
	l.Parts["kube-apiserver-0"].SetDown(true)
	slow.End = l.Boundary(30*time.Second + 7*time.Millisecond)
	text := strings.ReplaceAll(archivetest.SoundScenario, "name: storm", "name: slow")
	run := result.Run{ID: "ab12", Scenario: "sound", Started: calm.Start.Add(-time.Minute), Ended: slow.End.Add(time.Minute), Cluster: result.Cluster{Bundled: true}}
	return l.RunDir(text, run, result.Measurements{Phases: []result.Phase{calm, slow}})
}

func open(t *testing.T, dir string) *runmetrics.Run {
	t.Helper()
	r, err := runmetrics.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// contents returns the digest of each file in a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// unchanged fails the test if the test changes a directory.
func unchanged(t *testing.T, dir string) {
	t.Helper()
	before := contents(t, dir)
	t.Cleanup(func() {
		if after := contents(t, dir); !maps.Equal(before, after) {
			t.Errorf("the directory of the run has changed: %d files, %d before", len(after), len(before))
		}
	})
}

// Queries cover the run or a phase, at a time or at each step, and both scraped samples and
// the results of rules.
func TestAsk(t *testing.T) {
	dir := storm(t)
	unchanged(t, dir)
	r := open(t, dir)
	slow, err := r.Phase("slow")
	if err != nil {
		t.Fatal(err)
	}
	calm, err := r.Phase("calm")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		expr string
		of   result.Phase
		want float64
	}{
		{`increase(etcd_disk_wal_fsync_duration_seconds_count[$__range])`, calm, 100},
		{`increase(etcd_disk_wal_fsync_duration_seconds_count{instance=~"$instance"}[$__range])`, slow, 400},
		{`instance:etcd_disk_wal_fsync_over_8ms:ratio_rate2m > bool 0.5`, slow, 1},
		{`ALERTS{alertname="EtcdWALFsyncSlow", alertstate="firing"}`, slow, 1},
	} {
		a, err := r.Ask(t.Context(), runmetrics.Query{Expr: c.expr, From: c.of.Start, To: c.of.End})
		if err != nil || len(a.Values) != 1 || a.Values[0].V < c.want*0.999 || a.Values[0].V > c.want*1.001 {
			t.Errorf("%s over %s: %+v, %v, want %v", c.expr, c.of.Name, a.Values, err, c.want)
		}
	}
	all := runmetrics.Query{Expr: `up{job="kube-apiserver"}`, From: r.Start, To: r.End, Range: true, Step: 30 * time.Second}
	a, err := r.Ask(t.Context(), all)
	if err != nil || len(a.Series) != 1 || len(a.Series[0].Points) != int(r.End.Sub(r.Start)/all.Step)+1 {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := r.Ask(t.Context(), runmetrics.Query{Expr: "nothing", To: r.End}); err != nil || !a.Empty() {
		t.Errorf("%+v, %v", a, err)
	}
	for _, q := range []runmetrics.Query{
		{Expr: "up("}, {Expr: "up[5m]"}, {Expr: `"text"`}, {Expr: "up + on() up"},
		{Expr: "up", Range: true, From: r.Start, To: r.End, Step: time.Millisecond},
	} {
		if q.To.IsZero() {
			q.To = r.End
		}
		if _, err := r.Ask(t.Context(), q); exitcode.Of(err) != exitcode.Usage || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", q.Expr, err)
		}
	}
	if _, err := r.Phase("sloww"); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "did you mean slow?") {
		t.Errorf("%v", err)
	}
}

// Answers can be written as a table, in the format of Prometheus' API, and as CSV.
func TestAnswers(t *testing.T) {
	r := open(t, storm(t))
	q := runmetrics.Query{Expr: `up{job="etcd"} / 3`, From: r.Start, To: r.Start.Add(30 * time.Second)}
	instant, err := r.Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	q.Range, q.Step = true, 30*time.Second
	ranged, err := r.Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a         runmetrics.Answer
		text, csv string
		json      any
	}{
		{instant, "{instance=\"etcd-0\", job=\"etcd\"}  0.3333333333333333\n",
			"time,instance,job,value\n2027-01-15T08:00:31.000Z,etcd-0,etcd,0.3333333333333333\n",
			map[string]any{"resultType": "vector", "result": []any{map[string]any{"metric": map[string]any{"instance": "etcd-0", "job": "etcd"}, "value": []any{1800000031.0, "0.3333333333333333"}}}}},
		{ranged, "{instance=\"etcd-0\", job=\"etcd\"}\n  2027-01-15T08:00:01.000Z  +0s   0.3333333333333333\n  2027-01-15T08:00:31.000Z  +30s  0.3333333333333333\n",
			"time,instance,job,value\n2027-01-15T08:00:01.000Z,etcd-0,etcd,0.3333333333333333\n2027-01-15T08:00:31.000Z,etcd-0,etcd,0.3333333333333333\n",
			map[string]any{"resultType": "matrix", "result": []any{map[string]any{"metric": map[string]any{"instance": "etcd-0", "job": "etcd"},
				"values": []any{[]any{1800000001.0, "0.3333333333333333"}, []any{1800000031.0, "0.3333333333333333"}}}}}},
	} {
		var text, csv bytes.Buffer
		got, err := json.Marshal(c.a.Data())
		if err := errors.Join(c.a.WriteText(&text), c.a.WriteCSV(&csv), err); err != nil {
			t.Fatal(err)
		}
		if text.String() != c.text || csv.String() != c.csv {
			t.Errorf("text %q, want %q\ncsv %q, want %q", text.String(), c.text, csv.String(), c.csv)
		}
		want, err := json.Marshal(c.json)
		if err != nil {
			t.Fatal(err)
		}
		if !jsonEqual(t, got, want) {
			t.Errorf("JSON %s, want %s", got, want)
		}
	}
}

// Names and values of labels that rewrite a terminal are printed without control characters.
func TestAnswersAreClean(t *testing.T) {
	a := runmetrics.Answer{At: time.Unix(0, 0), Values: []archive.Sample{{Labels: map[string]string{"a\x1b[2J": "b\x1b[2Jc\x00d\xffe\u202e\nf\u00a0g", "__name__": "up\x9b"}, V: 1}}}
	var text, csv bytes.Buffer
	if err := errors.Join(a.WriteText(&text), a.WriteCSV(&csv)); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(text.String(), "\x1b\x00\u202e\u009b") || !utf8.Valid(text.Bytes()) || !strings.Contains(text.String(), "a[2J") {
		t.Errorf("text %q", text.String())
	}
	const want = "time,__name__,a\ufffd[2J,value\n1970-01-01T00:00:00.000Z,up\ufffd,\"b\ufffd[2Jc\ufffdd\ufffde\ufffd\nf\u00a0g\",1\n"
	if csv.String() != want {
		t.Errorf("csv %q, want %q", csv.String(), want)
	}
}

func jsonEqual(t *testing.T, a, b []byte) bool {
	t.Helper()
	var texts [2]string
	for i, data := range [][]byte{a, b} {
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		texts[i] = fmt.Sprint(v)
	}
	return texts[0] == texts[1]
}

// Open refuses a directory without a run, a directory of variants and a damaged archive
// with an error of one line.
func TestOpenRefuses(t *testing.T) {
	damaged := archivetest.CopyDir(t, storm(t))
	chunks, err := filepath.Glob(filepath.Join(damaged, result.TSDBDir, "*", "chunks", "*"))
	if err != nil || len(chunks) == 0 {
		t.Fatal(chunks, err)
	}
	data, err := os.ReadFile(chunks[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 0xff
	if err := os.WriteFile(chunks[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	gone := archivetest.CopyDir(t, storm(t))
	if err := os.RemoveAll(filepath.Join(gone, result.TSDBDir)); err != nil {
		t.Fatal(err)
	}
	variants := t.TempDir()
	if err := os.WriteFile(filepath.Join(variants, result.ComparisonFile), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]int{
		filepath.Join(t.TempDir(), "nowhere"): exitcode.Usage, t.TempDir(): exitcode.Usage, variants: exitcode.Usage,
		damaged: exitcode.NoData, gone: exitcode.NoData,
	} {
		_, err := runmetrics.Open(t.Context(), dir)
		if got := exitcode.Of(err); got != want || err == nil || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: exit %d, want %d: %v", dir, got, want, err)
		}
	}
}

// sortedLines returns the lines of a text, sorted.
func sortedLines(text string) []string {
	return slices.Sorted(strings.Lines(text))
}
