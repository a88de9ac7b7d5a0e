package judge

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/result"
)

// traced is a sound run that kept a trace.
func traced(t *testing.T) string {
	t.Helper()
	dir := archivetest.SoundRun(t)
	all := []spans.Trace{{
		Request: spans.Request{Trace: spans.TraceID{1}, ID: spans.ID{1}, Load: "l", Phase: "p", Verb: "get", Resource: "pods", Due: 1e9, Sent: 1e9, Last: 2e9, Status: 200},
		Spans:   []spans.Span{{Trace: spans.TraceID{1}, ID: spans.ID{2}, Parent: spans.ID{1}, Process: "kube-apiserver-0", Name: "GET", Start: 1e9, End: 2e9}},
	}}
	run, err := result.ReadRun(dir)
	if err = errors.Join(err, (spans.Index{Sampled: 1}).Write(dir, all)); err != nil {
		t.Fatal(err)
	}
	var text []byte
	if run.Files, err = result.Digest(dir); err == nil {
		text, err = run.Encode()
	}
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, result.RunFile), text, 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Whatever happens to the traces, the verdict is the same. Traces that were changed after the run are not shown.
func TestTracesDoNotChangeTheVerdict(t *testing.T) {
	t.Parallel()
	whole := traced(t)
	o := judged(t, whole)
	if o.code != exitcode.Pass || len(o.result.Notes) != 0 || o.result.Traces == nil || len(o.result.Traces.Slowest) != 1 {
		t.Fatalf("undamaged run: exit code %d, %q, notes %q, traces %+v", o.code, o.said, o.result.Notes, o.result.Traces)
	}
	first, err := json.Marshal(o.result)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(judged(t, whole).result); err != nil || string(again) != string(first) {
		t.Errorf("the second judging differs: %v", err)
	}
	for _, file := range []string{spans.IndexFile, spans.SpansFile} {
		text, err := os.ReadFile(filepath.Join(whole, spans.Dir, file))
		if err != nil {
			t.Fatal(err)
		}
		for how, damage := range damages() {
			dir := archivetest.CopyDir(t, whole)
			damage(t, filepath.Join(dir, spans.Dir, file), text)
			o := judged(t, dir)
			if o.code != exitcode.Pass || o.result.Traces != nil || len(o.result.Notes) != 1 || !strings.HasPrefix(o.result.Notes[0], "traces/"+file) {
				t.Errorf("%s, %s: exit code %d, %q, notes %q", file, how, o.code, o.said, o.result.Notes)
			}
		}
	}
}
