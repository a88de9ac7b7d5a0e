package judge

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

// A run that abortOn ended has failed, with the condition as its first reason. Gates over complete phases are judged.
func TestAbortedRunHasFailed(t *testing.T) {
	const scenario = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: cut
phases: [{name: calm, for: 1m}, {name: storm, for: 1h}, {name: never, for: 1m}]
abortOn: [{expr: max(up), min: 5}]
gates:
  - {name: open, expr: 'max(process_open_fds{job="kube-apiserver"})', max: 42, over: [calm]}
  - {name: later, expr: 'max(process_open_fds{job="kube-apiserver"})', max: 42, over: [storm]}
`
	l := archivetest.New(t, scrape.Options{}, "kube-apiserver-0")
	phases := []result.Phase{l.Phase("calm", nil), l.Phase("storm", nil)}
	phases[1].Interrupted = true
	var events []result.Event
	for _, p := range phases {
		events = append(events, result.Event{Time: p.Start, Kind: result.EventPhaseStart, Name: p.Name}, result.Event{Time: p.End, Kind: result.EventPhaseEnd, Name: p.Name})
	}
	const why = "abortOn: expr max(up) in phase storm, 60 s after its start: 1 is under 5"
	dir := l.RunDir(scenario, result.Run{ID: "ab12", Scenario: "cut", Started: phases[0].Start, Ended: phases[1].End.Add(time.Second), Aborted: why}, result.Measurements{Phases: phases}, events...)
	got := judged(t, dir)
	if got.code != exitcode.Fail || len(got.said) == 0 || got.said[0] != "the run was ended early by "+why {
		t.Errorf("exit code %d: %q", got.code, got.said)
	}
	if slices.ContainsFunc(got.said, func(s string) bool { return strings.Contains(s, "damaged") }) {
		t.Errorf("%q", got.said)
	}
	verdicts := map[string]result.Verdict{}
	for _, g := range got.result.Gates {
		verdicts[g.Name] = g.Verdict
	}
	if verdicts["open"] != result.Pass || verdicts["later"] != result.NoData {
		t.Errorf("%v", verdicts)
	}
}
