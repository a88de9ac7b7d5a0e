package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/alertproof"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Prove judges the run in dir by the proofs of alerts that its scenario is for.
// It reads nothing but the directory, and writes nothing.
func Prove(ctx context.Context, dir string) (all []alertproof.Judged, err error) {
	rec, err := openRecorded(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	proofs := alertproof.Of(rec.Run.Scenario)
	if len(proofs) == 0 {
		var names []string
		for _, p := range alertproof.All() {
			names = append(names, p.Name)
		}
		return nil, usagef("%s: scenario %s is no proof of alerts (the proofs are %s; `loadgen gate --rules` judges any run by any rules)",
			dir, rec.Run.Scenario, strings.Join(names, ", "))
	}
	for _, p := range proofs {
		j := alertproof.Judged{Proof: p.Name, Scenario: rec.Run.Scenario, Started: rec.Run.Started, Verdict: result.NoData, Outcomes: []alertproof.Outcome{}}
		if rec.archive != nil && rec.scenario != nil {
			if j, err = rec.prove(ctx, p); err != nil {
				return nil, err
			}
		}
		rec.doubtProof(&j)
		j.Dir = dir
		all = append(all, j)
	}
	return all, nil
}

// prove judges the run by one proof. What cannot be read of the archive is damaged,
// and then nothing is proven.
func (rec *recordedRun) prove(ctx context.Context, p alertproof.Proof) (alertproof.Judged, error) {
	j, err := alertproof.Judge(ctx, p, alertproof.Recorded{
		Run: rec.Run, Measurements: rec.Measurements, Timeline: rec.Timeline, Archive: rec.archive,
		Interval: rec.scenario.Record.Interval.D(), Drop: rec.scenario.Record.Drop,
	})
	if err != nil && ctx.Err() == nil {
		rec.damaged(&result.Damaged{File: result.TSDBDir, Err: err})
		j.Verdict, err = result.NoData, nil
	}
	return j, err
}

// doubtProof is doubt for a proof.
func (rec *recordedRun) doubtProof(j *alertproof.Judged) {
	var res result.Result
	rec.doubt(&res)
	j.Reasons = append(res.Reasons, j.Reasons...)
	if len(res.Reasons) > 0 && j.Verdict == result.Pass || rec.foreign != nil {
		j.Verdict = result.NoData
	}
}

// NotRun is a proof whose run came to nothing.
func NotRun(p alertproof.Proof, why error) alertproof.Judged {
	return alertproof.Judged{
		Proof: p.Name, Scenario: p.ScenarioName(), Verdict: result.NoData, Outcomes: []alertproof.Outcome{},
		Reasons: []string{fmt.Sprintf("it did not run: %v", why)},
	}
}
