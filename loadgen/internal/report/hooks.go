package report

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/result"
)

type hookRow struct {
	Phase, When, Command, Took, Outcome, Output string
}

// hooksView returns a row for each command that was run before or after a phase.
func hooksView(_ context.Context, p *page) (any, error) {
	if len(p.result.Run.Hooks) == 0 {
		return nil, nil
	}
	var rows []hookRow
	for _, h := range p.result.Run.Hooks {
		row := hookRow{Phase: terminal.Clean(h.Phase), When: terminal.Clean(h.When), Command: terminal.Clean(h.Command), Took: seconds(h.Seconds), Outcome: hookOutcome(h)}
		if file := terminal.Clean(h.Output); path.Dir(file) == result.HookDir {
			row.Output = file
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// hookOutcome describes how the command of a hook ended, and whether the hook was required.
func hookOutcome(h result.Hook) string {
	switch {
	case h.Failed == "":
		return "exit code 0"
	case h.Required:
		return "failed: " + terminal.Clean(h.Failed)
	}
	return "failed, but is not required: " + terminal.Clean(h.Failed)
}

// failedHooks returns a description of each failed hook.
func failedHooks(all []result.Hook) (failed []string) {
	for _, h := range all {
		if h.Failed != "" {
			failed = append(failed, terminal.Clean(fmt.Sprintf("%s phase %s: %s: %s", h.When, h.Phase, h.Command, h.Failed)))
		}
	}
	return failed
}

// hooks writes how many hooks were run, and which of them failed.
func (t *terminalWriter) hooks(r result.Result) {
	if len(r.Run.Hooks) == 0 {
		return
	}
	failed := failedHooks(r.Run.Hooks)
	t.line("")
	t.line(fmt.Sprintf("hooks  %d executed, %d failed, output in %s/", len(r.Run.Hooks), len(failed), result.HookDir))
	for _, f := range failed {
		t.line(t.paint("dim", terminal.Shorten("  failed: "+f, t.width)))
	}
}

// hooksSummary writes the failed hooks as Markdown.
func hooksSummary(b *strings.Builder, all []result.Hook) {
	for i, f := range failedHooks(all) {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "- failed hook: %s\n", inMarkdown(f))
	}
}
