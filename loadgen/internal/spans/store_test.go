package spans

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTracesAreReadBack(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := Read(dir); !Missing(err) {
		t.Errorf("a run without traces: %v", err)
	}
	tracer := NewTracer(Limits{}, 1, 1)
	for _, w := range rollout() {
		for _, s := range w {
			tracer.keeper.Span(s, 0)
		}
	}
	r, all := traced(1, 5)
	for _, s := range all {
		tracer.keeper.Span(s, 0)
	}
	tracer.keeper.Request(r, 0)
	tracer.Flush()
	want, index := tracer.Kept()
	for range 2 { // the second time replaces the files
		if err := index.Write(dir, want); err != nil {
			t.Fatal(err)
		}
	}
	read, got, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	index.Traces, read.Traces = nil, nil
	if fmt.Sprint(got) != fmt.Sprint(want) || fmt.Sprintf("%+v", read) != fmt.Sprintf("%+v", index) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestDamagedTraces(t *testing.T) {
	tracer := NewTracer(Limits{}, 1, 1)
	r, all := traced(1, 5)
	for _, s := range all {
		tracer.keeper.Span(s, 0)
	}
	tracer.keeper.Request(r, 0)
	tracer.Flush()
	kept, index := tracer.Kept()
	for name, damage := range map[string]func(dir string) error{
		"traces/index.json: unexpected end of JSON input": func(dir string) error { return cut(filepath.Join(dir, IndexFile)) },
		"traces/spans.jsonl: line 1":                      func(dir string) error { return cut(filepath.Join(dir, SpansFile)) },
		"spanId is not a valid ID": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, IndexFile), []byte(`{"traces":[{"traceId":"zz"}]}`), 0o600)
		},
		"it has 100001 objects, more than 100000": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, IndexFile), []byte(`{"traces":[{}`+strings.Repeat(",{}", 99_999)+"]}"), 0o600)
		},
		"traces/spans.jsonl: it is larger than 64 MiB": func(dir string) error { return os.Truncate(filepath.Join(dir, SpansFile), 1<<40) },
		"larger than 16 MiB":                           func(dir string) error { return os.Truncate(filepath.Join(dir, IndexFile), 1<<40) },
		"no such file":                                 func(dir string) error { return os.Remove(filepath.Join(dir, SpansFile)) },
	} {
		dir := t.TempDir()
		if err := errors.Join(index.Write(dir, kept), damage(filepath.Join(dir, Dir))); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Read(dir); err == nil || !strings.Contains(err.Error(), name) || Missing(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An index of a run directory from elsewhere may have any times.
func TestTimesOfAnIndexAreLimited(t *testing.T) {
	dir := t.TempDir()
	if err := (Index{}).Write(dir, nil); err != nil {
		t.Fatal(err)
	}
	index := fmt.Sprintf(`{"traces":[{"traceId":"%s","spanId":"%s","dueUnixNano":%d,"sentUnixNano":-1,"lastByteUnixNano":%d}]}`, traceID(1), id(1), math.MinInt64, math.MaxInt64)
	if err := os.WriteFile(filepath.Join(dir, Dir, IndexFile), []byte(index), 0o600); err != nil {
		t.Fatal(err)
	}
	_, all, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all[0].Result().Spans {
		if s.Self < 0 || s.Critical < 0 || s.Seconds < 0 {
			t.Errorf("%+v", s)
		}
	}
}

func cut(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, info.Size()/2)
}
