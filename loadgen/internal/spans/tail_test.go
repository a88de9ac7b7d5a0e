package spans

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// line returns OTLP/JSON with one span of that name.
func line(t *testing.T, name string) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteOTLP(&b, []Span{span(1, 0, name, 1, 2)}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func write(t *testing.T, path string, flags int, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|flags, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestTailReadsWhatWasAppended(t *testing.T) {
	a, b, c := line(t, "a"), line(t, "b"), line(t, "c")
	for name, x := range map[string]struct {
		before string
		change func(t *testing.T, path string)
		want   []string
		counts TailCounts
	}{
		"nothing":  {a, func(*testing.T, string) {}, nil, TailCounts{}},
		"appended": {a, func(t *testing.T, path string) { write(t, path, os.O_APPEND, b+"\n"+c) }, []string{"b", "c"}, TailCounts{}},
		"truncated": {a + a, func(t *testing.T, path string) {
			write(t, path, os.O_TRUNC, b)
		}, []string{"b"}, TailCounts{}},
		"rotated": {a, func(t *testing.T, path string) {
			write(t, path, os.O_APPEND, b)
			if err := os.Rename(path, path+".1"); err != nil {
				t.Fatal(err)
			}
			write(t, path, 0, c)
		}, []string{"b", "c"}, TailCounts{}},
		"removed": {a, func(t *testing.T, path string) {
			write(t, path, os.O_APPEND, b)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, []string{"b"}, TailCounts{}},
		"half a line at the end":      {"", func(t *testing.T, path string) { write(t, path, 0, b+c[:len(c)/2]) }, []string{"b"}, TailCounts{Partial: 1}},
		"a line without its newline":  {"", func(t *testing.T, path string) { write(t, path, 0, b+strings.TrimSpace(c)) }, []string{"b"}, TailCounts{Partial: 1}},
		"half a line at the start":    {a[:9], func(t *testing.T, path string) { write(t, path, os.O_APPEND, a[9:]+b) }, []string{"b"}, TailCounts{Broken: 1}},
		"other lines":                 {"", func(t *testing.T, path string) { write(t, path, 0, "x\n"+b+"[]\n{\"resourceMetrics\":[]}\n"+c) }, []string{"b", "c"}, TailCounts{Broken: 2}},
		"a line that is too long":     {"", func(t *testing.T, path string) { write(t, path, 0, strings.Repeat(" ", longestLine)+b+c) }, []string{"c"}, TailCounts{Broken: 1}},
		"a long line without its end": {"", func(t *testing.T, path string) { write(t, path, 0, b+strings.Repeat("x", longestLine+1)) }, []string{"b"}, TailCounts{Partial: 1}},
		"invalid IDs":                 {"", func(t *testing.T, path string) { write(t, path, 0, strings.Replace(b, "traceId", "x", 1)+c) }, []string{"c"}, TailCounts{Invalid: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "spans.jsonl")
			write(t, path, 0, x.before)
			tail, err := OpenTail(path)
			if err != nil {
				t.Fatal(err)
			}
			defer tail.Close()
			x.change(t, path)
			var got []string
			for range 2 { // the second time, there is nothing new
				err := tail.Read(t.Context(), func(s Span) { got = append(got, s.Name) })
				if err != nil || !slices.Equal(got, x.want) || tail.Counts() != x.counts {
					t.Errorf("%v, %+v, %v; want %v, %+v", got, tail.Counts(), err, x.want, x.counts)
				}
			}
		})
	}
}

// A line may be appended in parts, and the file may be rotated in the middle of a run.
func TestTailFollows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spans.jsonl")
	write(t, path, 0, "")
	tail, err := OpenTail(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tail.Close()
	var got []string
	read := func(want ...string) {
		t.Helper()
		if err := tail.Read(t.Context(), func(s Span) { got = append(got, s.Name) }); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
	a, b := line(t, "a"), line(t, "b")
	write(t, path, os.O_APPEND, a[:20])
	read()
	write(t, path, os.O_APPEND, a[20:]+b[:20])
	read("a")
	write(t, path, os.O_APPEND, b[20:])
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	write(t, path, 0, a)
	read("a", "b", "a")
	write(t, path, os.O_APPEND, b)
	read("a", "b", "a", "b")
	if c := tail.Counts(); c != (TailCounts{}) {
		t.Errorf("%+v", c)
	}
}

func TestTailErrors(t *testing.T) {
	if _, err := OpenTail(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := OpenTail("/dev/null"); err == nil || strings.Contains(err.Error(), "null") {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "spans.jsonl")
	write(t, path, 0, "")
	tail, err := OpenTail(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tail.Close()
	write(t, path, 0, strings.Repeat(line(t, "a"), 3))
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	if err := tail.Read(ctx, func(Span) { n++; cancel() }); !errors.Is(err, context.Canceled) || n != 1 {
		t.Error(fmt.Sprint(n, " spans: ", err))
	}
}
