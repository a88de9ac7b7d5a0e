package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/stormglass/stormglass/internal/markdown"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/result"
)

// summaryDetail is the maximum length of a gate's detail in a summary.
const summaryDetail = 300

// Summary writes a result as Markdown for a pull request, to append to the file $GITHUB_STEP_SUMMARY on GitHub or to
// post as a note on GitLab. The verdict and its reasons come first, then the gates, the worst first. The text ends with
// an empty line, so that summaries can be concatenated.
func Summary(w io.Writer, r result.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s: %s\n\n%s.\n", inMarkdown(runWord(r)), inMarkdown(runName(r)), inMarkdown(headline(r)))
	for _, text := range given(busyMachine(r), noneIdle(r)) {
		fmt.Fprintf(&b, "\n%s\n", inMarkdown(text))
	}
	if rest := otherReasons(r); len(rest) > 0 {
		b.WriteString("\n")
		for _, why := range rest {
			fmt.Fprintf(&b, "- %s\n", markdown.Cell(why))
		}
	}
	if gates := ownGates(r); len(gates) > 0 {
		tab := newTable("verdict", "gate", "value", "bound", "detail")
		for _, g := range gates {
			tab.add(gateEmphasis(g), inMarkdown(g.Name), inMarkdown(gateValue(g)), inMarkdown(gateBound(g)), inMarkdown(terminal.Shorten(terminal.Clean(g.Detail), summaryDetail)))
		}
		tab.markdown(&b)
	}
	alertSummary(&b, r)
	transitionSummary(&b, r.Measurements.Phases)
	diagnosisSummary(&b, r.Diagnosis)
	profilesSummary(&b, r.Run.Profiles)
	hooksSummary(&b, r.Run.Hooks)
	fmt.Fprintf(&b, "\n%s\n\n", inMarkdown(strings.Join(summaryFacts(r.Run), ", ")))
	_, err := io.WriteString(w, b.String())
	return err
}

// ComparisonSummary writes a comparison of variants as Markdown for a pull request.
func ComparisonSummary(w io.Writer, c result.Comparison) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s: %s\n\n%s.\n", word(verdictOf(c)), inMarkdown(c.Scenario), inMarkdown(ranOf(c)))
	variants, figures := newTable("verdict", "variant", "why"), newTable("metric")
	for _, v := range c.Variants {
		variants.add(emphasis(v.Verdict), inMarkdown(v.Name), inMarkdown(terminal.Shorten(terminal.Clean(strings.Join(reasonsOf(v), "; ")), summaryDetail)))
		figures.Head = append(figures.Head, head{Text: inMarkdown(v.Name), Numeric: true})
	}
	variants.markdown(&b)
	if len(c.Rows) > 0 {
		for _, r := range c.Rows {
			row := []string{inMarkdown(r.Name)}
			for _, v := range r.Values {
				row = append(row, strings.TrimSpace(valueOf(r, v)+" "+ratioOf(v)))
			}
			figures.add(row...)
		}
		figures.markdown(&b)
		if note := ratioNote(c); note != "" {
			fmt.Fprintf(&b, "\n%s\n", inMarkdown(note))
		}
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// summaryFacts returns the facts that are needed to repeat the run.
func summaryFacts(run result.Run) []string {
	facts := []string{"run " + run.ID, fmt.Sprintf("seed %d", run.Seed), "Stormglass " + run.Versions.Stormglass}
	if run.Versions.Kubernetes != "" {
		facts = append(facts, "Kubernetes "+kubernetesText(run.Versions))
	}
	if run.Host.CPUs > 0 {
		facts = append(facts, fmt.Sprintf("%d CPUs", run.Host.CPUs))
	}
	for _, o := range run.Overrides {
		facts = append(facts, "set "+o)
	}
	return facts
}

// gateEmphasis returns the word for a gate's verdict, in bold unless the gate passed or may lack data.
func gateEmphasis(g result.Gate) string {
	switch {
	case g.Allowed:
		return "no data, allowed"
	case g.TooShort:
		return "**too short**"
	}
	return emphasis(g.Verdict)
}

func emphasis(v result.Verdict) string {
	if v == result.Pass {
		return string(v)
	}
	return "**" + string(v) + "**"
}
