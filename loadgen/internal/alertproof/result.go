package alertproof

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stormglass/stormglass/internal/markdown"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Schema is the version of the format of a Report.
const Schema = "stormglass.proof/v1"

// Part says whether a rule must fire, may fire or must stay silent in a proof (a scenario that tests alerts).
type Part string

// Values of Part.
const (
	MustFire Part = "must fire"
	MayFire  Part = "may fire"
	Silent   Part = "must be silent"
)

// Outcome is the result of one rule in one proof. Times are in seconds after the first scrape.
type Outcome struct {
	Rule     string         `json:"rule"`
	Severity string         `json:"severity"`
	Part     Part           `json:"part"`
	Verdict  result.Verdict `json:"verdict"`
	// Why says, in one line, what is wrong, what could not be judged, or why the rule may fire.
	Why string `json:"why,omitempty"`
	// Fired reports whether the rule fired at any time.
	Fired bool `json:"fired"`
	// CauseAt is the time at which the cause began, for a rule that must fire. FiredAt is the time at which such a rule
	// fired after its cause. For any other rule, FiredAt is the time at which it first fired.
	CauseAt *float64 `json:"causeAtSeconds,omitempty"`
	FiredAt *float64 `json:"firedAtSeconds,omitempty"`
	// ResolvedAt is the time at which the rule resolved, or nil if it did not. It may be in the simulated time after
	// the run, in which each scrape repeats the last scrape.
	ResolvedAt *float64 `json:"resolvedAtSeconds,omitempty"`
	// InCalm reports whether the rule resolved only in the simulated time after the run.
	InCalm bool `json:"resolvedInCalm,omitempty"`
	// Latency is the time from the cause until the rule fired. It must be at most 1.5 times Floor, which is the maximum
	// latency if every scrape and evaluation is on time.
	Latency *float64 `json:"latencySeconds,omitempty"`
	Floor   *float64 `json:"floorSeconds,omitempty"`
	// Of lists the labels of the alerts that fired.
	Of []string `json:"of,omitempty"`
}

// Bound is the maximum latency of an alert, as a multiple of its floor (see Outcome.Latency).
const Bound = 1.5

// Judged is the result of one proof.
type Judged struct {
	Proof    string         `json:"proof"`
	Scenario string         `json:"scenario"`
	Dir      string         `json:"dir,omitempty"` // directory of the run
	Started  time.Time      `json:"started,omitzero"`
	Seconds  float64        `json:"seconds"` // time from the first scrape to the last
	Rounds   int            `json:"rounds"`  // number of evaluations of the rule groups
	Verdict  result.Verdict `json:"verdict"`
	// Reasons are the reasons why the verdict is not pass, one line each.
	Reasons []string `json:"reasons"`
	// Outcomes are the results of all rules, in the order of the rules.
	Outcomes []Outcome `json:"outcomes"`
}

// Outcome returns the outcome of a rule, or nil if the rule was not judged.
func (j Judged) Outcome(rule string) *Outcome {
	if i := slices.IndexFunc(j.Outcomes, func(o Outcome) bool { return o.Rule == rule }); i >= 0 {
		return &j.Outcomes[i]
	}
	return nil
}

// Report holds all judged proofs and their summary.
type Report struct {
	Schema string `json:"schema"` // the constant Schema
	// Verdict is "fail" if a proof failed. Otherwise it is "no data" if a proof could not be judged or a wanted rule is
	// in Untried, or else "pass".
	Verdict  result.Verdict `json:"verdict"`
	ExitCode int            `json:"exitCode"` // 0: pass, 1: fail, 3: no data
	Proofs   []Judged       `json:"proofs"`
	// Proven lists the rules that fired as required in a proof that expects them. Failed lists the rules that failed in
	// any proof. Untried lists the rules that no proof expects, or whose proof could not be judged.
	Proven  []string `json:"proven"`
	Failed  []string `json:"failed"`
	Untried []string `json:"untried"`
	// Unrelated is the number of alerts that fired in a proof in which they had to be silent.
	Unrelated int `json:"unrelated"`
	// HealthySeconds is the total duration of the proofs in which no alert must fire.
	HealthySeconds float64 `json:"healthySeconds"`
}

// NewReport summarises proofs. wanted lists the rules that must be proven.
func NewReport(proofs []Judged, wanted []string) Report {
	r := Report{Schema: Schema, Verdict: result.Pass, Proofs: proofs, Proven: []string{}, Failed: []string{}, Untried: []string{}}
	doubts := len(proofs) == 0
	for _, p := range proofs {
		expects := false
		for _, o := range p.Outcomes {
			expects = expects || o.Part == MustFire
			if o.Part == Silent && o.Fired {
				r.Unrelated++
			}
		}
		if !expects {
			r.HealthySeconds += p.Seconds
		}
		doubts = doubts || p.Verdict == result.NoData
		if p.Verdict == result.Fail {
			r.Verdict, r.ExitCode = result.Fail, 1
		}
	}
	for _, rule := range wanted {
		switch ruleVerdict(proofs, rule) {
		case result.Pass:
			r.Proven = append(r.Proven, rule)
		case result.Fail:
			r.Failed = append(r.Failed, rule)
		default:
			r.Untried = append(r.Untried, rule)
			doubts = true
		}
	}
	if r.Verdict == result.Pass && doubts {
		r.Verdict, r.ExitCode = result.NoData, 3
	}
	return r
}

