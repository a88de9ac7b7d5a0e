package gate

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// client simulates the counts of a running load in virtual time.
type client struct {
	Client
	t        *testing.T
	requests *samples.Requests
	open     int64 // open for longer than the limit
	slots    chan samples.Slot
	start    time.Time
}

func underLoad(t *testing.T, f func(c *client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, err := samples.Open(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		c := &client{t: t, slots: make(chan samples.Slot, 1000), start: time.Now()}
		c.Client = Client{Window: new(samples.Window), Overdue: func(time.Duration) int64 { return c.open }}
		r.Follow(func(s samples.Slot) { c.slots <- s })
		c.requests = r.Requests("reads")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		f(c)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// step counts good and bad requests in one slot. It returns the first reason of `stop` to end the run, or "".
func (c *client) step(stop *Stop, good, bad int, outcome string, took time.Duration) (why string) {
	for range good {
		c.requests.Succeeded(10*time.Millisecond, 0)
	}
	for range bad {
		if outcome == "200" {
			c.requests.Succeeded(took, 0)
		} else {
			c.requests.Failed(outcome, took, 0)
		}
	}
	time.Sleep(samples.Width)
	synctest.Wait()
	for len(c.slots) > 0 {
		s := <-c.slots
		c.Add(s)
		if held := stop.HoldsOf(c.Client, "storm", c.start, s.Until()); held != "" && why == "" {
			why = held
		}
	}
	return why
}

func clientStop(t *testing.T, text string) *Stop {
	t.Helper()
	s, err := scenario.Parse("lab.yaml", []byte(base), nil)
	if err != nil {
		t.Fatal(err)
	}
	stops, err := FlagStops(plan.Of(s), "--abort-on", []string{text}, StopOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return stops[0]
}

// A limit on the generator's own requests ends the run at most 0.1 s after the slot that exceeds the limit.
func TestClientLimitTrips(t *testing.T) {
	for name, c := range map[string]struct {
		condition, outcome string
		bad                int
		took               time.Duration
		want               string
	}{
		"throttled":       {"throttled=20%", "429", 40, 0, "abortOn: limit throttled in phase storm, "},
		"few throttled":   {"throttled=20%", "429", 1, 0, ""},
		"errors":          {"errors=20%", "503", 40, 0, "is over 20%"},
		"lost":            {"errors=20%", "reset", 40, 0, "is over 20%"},
		"the load's own":  {"errors=20%", "409", 40, 0, ""},
		"the run's end":   {"errors=20%", "canceled", 40, 0, ""},
		"slow":            {"latency=500ms", "200", 1, time.Second, "is over 500 ms"},
		"slow enough":     {"latency=2s", "200", 1, time.Second, ""},
		"budget":          {"error-budget=1%", "500", 1, 0, "is over 1%"},
		"another's phase": {"errors=20%,over=calm", "503", 40, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			stop := clientStop(t, c.condition)
			underLoad(t, func(l *client) {
				for range 10 {
					if why := l.step(stop, 20, 0, "", 0); why != "" {
						t.Fatalf("in the calm: %s", why)
					}
				}
				tripped, why := 0, ""
				for i := 1; i <= 20 && why == ""; i++ {
					tripped, why = i, l.step(stop, 20, c.bad, c.outcome, c.took)
				}
				if !strings.Contains(why, c.want) || (why == "") != (c.want == "") {
					t.Errorf("after %d slots: %q, want %q", tripped, why, c.want)
				}
			})
		})
	}
}

// Open requests to a hung API server count as slow, although none has ended.
func TestHungServerIsSlow(t *testing.T) {
	stop := clientStop(t, "latency=2s")
	underLoad(t, func(c *client) {
		for range 10 {
			c.step(stop, 20, 0, "", 0)
		}
		if why := c.step(stop, 0, 0, "", 0); why != "" {
			t.Error(why)
		}
		c.open = 50
		if why := c.step(stop, 0, 0, "", 0); !strings.Contains(why, "50 of 250 requests have been open for longer than 2 s") {
			t.Errorf("%q", why)
		}
	})
}

func TestFewRequestsSayNothing(t *testing.T) {
	stop := clientStop(t, "errors=1%")
	underLoad(t, func(c *client) {
		if why := c.step(stop, 0, 9, "503", 0); why != "" || stop.Blind == "" {
			t.Errorf("9 requests: %q, blind: %q", why, stop.Blind)
		}
		if why := c.step(stop, 0, 1, "503", 0); why == "" || stop.Blind != "" {
			t.Errorf("10 requests: %q, blind: %q", why, stop.Blind)
		}
	})
}

func TestLimitHoldsForItsTime(t *testing.T) {
	stop := clientStop(t, "errors=20%,for=1s")
	underLoad(t, func(c *client) {
		slots, why := 0, ""
		for why == "" && slots < 50 {
			why = c.step(stop, 0, 20, "503", 0)
			slots++
		}
		if slots != 11 || !strings.Contains(why, ", for 1 s") {
			t.Errorf("after %d slots: %q", slots, why)
		}
	})
}

// A limit on recorded metrics ends the run after the scrape that exceeds the limit.
func TestServerLimitTrips(t *testing.T) {
	for text, want := range map[string]string{
		"apiserver-throttled=20%": "37.5% is over 20%",
		"apiserver-throttled=50%": "",
		"apiserver-errors=20%":    "",
		"etcd-size=1GB":           "2000 MB is over 1000 MB",
		"etcd-quota=90%":          "100% is over 90%",
	} {
		stop := clientStop(t, text)
		l := archivetest.New(t, scrape.Options{}, "etcd-0", "kube-apiserver-0")
		live := archive.Evaluating(l.Recorder().Live())
		etcd, server := l.Parts["etcd-0"], l.Parts["kube-apiserver-0"]
		etcd.Add("etcd_server_quota_backend_bytes", 2e9)
		why := ""
		start := l.Boundary(0)
		for i := range 6 {
			server.Add(`apiserver_request_total{code="200"}`, 50)
			server.Add(`apiserver_request_total{code="429"}`, 30)
			now := l.Boundary(5 * time.Second)
			held, err := stop.Holds(t.Context(), live, "storm", start, now)
			if err != nil {
				t.Fatal(err)
			}
			if why = held; why != "" {
				break
			}
			if i == 2 {
				etcd.Add("etcd_mvcc_db_total_size_in_bytes", 2e9)
			}
		}
		if !strings.Contains(why, want) || (why == "") != (want == "") {
			t.Errorf("%s: %q (blind: %s), want %q", text, why, stop.Blind, want)
		}
	}
}

func TestFlagOfALimitIsRefused(t *testing.T) {
	s, err := scenario.Parse("lab.yaml", []byte(base), nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"throtled=20%":       `--abort-on "throtled=20%": limit: unknown limit "throtled" (did you mean "throttled"?)`,
		"throttled=2s":       "2s is not in ratio, the unit of throttled",
		"throttled=100%":     "no share can be over 100%, so this limit has no effect",
		"latency=0":          "a limit of 0 would end every run",
		"etcd-size=1":        "1 is not in bytes",
		"alert=NoSuchAlert":  `unknown alert "NoSuchAlert"`,
		"limit=throttled":    "limit throttled has no bound",
		"gate=nowhere":       `unknown gate "nowhere"`,
		"expr=max(up,max=1":  "--abort-on",
		"errors=5%,over=ode": `unknown phase "ode"`,
	} {
		if _, err := FlagStops(plan.Of(s), "--abort-on", []string{text}, StopOptions{}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	// A user's Prometheus server may have alerts that loadgen does not know.
	if _, err := FlagStops(plan.Of(s), "--abort-on", []string{"alert=TheirPager"}, StopOptions{Elsewhere: true}); err != nil {
		t.Error(err)
	}
}

func TestReferenceListsLimits(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/reference/fuse.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range Limits() {
		if row := "| `" + l.Name + "` | " + string(l.Unit) + " | " + l.What + " |"; !strings.Contains(string(page), row) {
			t.Errorf("docs/reference/fuse.md has no row\n%s", row)
		}
	}
}
