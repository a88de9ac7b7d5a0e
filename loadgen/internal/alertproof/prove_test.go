package alertproof

import (
	"slices"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

// A run without the phases of its proof proves nothing.
func TestProveRunWithoutPhasesOfProof(t *testing.T) {
	l := archivetest.New(t, scrape.Options{}, "etcd-0")
	p := result.Phase{Name: "calm", Start: l.Boundary(time.Second)}
	for range 24 {
		p.End = l.Boundary(5 * time.Second)
	}
	dir := l.RunDir(`{apiVersion: stormglass/v1alpha1, kind: Scenario, name: slow-path, phases: [{name: calm, for: 2m}]}`,
		result.Run{ID: "ab12", Scenario: "slow-path", Started: p.Start, Ended: p.End}, result.Measurements{Phases: []result.Phase{p}},
		result.Event{Time: p.Start, Kind: result.EventPhaseStart, Name: "calm"}, result.Event{Time: p.End, Kind: result.EventPhaseEnd, Name: "calm"})
	all, err := Prove(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || all[0].Proof != "slow-path" || all[0].Verdict == result.Pass || !slices.Contains(all[0].Reasons, "phase disk did not finish") {
		t.Errorf("%+v", all[0].Reasons)
	}
	// Three of the four jobs are absent.
	if o := all[0].Outcome("TargetAbsent"); o.Verdict != result.Fail || len(o.Of) != 3 {
		t.Errorf("%+v", o)
	}
}
