package judge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/alertproof"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Prove judges the run in dir by the proofs of alerts that its scenario is for.
// It reads nothing but the directory, and writes nothing.
func Prove(ctx context.Context, dir string) (all []alertproof.Judged, err error) {
	rec, err := rundir.Open(dir)
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
		return nil, exitcode.Usagef("%s: scenario %s is no proof of alerts (the proofs are %s; `loadgen gate --rules` judges any run by any rules)",
			dir, rec.Run.Scenario, strings.Join(names, ", "))
	}
	for _, p := range proofs {
		j := alertproof.Judged{Proof: p.Name, Scenario: rec.Run.Scenario, Started: rec.Run.Started, Verdict: result.NoData, Outcomes: []alertproof.Outcome{}}
		if rec.Archive != nil && rec.Scenario != nil {
			if j, err = prove(ctx, rec, p); err != nil {
				return nil, err
			}
		}
		doubtProof(rec, &j)
		j.Dir = dir
		all = append(all, j)
	}
	return all, nil
}

// prove judges the run by one proof. What cannot be read of the archive is damaged,
// and then nothing is proven.
func prove(ctx context.Context, rec *rundir.Recorded, p alertproof.Proof) (alertproof.Judged, error) {
	j, err := alertproof.Judge(ctx, p, rec)
	if err != nil && ctx.Err() == nil {
		rec.AddDamage(&result.Damaged{File: result.TSDBDir, Err: err})
		j.Verdict, err = result.NoData, nil
	}
	return j, err
}

// doubtProof is doubt for a proof.
func doubtProof(rec *rundir.Recorded, j *alertproof.Judged) {
	var res result.Result
	doubt(rec, &res)
	j.Reasons = append(res.Reasons, j.Reasons...)
	if len(res.Reasons) > 0 && j.Verdict == result.Pass || rec.Foreign != nil {
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
