package alertproof

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/stormglass/stormglass/internal/markdown"
	"github.com/stormglass/stormglass/loadgen/result"
)

// The marks of the matrix.
const legend = "F fired as it had to   x did not, or too late   c fired as it may, as a consequence   ! fired and had to be silent   . silent   ? not to be told"

// Text writes a report for a person: the sum, the proofs, the matrix of rules
// and proofs with each rule's latency beside its floor, and what is wrong.
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
		fmt.Fprintf(&b, "\n%s\nlatency counts from the cause; * resolved after the run, as if its last scrape went on\n", legend)
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
	text := fmt.Sprintf("%d of %d rules fired when they had to and resolved, %d unrelated", len(r.Proven), wanted, r.Unrelated)
	if r.HealthySeconds > 0 {
		text += fmt.Sprintf(", %s without a fault", seconds(r.HealthySeconds))
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

// figures are the latency of a rule, its floor, how many times that it was, and
// how long it fired.
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

// letter names a proof in the matrix: a to z, then A to Z.
func letter(i int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return string(letters[i%len(letters)])
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// cell makes text stand for itself in a cell of a table.
func cell(s string) string { return markdown.Cell(oneLine(s)) }

// Markdown writes a report for the page of a pull request.
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
