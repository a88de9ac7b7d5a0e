package loadgen

import (
	"context"
	"fmt"
	"strings"

	"github.com/stormglass/stormglass/loadgen/prove"
	"github.com/stormglass/stormglass/loadgen/record"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Prove judges the run in dir by the proofs of alerts that its scenario is for.
// It reads nothing but the directory, and writes nothing.
func Prove(ctx context.Context, dir string) ([]prove.Judged, error) {
	rec, err := readRecorded(dir)
	if err != nil {
		return nil, err
	}
	proofs := prove.Of(rec.Run.Scenario)
	if len(proofs) == 0 {
		var names []string
		for _, p := range prove.All() {
			names = append(names, p.Name)
		}
		return nil, usagef("%s: scenario %s is no proof of alerts (the proofs are %s; `loadgen gate --rules` judges any run by any rules)",
			dir, rec.Run.Scenario, strings.Join(names, ", "))
	}
	s, _, err := readScenario(dir)
	if err != nil {
		return nil, err
	}
	in := prove.Recorded{
		Run: rec.Run, Measurements: rec.Measurements, Timeline: rec.Timeline, Interval: s.Record.Interval.D(), Drop: s.Record.Drop,
	}
	var archiveErr error
	if in.Archive, archiveErr = record.OpenArchive(dir); archiveErr == nil {
		defer in.Archive.Close()
	}
	var all []prove.Judged
	for _, p := range proofs {
		j := prove.Judged{Proof: p.Name, Scenario: rec.Run.Scenario, Verdict: result.NoData, Outcomes: []prove.Outcome{}}
		if archiveErr != nil {
			j.Reasons = []string{archiveErr.Error()}
		} else if j, err = prove.Judge(ctx, p, in); err != nil {
			return nil, environmentf("%s: proof %s: %w", dir, p.Name, err)
		}
		j.Dir = dir
		all = append(all, j)
	}
	return all, nil
}

// NotRun is a proof whose run came to nothing.
func NotRun(p prove.Proof, why error) prove.Judged {
	return prove.Judged{
		Proof: p.Name, Scenario: p.ScenarioName(), Verdict: result.NoData, Outcomes: []prove.Outcome{},
		Reasons: []string{fmt.Sprintf("it did not run: %v", why)},
	}
}
