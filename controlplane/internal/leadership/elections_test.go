package leadership

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/process"
)

func TestElectionsAreReadFromLogs(t *testing.T) {
	for line, want := range map[string]control.Event{
		`{"level":"info","ts":"2026-11-21T14:33:22.123456Z","logger":"raft","caller":"v3@v3.7.0/raft.go:970","msg":"8e9e05c52164694d became leader at term 7"}`: {
			Kind: control.EventEtcdLeader, Detail: "term 7", Time: time.Date(2026, 11, 21, 14, 33, 22, 123456000, time.UTC),
		},
		`{"level":"info","ts":"2026-11-21T14:33:22.1Z","logger":"raft","msg":"8e9e05c52164694d became follower at term 7"}`: {},
		"2026-11-21 14:33:22 raft: 8e9e05c52164694d became leader at term 12":                                               {Kind: control.EventEtcdLeader, Detail: "term 12"},
	} {
		if got, _ := find(control.KindEtcd, line); got != want {
			t.Errorf("find(%s) = %+v, want %+v", line, got, want)
		}
	}
	got, found := find(control.KindScheduler, `I1121 14:33:22.123456   12345 leaderelection.go:272] "Successfully acquired lease" lock="kube-system/kube-scheduler"`)
	if !found || got.Kind != control.EventLease || got.Time.Nanosecond() != 123456000 || got.Time.Month() != time.November {
		t.Errorf("find of an acquired lease = %+v %v, want a lease event with the time of the line", got, found)
	}
	if _, found := find(control.KindScheduler, `I1121 14:33:22.123456   12345 leaderelection.go:258] "Attempting to acquire leader lease..." lock="kube-system/kube-scheduler"`); found {
		t.Error("find took an attempt for an acquired lease")
	}
}

// TestTimeOfAnEntry checks the two formats of time in JSON log entries: etcd's and Kubernetes'.
func TestTimeOfAnEntry(t *testing.T) {
	want := time.Date(2026, 11, 25, 18, 53, 22, 500355000, time.UTC)
	for _, line := range []string{
		`{"level":"info","ts":"2026-11-25T18:53:22.500355Z","msg":"x"}`,
		`{"ts":1795632802500.355,"caller":"leaderelection/leaderelection_controller.go:410","msg":"x","v":0}`,
	} {
		if got := LineTime(line, want); !got.Equal(want) {
			t.Errorf("LineTime(%s) = %v, want %v", line, got, want)
		}
	}
	for _, line := range []string{`{"msg":"no time"}`, `{"ts":"yesterday"}`, `{"ts":`} {
		if got := LineTime(line, want); !got.IsZero() {
			t.Errorf("LineTime(%s) = %v, want the zero time", line, got)
		}
	}
}

// TestTimeOfALineInJanuary checks that a line from December gets the previous year: klog writes no year.
func TestTimeOfALineInJanuary(t *testing.T) {
	now := time.Date(2027, 1, 1, 0, 0, 1, 0, time.UTC)
	if got, want := LineTime("I1231 23:59:59.500000   1 a.go:1] x", now), time.Date(2026, 12, 31, 23, 59, 59, 500000000, time.UTC); !got.Equal(want) {
		t.Errorf("LineTime = %v, want %v", got, want)
	}
	if got := LineTime("panic: no time here, and more of a line", now); !got.IsZero() {
		t.Errorf("LineTime of a line without a time = %v, want the zero time", got)
	}
}

// TestLines checks that a Log returns each line once, after the line is complete.
func TestLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	tail := &Log{path: path}
	var got []string
	for _, text := range []string{"", "one\ntw", "o\n", "", "three\nfour\n", strings.Repeat("x", 2*tailBytes), "\nfive\n"} {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		f.Close()
		for _, line := range tail.lines() {
			if !strings.HasPrefix(line, "x") {
				got = append(got, line)
			} else if len(line) > maxLine+tailBytes {
				t.Errorf("the log kept a line of %d bytes", len(line))
			}
		}
	}
	if want := "one two three four five"; strings.Join(got, " ") != want {
		t.Errorf("lines = %v, want %s", got, want)
	}
}

// No line is lost when the log is rotated.
func TestLinesAcrossRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	tail := &Log{path: path}
	var got []string
	for _, texts := range []map[string]string{
		{path: "one\ntw"},
		{path: "four\n", process.RotatedLog(path): "one\ntwo\nthree\n"},
	} {
		for file, text := range texts {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got = append(got, tail.lines()...)
	}
	if want := "one two three four"; strings.Join(got, " ") != want {
		t.Errorf("lines = %v, want %s", got, want)
	}
}

// TestFollow checks that a Log does not report lines from before the call of Follow.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write := func(term string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(`{"ts":"2026-11-21T14:33:22Z","msg":"1 became leader at term ` + term + "\"}\n"); err != nil {
			t.Fatal(err)
		}
	}
	fresh := Follow("etcd-0", control.KindEtcd, path)
	if got := fresh.Next(); got != nil {
		t.Errorf("elections in a missing log = %v, want none", got)
	}
	write("2")
	late := Follow("etcd-0", control.KindEtcd, path)
	write("3")
	for log, want := range map[*Log]string{fresh: "term 2, term 3", late: "term 3"} {
		var got []string
		for _, e := range log.Next() {
			got = append(got, e.Detail)
			if e.Component != "etcd-0" || e.Kind != control.EventEtcdLeader {
				t.Errorf("event = %+v, want a leader event of etcd-0", e)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("elections = %v, want %s", got, want)
		}
	}
}
