package report

import (
	"math"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
)

// latencyOf returns the verbs of loads whose latency a built-in objective measures. Nil means all verbs. It returns false if
// the objective does not measure the latency of requests.
func latencyOf(objective string) (verbs []string, ok bool) {
	switch objective {
	case "request-latency", "request-latency-upper":
		return nil, true
	case "mutating-latency":
		return []string{"create", "update", "patch", "apply", "delete"}, true
	case "read-latency":
		return []string{"get"}, true
	case "list-latency":
		return []string{"list"}, true
	}
	return nil, false
}

// traceOf returns the slowest trace of the requests that a latency gate judges. If the gate's value is from one phase or
// load, the trace is from the same one. It returns false if the gate passed or does not judge the latency of requests, or
// if there is no such trace.
func traceOf(r result.Result, g result.Gate) (x result.Trace, ok bool) {
	verbs, known := latencyOf(g.Objective)
	if !known || r.Traces == nil || g.Verdict == result.Pass || g.Value == nil && g.Withheld == nil {
		return x, false
	}
	phases := g.Over
	if g.WorstPhase != "" {
		phases = []string{g.WorstPhase}
	}
	i := slices.IndexFunc(r.Traces.Slowest, func(x result.Trace) bool {
		return x.Client == "" && slices.Contains(phases, x.Phase) && (g.WorstLoad == "" || g.WorstLoad == x.Load) && (verbs == nil || slices.Contains(verbs, x.Verb))
	})
	if i < 0 {
		return x, false
	}
	return r.Traces.Slowest[i], true
}

// tracesByPhase returns a link to the slowest trace of each phase, in the order of the phases.
func tracesByPhase(r result.Result) (links []chart.Link) {
	if r.Traces == nil {
		return nil
	}
	for _, p := range r.Measurements.Phases {
		if i := slices.IndexFunc(r.Traces.Slowest, func(x result.Trace) bool { return x.Phase == p.Name }); i >= 0 {
			links = append(links, chart.Link{Text: terminal.Clean(p.Name), Target: traceAnchor(r.Traces.Slowest[i])})
		}
	}
	return links
}

// traceAnchor returns the ID of a trace's waterfall on the page.
func traceAnchor(x result.Trace) string { return "trace-" + chart.Slug(x.ID) }

// traceCommand returns the command that shows traces of the run in dir.
func traceCommand(dir string, args ...string) string {
	command := "loadgen trace"
	for _, word := range append([]string{dir}, args...) {
		command += " " + shellQuote(terminal.Clean(word))
	}
	return command
}

// shortID returns the beginning of a trace's ID, which `loadgen trace` accepts.
func shortID(id string) string { return terminal.Clean(id[:min(len(id), 8)]) }

// slowestSpan returns the span with the most time on the critical path of its trace.
func slowestSpan(x result.Trace) (top result.TraceSpan) {
	for _, s := range x.Spans {
		if s.Critical > top.Critical {
			top = s
		}
	}
	return top
}

// lengthOf returns the time in seconds from the start of a trace to the end of its last span.
func lengthOf(x result.Trace) float64 {
	whole := x.Seconds
	for _, s := range x.Spans {
		whole = max(whole, s.Start+s.Seconds)
	}
	return whole
}

// cells is a row of a waterfall in a terminal: a line of characters. Each character stands for an equal part of the time.
type cells struct {
	text  []rune
	whole float64 // time that the whole line covers, in seconds
}

func newCells(width int, whole float64) cells {
	return cells{[]rune(strings.Repeat(" ", width)), max(whole, 1e-9)}
}

// fill draws the time between from and to, in seconds. It draws at least one character.
func (c cells) fill(from, to float64, with rune) {
	first := min(max(int(from/c.whole*float64(len(c.text))), 0), len(c.text)-1)
	c.text[first] = with
	c.fillHalf(from, to, with)
}

// fillHalf draws the time between from and to. It draws a character only if at least half of its time lies between them.
func (c cells) fillHalf(from, to float64, with rune) {
	at := func(s float64) int { return min(max(int(math.Round(s/c.whole*float64(len(c.text)))), 0), len(c.text)) }
	for i := at(from); i < at(to); i++ {
		c.text[i] = with
	}
}

func (c cells) String() string { return strings.TrimRight(string(c.text), " ") }
