package web

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/result"
)

type silent struct{}

func (silent) Step(string)       {}
func (silent) Live(run.Snapshot) {}

// serve starts a server for a run that has not started.
func serve(t *testing.T) (*Server, run.Progress) {
	t.Helper()
	s, err := Open("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	shows := s.Start(&run.Control{}, silent{})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, shows
}

// ask sends a request and returns the status and the body.
func ask(t *testing.T, method, url string, change func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestOnlyThisMachineIsServed(t *testing.T) {
	for addr, want := range map[string]string{
		"0.0.0.0:0":     "--web: 0.0.0.0:0 is open to the network, and any client that reaches the page can pause the run (listen on 127.0.0.1; from elsewhere: ssh -L)",
		"[::]:8080":     "--web: [::]:8080 is open to the network, and any client that reaches the page can pause the run (listen on 127.0.0.1; from elsewhere: ssh -L)",
		"8080":          `--web: "8080" is not an address to listen on (write 127.0.0.1:9090, or port 0 for a free one)`,
		"example.org:1": "--web: example.org:1 is open to the network, and any client that reaches the page can pause the run (listen on 127.0.0.1; from elsewhere: ssh -L)",
	} {
		if _, err := Open(addr); exitcode.Of(err) != exitcode.Usage || err.Error() != want {
			t.Errorf("%s: %v", addr, err)
		}
	}
	taken, err := Open("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := Open(taken.listener.Addr().String()); exitcode.Of(err) != exitcode.Environment || strings.Contains(err.Error(), "\n") {
		t.Errorf("error for an address in use: %v", err)
	}
}

// The server refuses requests with other host names, other tokens or from pages of other origins.
func TestForeignRequestsAreRefused(t *testing.T) {
	s, _ := serve(t)
	url := s.URL()
	base := strings.TrimSuffix(url, s.token+"/")
	for name, c := range map[string]struct {
		method, url string
		change      func(*http.Request)
		want        int
	}{
		"the page":                  {"GET", url, nil, 200},
		"a command":                 {"POST", url + "pause", nil, 409},
		"a command of the page":     {"POST", url + "pause", func(r *http.Request) { r.Header.Set("Origin", strings.TrimSuffix(base, "/")) }, 409},
		"a command by reading":      {"GET", url + "pause", nil, 405},
		"no token":                  {"GET", base, nil, 404},
		"another token":             {"POST", base + strings.Repeat("A", len(s.token)) + "/pause", nil, 404},
		"a part of the token":       {"GET", base + s.token[:20] + "/", nil, 404},
		"another host name":         {"GET", url, func(r *http.Request) { r.Host = "evil.example.org" }, 403},
		"another name with a port":  {"POST", url + "pause", func(r *http.Request) { r.Host = "evil.example.org:80" }, 403},
		"a page of another origin":  {"POST", url + "pause", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example.org") }, 403},
		"a page of another port":    {"POST", url + "end-phase", func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, 403},
		"a page without an origin":  {"POST", url + "pause", func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		"a form of another site":    {"POST", url + "pause", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"another path of the token": {"GET", url + "nothing", nil, 404},
	} {
		if got, body := ask(t, c.method, c.url, c.change); got != c.want {
			t.Errorf("%s: %d, want %d: %s", name, got, c.want, body)
		}
	}
	if _, body := ask(t, "POST", url+"pause", nil); body != "no run in progress\n" {
		t.Errorf("response to a command without a run: %q", body)
	}
}

// events returns a function that reads the next state that a browser receives.
func events(t *testing.T, s *Server) (next func() state) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL()+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	return func() (told state) {
		t.Helper()
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(text), &told); err != nil {
					t.Fatal(err)
				}
				return told
			}
		}
		t.Fatal("the stream has ended: ", lines.Err())
		return told
	}
}

func TestBrowsersAreToldTheState(t *testing.T) {
	s, shows := serve(t)
	next := events(t, s)
	if got := next(); got.Line != "getting ready" || got.Word != "RUNNING" || got.Phase != "" || len(got.Steps) != 0 {
		t.Errorf("first state: %+v", got)
	}
	for range maxSteps + 3 {
		shows.Step("registering")
	}
	shows.Step("the last \x1b[2J\u202estep")
	phases := []run.PhaseState{{Name: "storm", Now: true}, {Name: "calm"}}
	shows.Live(run.Snapshot{Phase: "\x1b\u202estorm", Elapsed: 3 * time.Second, Length: time.Minute, Phases: phases, Paused: 2 * time.Second})
	got := next()
	for got.Phase == "" {
		got = next()
	}
	if got.Word != "PAUSED" || !got.Paused || got.Line != "storm 00:03/01:00 | load paused for 00:02" || len(got.Steps) != maxSteps || got.Steps[maxSteps-1] != "the last [2Jstep" {
		t.Errorf("paused: %+v", got)
	}
	over := []run.PhaseState{{Name: "storm", Took: time.Second}, {Name: "calm", Took: time.Second}}
	shows.Live(run.Snapshot{Phase: "calm", Phases: over})
	for got.Word != "ENDING" {
		got = next()
	}
	if got.Phase != "" {
		t.Errorf("state after the last phase: %+v", got)
	}
}

// Connected browsers get the report of the run before the server ends.
func TestReportReachesBrowsers(t *testing.T) {
	s, _ := serve(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, result.HTMLFile), []byte("<p>the report</p>"), 0o600); err != nil {
		t.Fatal(err)
	}
	next := events(t, s)
	next()
	finished := make(chan error, 1)
	go func() { finished <- s.Finish(dir, nil) }()
	for !next().Final {
	}
	if code, body := ask(t, "GET", s.URL(), nil); code != 200 || body != "<p>the report</p>" {
		t.Errorf("%d %q", code, body)
	}
	if err := <-finished; err != nil {
		t.Error(err)
	}
	if _, err := http.Get(s.URL()); err == nil {
		t.Error("the server still responds after Finish")
	}
}

// Finish does not wait for browsers if the user no longer waits, or if there is no report.
func TestFinishDoesNotWait(t *testing.T) {
	for name, report := range map[string]bool{"hurry": true, "no report": false} {
		s, _ := serve(t)
		dir := t.TempDir()
		if report {
			if err := os.WriteFile(filepath.Join(dir, result.HTMLFile), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		events(t, s)()
		hurry := make(chan struct{})
		close(hurry)
		if err := s.Finish(dir, hurry); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var none *Server
	if err := none.Finish("", nil); err != nil {
		t.Error(err)
	}
}
