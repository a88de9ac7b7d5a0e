package loadgen

import (
	"context"
	"io"

	"github.com/stormglass/stormglass/loadgen/internal/alertproof"
)

type (
	// Proof is a scenario and what it must do to the alerts.
	Proof = alertproof.Proof
	// ProofStall stops the generator's process for part of each second of a phase.
	ProofStall = alertproof.Stall
	// JudgedProof is one proof, judged.
	JudgedProof = alertproof.Judged
	// ProofReport sums up judged proofs.
	ProofReport = alertproof.Report
)

// SelectProofs returns the proofs of these names, or of these alerts; all where both
// are empty.
func SelectProofs(names, rules []string) ([]Proof, error) { return alertproof.Select(names, rules) }

// Prove judges the run in dir by the proofs that its scenario is for. It writes
// nothing.
func Prove(ctx context.Context, dir string) ([]JudgedProof, error) { return alertproof.Prove(ctx, dir) }

// NotRun is a proof without a run, for the reason why.
func NotRun(p Proof, why error) JudgedProof { return alertproof.NotRun(p, why) }

// NewProofReport sums up proofs; the alerts of wanted must be proven.
func NewProofReport(all []JudgedProof, wanted []string) ProofReport {
	return alertproof.NewReport(all, wanted)
}

// WriteProofs writes a report of proofs for a terminal.
func WriteProofs(w io.Writer, r ProofReport) error { return alertproof.Text(w, r) }

// WriteProofsMarkdown writes a report of proofs for the summary of a CI job.
func WriteProofsMarkdown(w io.Writer, r ProofReport) error { return alertproof.Markdown(w, r) }
