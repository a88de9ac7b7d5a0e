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

// Summary writes a result as Markdown for a pull request, to append to the file
// $GITHUB_STEP_SUMMARY on GitHub or to post as a note on GitLab. The verdict and its reasons come
// first, then the gates, the worst first. The text ends with an empty line, so that summaries can
// be concatenated.
func Summary(w io.Writer, r result.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s: %s\n\n%s.\n", markdown.Cell(runWord(r)), markdown.Cell(runName(r)), markdown.Cell(headline(r)))
	if busy := busyMachine(r); busy != "" {
		fmt.Fprintf(&b, "\n%s.\n", markdown.Cell(busy))
	}
	if rest := otherReasons(r); len(rest) > 0 {
		b.WriteString("\n")
		for _, why := range rest {
			fmt.Fprintf(&b, "- %s\n", markdown.Cell(why))
		}
	}
	if gates := ownGates(r); len(gates) > 0 {
		b.WriteString("\n| verdict | gate | value | bound | detail |\n|---|---|---|---|---|\n")
		for _, g := range gates {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", gateEmphasis(g), markdown.Cell(terminal.Clean(g.Name)), markdown.Cell(gateValue(g)), markdown.Cell(gateBound(g)),
				markdown.Cell(terminal.Shorten(terminal.Clean(g.Detail), summaryDetail)))
		}
	}
	alertSummary(&b, r)
	transitionSummary(&b, r.Measurements.Phases)
	diagnosisSummary(&b, r.Diagnosis)
	profilesSummary(&b, r.Run.Profiles)
	hooksSummary(&b, r.Run.Hooks)
	fmt.Fprintf(&b, "\n%s\n\n", markdown.Cell(terminal.Clean(strings.Join(summaryFacts(r.Run), ", "))))
	_, err := io.WriteString(w, b.String())
	return err
}

// ComparisonSummary writes a comparison of variants as Markdown for a pull request.
func ComparisonSummary(w io.Writer, c result.Comparison) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s: %s\n\n%s.\n", word(verdictOf(c)), markdown.Cell(terminal.Clean(c.Scenario)), markdown.Cell(ranOf(c)))
	b.WriteString("\n| verdict | variant | why |\n|---|---|---|\n")
	for _, v := range c.Variants {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", emphasis(v.Verdict), markdown.Cell(terminal.Clean(v.Name)), markdown.Cell(terminal.Shorten(terminal.Clean(strings.Join(reasonsOf(v), "; ")), summaryDetail)))
	}
	if len(c.Rows) > 0 {
		b.WriteString("\n| metric |")
		for _, v := range c.Variants {
			fmt.Fprintf(&b, " %s |", markdown.Cell(terminal.Clean(v.Name)))
		}
		b.WriteString("\n|---|" + strings.Repeat("---:|", len(c.Variants)) + "\n")
		for _, r := range c.Rows {
			fmt.Fprintf(&b, "| %s |", markdown.Cell(terminal.Clean(r.Name)))
			for _, v := range r.Values {
				fmt.Fprintf(&b, " %s |", strings.TrimSpace(valueOf(r, v)+" "+ratioOf(v)))
			}
			b.WriteString("\n")
		}
		if note := ratioNote(c); note != "" {
			fmt.Fprintf(&b, "\n%s\n", markdown.Cell(note))
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

// gateEmphasis highlights gates that did not pass.
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