func ruleVerdict(proofs []Judged, rule string) result.Verdict {
	v := result.NoData
	for _, p := range proofs {
		o := p.Outcome(rule)
		switch {
		case o == nil:
		case o.Verdict == result.Fail:
			return result.Fail
		case o.Part == MustFire && o.Verdict == result.Pass && p.Verdict != result.NoData:
			v = result.Pass
		}
	}
	return v
}

// legend explains the marks in the matrix of rules and proofs.
const legend = "F fired as required   x did not fire, or too late   c fired as a permitted consequence   ! fired, but should not have   . silent   ? no data"

// Text writes a report as text: the summary, the proofs, the matrix of rules and proofs, and the reasons for verdicts
// other than pass.
func Text(w io.Writer, r Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n\n", strings.ToUpper(string(r.Verdict)), headline(r))
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\tPROOF\tVERDICT\tRAN\tRUN\n")
	for i, p := range r.Proofs {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", letter(i), p.Proof, p.Verdict, seconds(p.Seconds), p.Dir)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if slices.ContainsFunc(r.Proofs, func(p Judged) bool { return len(p.Outcomes) > 0 }) {
		b.WriteString("\n")
		matrix(&b, r)
		fmt.Fprintf(&b, "\n%s\nlatency: time from the fault to the alert; *: resolves only after the run, provided that the last scraped values do not change\n", legend)
	}
	for _, p := range r.Proofs {
		for _, why := range p.Reasons {
			fmt.Fprintf(&b, "\n%s: %s", p.Proof, oneLine(why))
		}
	}
	if len(r.Untried) > 0 {
		fmt.Fprintf(&b, "\nnot proven here: %s", strings.Join(r.Untried, ", "))
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

func headline(r Report) string {
	wanted := len(r.Proven) + len(r.Failed) + len(r.Untried)
	text := fmt.Sprintf("%d of %d rules fired when required and resolved; unrelated alerts: %d", len(r.Proven), wanted, r.Unrelated)
	if r.HealthySeconds > 0 {
		text += fmt.Sprintf("; time without a fault: %s", seconds(r.HealthySeconds))
	}
	return text
}

func matrix(b *strings.Builder, r Report) {
	var rules []string
	width := len("RULE")
	for _, p := range r.Proofs {
		for _, o := range p.Outcomes {
			if !slices.Contains(rules, o.Rule) {
				rules = append(rules, o.Rule)
				width = max(width, len(o.Rule))
			}
		}
	}
	fmt.Fprintf(b, "%-*s ", width, "RULE")
	for i := range r.Proofs {
		fmt.Fprintf(b, " %s", letter(i))
	}
	fmt.Fprintf(b, "  %8s %8s %6s %10s\n", "LATENCY", "FLOOR", "TIMES", "FIRED FOR")
	for _, rule := range rules {
		line := fmt.Sprintf("%-*s ", width, rule)
		var expected *Outcome
		for _, p := range r.Proofs {
			o := p.Outcome(rule)
			line += " " + mark(o)
			if o != nil && o.Part == MustFire && (expected == nil || expected.Latency == nil) {
				expected = o
			}
		}
		b.WriteString(strings.TrimRight(line+"  "+figures(expected), " ") + "\n")
	}
}

// figures returns the columns of the matrix for a rule: latency, floor, their ratio, and the time for which the rule
// fired.
func figures(o *Outcome) string {
	if o == nil || o.Floor == nil {
		return ""
	}
	latency, times, fired := "-", "-", "-"
	if o.Latency != nil {
		latency, times = seconds(*o.Latency), fmt.Sprintf("%.2f", *o.Latency / *o.Floor)
	}
	if o.FiredAt != nil && o.ResolvedAt != nil {
		fired = seconds(*o.ResolvedAt - *o.FiredAt)
		if o.InCalm {
			fired += "*"
		}
	}
	return fmt.Sprintf("%8s %8s %6s %10s", latency, seconds(*o.Floor), times, fired)
}

func mark(o *Outcome) string {
	switch {
	case o == nil || o.Verdict == result.NoData:
		return "?"
	case o.Part == MustFire && o.Verdict == result.Pass:
		return "F"
	case o.Part == MustFire:
		return "x"
	case o.Fired && o.Part == MayFire:
		return "c"
	case o.Fired:
		return "!"
	}
	return "."
}

// letter returns the letter of proof i in the matrix: a to z, then A to Z.
func letter(i int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return string(letters[i%len(letters)])
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func cell(s string) string { return markdown.Cell(oneLine(s)) }

// Markdown writes a report in Markdown, for a pull request.
func Markdown(w io.Writer, r Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s: proof of the alerts\n\n%s.\n\n", strings.ToUpper(string(r.Verdict)), headline(r))
	b.WriteString("| proof | verdict | ran | why |\n|---|---|---|---|\n")
	for _, p := range r.Proofs {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", cell(p.Proof), p.Verdict, seconds(p.Seconds), cell(strings.Join(p.Reasons, "; ")))
	}
	b.WriteString("\n```\n")
	matrix(&b, r)
	fmt.Fprintf(&b, "\n%s\n```\n\n", legend)
	_, err := io.WriteString(w, b.String())
	return err
}
