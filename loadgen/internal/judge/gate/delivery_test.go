package gate

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// asking is a scenario whose loads and actions have rates; its only gate does not judge them.
const asking = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: asking
minAchieved: 95%
phases:
  - name: churn
    for: 20s
    load:
      - {name: made, kind: requests, verb: create, rate: 20/s, maxInFlight: 5}
      - {name: crowd, kind: watches, count: 100, rate: 10/s}
      - {name: lax, kind: requests, verb: create, rate: 20/s, minAchieved: 10%}
    actions:
      - {kind: patch, target: {resource: configmaps}, patch: {data: {a: b}}, rate: 50/s, every: 2s}
      - {kind: delete, target: {resource: configmaps}, rate: 50/s, minAchieved: 0%}
gates:
  - {name: length, objective: phase-duration, max: 2m}
`

// steady returns the requests of a load at 20/s for 20 s, with the given numbers of unsent, failed and unanswered
// requests. p50 is in seconds.
func steady(load string, unsent, failed, backlog int64, p50 float64) result.Requests {
	const offered, due = 400, 20
	sent := offered - unsent
	answered := sent - failed - backlog
	r := result.Requests{
		Load: load, Verb: "create", Resource: "configmaps", Offered: offered, Sent: sent, Unsent: unsent, Succeeded: sent - failed, Answered: &answered, Backlog: backlog,
		Outcomes: map[string]int64{"201": sent - failed}, DueSeconds: due, OfferedRate: offered / due, AchievedRate: float64(answered) / due,
		Service: lat(sent, p50, p50, p50), Latency: lat(sent, p50, p50, p50),
	}
	r.Service.Mean, r.Latency.Mean = p50, p50
	if failed > 0 {
		r.Outcomes["429"] = failed
	}
	return r
}

// patching returns the results of the patch action: 10 rounds of 50 objects at 50/s were due, and `rounds` of them were
// done in `took` seconds.
func patching(rounds int64, took, p50 float64) result.Action {
	n := 50 * rounds
	return result.Action{
		Index: 0, Name: "patch configmaps", Rate: 50, RoundsDue: 10, Rounds: rounds, Requests: n, Done: n, DueSeconds: float64(n) / 50, Seconds: took,
		Service: lat(n, p50, p50, p50),
	}
}

func askedPhase(change func(*result.Phase)) result.Measurements {
	start := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	p := result.Phase{Name: "churn", Start: start, End: start.Add(20 * time.Second)}
	change(&p)
	return result.Measurements{Phases: []result.Phase{p}}
}

func judgedAs(t *testing.T, text string, m result.Measurements) result.Result {
	t.Helper()
	s, err := scenario.Parse("asking.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	gates, err := Compile(plan.Of(s))
	if err != nil {
		t.Fatal(err)
	}
	res, err := Judge(context.Background(), gates, &rundir.Recorded{Scenario: s, Measurements: m})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// A run with a load or action that did less than demanded does not pass, even without a gate on it. The run fails if
// the cluster was the limit. It has no data if the generator or the scenario was the limit.
func TestWhatWasNotDeliveredDoesNotPass(t *testing.T) {
	requests := func(r result.Requests) func(*result.Phase) {
		return func(p *result.Phase) { p.Requests = []result.Requests{r} }
	}
	actions := func(a result.Action) func(*result.Phase) {
		return func(p *result.Phase) { p.Actions = []result.Action{a} }
	}
	watches := func(w result.Watches) func(*result.Phase) {
		return func(p *result.Phase) { p.Watches = []result.Watches{w} }
	}
	for name, c := range map[string]struct {
		change func(*result.Phase)
		exit   int
		reason string
	}{
		"as asked":              {requests(steady("made", 0, 0, 0, 0.005)), 0, ""},
		"one unsent":            {requests(steady("made", 1, 0, 0, 0.005)), 0, ""},
		"4% unsent":             {requests(steady("made", 16, 0, 0, 0.005)), 0, ""},
		"slow, and all in time": {requests(steady("made", 0, 0, 20, 1)), 0, ""},
		"slow answers fill it":  {requests(steady("made", 350, 0, 5, 2)), 1, "load made in churn: 2.25/s of the 20/s asked for (11.4%); limited by the cluster: requests took 2 s (p50), so maxInFlight 5 was full; 350 requests were not sent"},
		"slow answers on a busy machine": {func(p *result.Phase) {
			p.Requests, p.Machine = []result.Requests{steady("made", 350, 0, 5, 2)}, &result.Machine{Busy: "other programs used 1.5 of 2 processors"}
		}, 3, "limited by the machine: requests took 2 s (p50), so maxInFlight 5 was full; 350 requests were not sent; measured on a busy machine: other programs used 1.5 of 2 processors in churn"},
		"refused on a busy machine": {func(p *result.Phase) {
			p.Requests, p.Machine = []result.Requests{steady("made", 0, 100, 0, 0.002)}, &result.Machine{Busy: "other programs used 1.5 of 2 processors"}
		}, 1, "limited by the cluster: 100 requests failed"},
		"fast answers, and it is low": {requests(steady("made", 200, 0, 0, 0.2)), 3, "maxInFlight 5 is too low for this rate; 200 requests were not sent"},
		"refused":                     {requests(steady("made", 0, 100, 0, 0.002)), 1, "100 requests failed, most with 429"},
		"unanswered":                  {requests(steady("made", 0, 0, 120, 0.6)), 1, "108 requests still had no response at the end of the load"},
		"its own delay": {func(p *result.Phase) {
			r := steady("made", 200, 0, 0, 0.002)
			r.UnsentLate = 185
			p.Requests = []result.Requests{r}
		}, 3, "limited by the generator: it started 185 requests too late"},
		"it stood still": {func(p *result.Phase) {
			p.Requests, p.StalledSeconds = []result.Requests{steady("made", 100, 0, 0, 0.002)}, 4
		}, 3, "limited by the generator: it was stopped, or at least 10 ms late, for 4 s in total"},
		"it stood still for too short a time": {func(p *result.Phase) {
			p.Requests, p.StalledSeconds = []result.Requests{steady("made", 100, 0, 0, 2)}, 3
		}, 1, "limited by the cluster"},
		"saturated": {func(p *result.Phase) {
			p.Requests, p.Saturated = []result.Requests{steady("made", 100, 0, 0, 2)}, []string{"late"}
		}, 3, "limited by the generator: it was saturated"},
		"paused by the user": {func(p *result.Phase) {
			p.Requests, p.PausedSeconds = []result.Requests{steady("made", 100, 0, 0, 2)}, 5
		}, 3, "length: no data: load was paused"},
		"a load with its own share":         {requests(steady("lax", 300, 0, 0, 2)), 0, ""},
		"a load under its own share":        {requests(steady("lax", 380, 0, 0, 2)), 1, "load lax in churn: 1/s of the 20/s"},
		"rounds and requests in time":       {actions(patching(10, 10.05, 0.005)), 0, ""},
		"evictions that a budget refuses":   {actions(result.Action{Name: "evict pods", Rate: 20, Rounds: 1, Requests: 30, Done: 0, Refused: 30, DueSeconds: 1.5, Seconds: 1.6, Service: lat(30, 0.01, 0.01, 0.01)}), 1, "limited by the cluster: 30 requests failed, most with 429"},
		"an action that the phase cuts off": {actions(result.Action{Name: "create", Cut: true, Done: 1}), 3, "phases.churn.actions[0], create: 0 of the 1 rounds asked for (0%); limited by the scenario: the phase ended after 1 requests of the current round"},
		"refused while the generator was saturated": {func(p *result.Phase) {
			p.Requests, p.Saturated = []result.Requests{steady("made", 0, 100, 0, 0.002)}, []string{"late"}
		}, 1, "limited by the cluster: 100 requests failed"},
		"a round is left out":                  {actions(patching(9, 9.2, 0.005)), 3, "phases.churn.actions[0], patch configmaps: 9 of the 10 rounds asked for (90%); limited by the scenario"},
		"requests slower than the rate":        {actions(patching(10, 19, 0.3)), 3, "31.2/s of the 50/s asked for"},
		"requests that the cluster slows down": {actions(patching(3, 20, 2)), 1, "3 of the 10 rounds asked for (30%); limited by the cluster: requests took 2 s (p50)"},
		"not judged":                           {actions(result.Action{Index: 1, Name: "delete configmaps", Rate: 50, Rounds: 1, Requests: 500, Done: 100, DueSeconds: 10, Seconds: 20, Service: lat(100, 2, 2, 2)}), 0, ""},
		"all watches open":                     {watches(result.Watches{Load: "crowd", Wanted: 100, Due: 100, Open: 100}), 0, ""},
		"not due yet":                          {watches(result.Watches{Load: "crowd", Wanted: 100, Due: 50, Open: 50}), 0, ""},
		"watches that never opened":            {watches(result.Watches{Load: "crowd", Wanted: 100, Due: 100, Open: 40}), 1, "load crowd in churn: 40 of the 100 watches asked for (40%); limited by the cluster"},
		"an old run's watches":                 {watches(result.Watches{Load: "crowd", Wanted: 100, Open: 40}), 0, ""},
		"an old run's requests": {func(p *result.Phase) {
			r := steady("made", 300, 0, 0, 2)
			r.Answered = nil
			p.Requests = []result.Requests{r}
		}, 1, "load made in churn: 5/s of the 20/s"},
	} {
		res := judgedAs(t, asking, askedPhase(c.change))
		if res.ExitCode != c.exit || !strings.Contains(strings.Join(res.Reasons, "\n"), c.reason) {
			t.Errorf("%s: exit %d, %q; want %d, %q", name, res.ExitCode, res.Reasons, c.exit, c.reason)
		}
		if len(res.Measurements.Phases[0].Deliveries) == 0 && !strings.Contains(name, "old run's watches") {
			t.Errorf("%s: the result has no deliveries", name)
		}
	}
}

// A gate on the achieved rate counts responses within the phase, and lowers the default bound, but does not raise it.
func TestAchievedCountsAnswersInThePhase(t *testing.T) {
	m := askedPhase(func(p *result.Phase) { p.Requests = []result.Requests{steady("made", 0, 0, 60, 0.05)} })
	for gate, want := range map[string]struct {
		verdict result.Verdict
		exit    int
	}{
		"min: 90%": {result.Fail, 1}, "min: 80%": {result.Pass, 0}, "min: 99%": {result.Fail, 1},
	} {
		res := judgedAs(t, asking+"  - {name: achieved, objective: achieved, load: made, "+gate+"}\n", m)
		if g := res.Gates[1]; g.Verdict != want.verdict || res.ExitCode != want.exit {
			t.Errorf("%s: %s of %s, exit %d %q; want %s, %d", gate, g.Verdict, g.Detail, res.ExitCode, res.Reasons, want.verdict, want.exit)
		}
	}
}

// Answers that came after a load had sent its last request do not count in the rate of the load.
func TestOverdueAnswersAreMissing(t *testing.T) {
	for overdue, want := range map[int64]int{0: 0, 30: 0, 200: 1} {
		m := askedPhase(func(p *result.Phase) {
			made := steady("made", 0, 0, 0, 1.5)
			made.Overdue = overdue
			p.Requests = []result.Requests{made}
		})
		if res := judgedAs(t, asking, m); res.ExitCode != want || want == 1 && !strings.Contains(res.Reasons[0], "had no response at the end of the load") {
			t.Errorf("%d overdue: exit %d, %q; want %d", overdue, res.ExitCode, res.Reasons, want)
		}
	}
}

// A replay's recording may have responses 404 and 409; 429 and 5xx count as not delivered.
func TestRefusalsOfAReplayAreDelivered(t *testing.T) {
	m := askedPhase(func(p *result.Phase) { p.Requests = []result.Requests{steady("made", 0, 100, 0, 0.002)} })
	m.Replays = []result.Replay{{Load: "made"}}
	if res := judgedAs(t, asking, m); res.ExitCode != 1 {
		t.Errorf("429: exit %d, %q; want 1", res.ExitCode, res.Reasons)
	}
	m.Phases[0].Requests[0].Outcomes = map[string]int64{"201": 300, "404": 100}
	if res := judgedAs(t, asking, m); res.ExitCode != 0 {
		t.Errorf("404: exit %d, %q; want 0", res.ExitCode, res.Reasons)
	}
	m.Phases[0].Requests[0].Outcomes = map[string]int64{"201": 300, "403": 100}
	for share, want := range map[int64]int{0: 1, 30: 0} { // of 100 recorded requests
		m.Replays[0].Kinds = []result.ReplayKind{{RecordedCodes: map[string]int64{"201": 100 - share, "403": share}}}
		if res := judgedAs(t, asking, m); res.ExitCode != want {
			t.Errorf("403, %d%% of the recording: exit %d, %q; want %d", share, res.ExitCode, res.Reasons, want)
		}
	}
	m.Phases[0].Requests[0].Outcomes = map[string]int64{"201": 300, "404": 100}
	m.Replays[0].Watches = result.ReplayWatches{Due: 50, Opened: 10, Codes: map[string]int64{"200": 10, "timeout": 40}}
	if res := judgedAs(t, asking, m); res.ExitCode != 1 || !strings.Contains(res.Reasons[0], "load made in churn: 10 of the 50 watches") {
		t.Errorf("watches: exit %d, %q; want 1", res.ExitCode, res.Reasons)
	}
}
