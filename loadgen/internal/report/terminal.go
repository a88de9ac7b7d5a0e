package report

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// TerminalOptions configure the output for a terminal.
type TerminalOptions struct {
	// Color allows ANSI colours, which only repeat what the words say.
	Color bool
	// Width is the width of the terminal in columns. No line is longer, unless Width is below the
	// minimum of 72. Zero means 100.
	Width int
	// Dir is the run directory, which the path of the report begins with. Empty means that no report was written.
	Dir string
}

// The minimum, default and maximum width of a summary. In a narrower terminal, lines wrap.
const (
	minWidth     = 72
	defaultWidth = 100
	maxWidth     = 120
)

// Terminal writes the summary of a run for a terminal: one screen, with the most urgent facts first.
func Terminal(w io.Writer, r result.Result, o TerminalOptions) error {
	t := newTerminal(o)
	for _, write := range summarySections() {
		write(t, r)
	}
	if t.reported {
		t.line("")
		t.line(t.paint(style(r.Verdict), runWord(r)) + "  " + runName(r) + "  report  " + terminal.Clean(filepath.Join(o.Dir, result.HTMLFile)))
	}
	return t.writeTo(w)
}

type terminalWriter struct {
	out      []string
	width    int
	paint    painter
	reported bool // whether a report was also written
	dir      string
}

func newTerminal(o TerminalOptions) *terminalWriter {
	width := min(max(cmp.Or(o.Width, defaultWidth), minWidth), maxWidth)
	t := &terminalWriter{width: width, paint: noPaint, reported: o.Dir != "", dir: o.Dir}
	if o.Color {
		t.paint = paintANSI
	}
	return t
}

func (t *terminalWriter) line(s string) { t.out = append(t.out, s) }

// title writes a word in a style, and a text after it.
func (t *terminalWriter) title(style, word, text string) {
	t.line(t.paint(style, word) + t.paint("head", terminal.Shorten("  "+text, t.width-terminal.TextWidth(word))))
}

// section writes a table after an empty line.
func (t *terminalWriter) section(tab *table) {
	t.line("")
	t.out = append(t.out, tab.lines(t.width, t.paint)...)
}

// more writes that the report has n more rows of a kind (`what`) than the table above. It writes nothing if n is 0.
func (t *terminalWriter) more(n int, what string) {
	if n > 0 {
		t.line("  " + plural(int64(n), "more "+what) + " in the report")
	}
}

// reportAt writes the path of a report.
func (t *terminalWriter) reportAt(dir, file string) {
	t.line("")
	t.line("report  " + terminal.Clean(filepath.Join(dir, file)))
}

func (t *terminalWriter) writeTo(w io.Writer) error {
	_, err := io.WriteString(w, strings.Join(t.out, "\n")+"\n")
	return err
}

func style(v result.Verdict) string {
	return map[result.Verdict]string{result.Fail: "fail", result.NoData: "nodata", result.Pass: "pass", pending: "pending"}[v]
}

func (t *terminalWriter) header(r result.Result) {
	if busy := busyMachine(r); busy != "" {
		for _, l := range terminal.Wrap("warning: "+busy, t.width) {
			t.line(t.paint("nodata", l))
		}
	}
	t.title(style(r.Verdict), runWord(r), fmt.Sprintf("%s  %s  %s", runName(r), chart.Seconds(runSeconds(r), 3), headline(r)))
	t.line(t.paint("dim", terminal.Shorten(setting(r), t.width)))
	for _, w := range cleaned(r.Run.Warnings) {
		t.line(t.paint("nodata", terminal.Shorten("warning: "+w, t.width)))
	}
	if text := noneIdle(r); text != "" {
		for _, l := range terminal.Wrap("note: "+text, t.width) {
			t.line(t.paint("dim", l))
		}
	}
	for _, note := range cleaned(r.Notes) {
		lines := []string{terminal.Shorten("note: "+note, t.width)}
		if !t.reported { // the whole text is nowhere else
			lines = terminal.Wrap("note: "+note, t.width)
		}
		for _, l := range lines {
			t.line(t.paint("dim", l))
		}
	}
}

// setting describes the setup of the run: control plane, versions, nodes, seed and exit code.
func setting(r result.Result) string {
	parts := []string{planeText(r.Run)}
	if v := r.Run.Versions; v.Kubernetes != "" {
		parts = append(parts, "Kubernetes "+kubernetesText(v))
		if v.Etcd != "" {
			parts = append(parts, "etcd "+etcdText(v))
		}
	}
	if n := r.Measurements.Nodes; n != nil && n.Count > 0 {
		parts = append(parts, chart.Count(n.Count)+" simulated nodes")
	}
	if r.Run.ID != "" {
		parts = append(parts, fmt.Sprintf("seed %d", r.Run.Seed))
	}
	return strings.Join(append(parts, fmt.Sprintf("exit %d", r.ExitCode)), " · ")
}

// planeText describes the control plane under load.
func planeText(run result.Run) string {
	switch {
	case run.ID == "":
		return "control plane not recorded"
	case run.Cluster.Bundled:
		return cmp.Or(terminal.Clean(run.Cluster.Name), "bundled") + " control plane"
	}
	return "cluster " + terminal.Clean(run.Cluster.Name)
}

func (t *terminalWriter) reasons(r result.Result) {
	reasons := otherReasons(r)
	const most = 5
	quoted := false
	for i, reason := range reasons {
		if i == most {
			t.more(len(reasons)-most, "reason")
			break
		}
		var lines []string
		for line := range strings.Lines(reason) {
			lines = append(lines, terminal.Wrap(line, t.width-4)...)
		}
		longest := 4
		if strings.Contains(reason, "\n") && !quoted { // it quotes the log of a component
			quoted, longest = true, 40
		}
		if len(lines) > longest {
			lines = lines[:longest]
			lines[longest-1] = terminal.Shorten(lines[longest-1], t.width-6) + " …"
		}
		for j, l := range lines {
			t.line(map[bool]string{true: "  ! ", false: "    "}[j == 0] + l)
		}
	}
}

func keyText(row result.KeyRow) string {
	switch v := keyValue(row); {
	case v == nil:
		return chart.None
	case row.P99 == nil:
		return chart.Format(scenario.Count, *v)
	default:
		return chart.Format(scenario.Seconds, *v)
	}
}
