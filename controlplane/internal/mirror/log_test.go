package mirror

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/controlplane/internal/process"
)

// TestLogOptions reads the log of two processes. A line without a time gets the time of the line before it.
func TestLogOptions(t *testing.T) {
	const first = "of the first process\n"
	lines := []string{
		"no time yet\n",
		`{"level":"info","ts":"2026-11-22T10:00:01.5Z","msg":"of etcd"}` + "\n",
		"panic: as it was then\n",
		`{"level":"info","ts":"2026-11-22T10:00:03Z","msg":"no end yet"}`,
	}
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(first+strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	last := &process.Child{Started: began.Add(-time.Hour)}
	child := &process.Child{Started: began, Offset: int64(len(first))}
	count := func(n int64) *int64 { return &n }
	since := metav1.NewTime(began.Add(time.Second))
	for name, test := range map[string]struct {
		options  corev1.PodLogOptions
		previous bool
		want     []string
	}{
		"all":           {want: lines},
		"previous":      {previous: true, want: []string{first}},
		"tail":          {options: corev1.PodLogOptions{TailLines: count(2)}, want: lines[2:]},
		"no tail":       {options: corev1.PodLogOptions{TailLines: count(0)}},
		"a longer tail": {options: corev1.PodLogOptions{TailLines: count(9)}, want: lines},
		"since":         {options: corev1.PodLogOptions{SinceTime: &since}, want: lines[1:]},
		"timestamps": {options: corev1.PodLogOptions{Timestamps: true}, want: []string{
			"2026-11-22T10:00:00.000000000Z " + lines[0], "2026-11-22T10:00:01.500000000Z " + lines[1],
			"2026-11-22T10:00:01.500000000Z " + lines[2], "2026-11-22T10:00:03.000000000Z " + lines[3],
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			of, next := child, (*process.Child)(nil)
			if test.previous {
				of, next = last, child
			}
			err := copyLog(t.Context(), path, of, next, &test.options, &got)
			if want := strings.Join(test.want, ""); got.String() != want || err != nil {
				t.Errorf("got %q, want %q; %v", got.String(), want, err)
			}
		})
	}
}

// TestLogIsFollowed checks that a followed log returns whole lines when they are written, even after a rotation, until
// the reader leaves.
func TestLogIsFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ctx, leave := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- copyLog(ctx, path, &process.Child{}, nil, &corev1.PodLogOptions{Follow: true}, w)
		w.Close()
	}()
	from := bufio.NewReader(r)
	for _, line := range []string{"one\n", "two\n", "new\n"} {
		if line == "new\n" {
			if err := f.Truncate(0); err != nil {
				t.Fatal(err)
			}
		}
		for _, part := range []string{line[:1], line[1:]} {
			if _, err := f.WriteString(part); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := from.ReadString('\n'); got != line || err != nil {
			t.Errorf("got %q, want %q; %v", got, line, err)
		}
	}
	leave()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
