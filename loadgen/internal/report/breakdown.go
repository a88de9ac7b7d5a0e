package report

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
)

// maxSplits is the maximum number of latency bars on a page. The page shows the calls (verb and resource) with the
// largest mean latencies.
const maxSplits = 40

// splitView is the mean latency of a call, shown as a stacked bar.
type splitView struct {
	Call, Where       string // Call is like "patch configmaps"; Where is the phase and load
	Mean, P99, Server string
	Summary           string // description of the bar, for screen readers
	Pieces            []piece
	Notes             []string
}

// piece is a part of a latency bar. X and Width are in the coordinates of a plot. They are empty if the part is
// negative; the page then shows only its value.
type piece struct {
	Name, Value, Share, Tells string
	Colour                    int // index of the colour in the palette; -1 for the unexplained part
	X, Width                  string
}

// partText holds the explanation of a part of the latency. colour is the index of the part's colour in the palette, the
// same on every page. No large part is grey, because grey is the colour of the unexplained part.
type partText struct {
	tells  string
	colour int
}

func partTexts() map[string]partText {
	return map[string]partText{
		result.PartLag:       {"From the intended start of the request until the generator began to process it", 0},
		result.PartConnect:   {"Waiting for a new connection, or for a free stream on an open one", 6},
		result.PartWire:      {"Time outside the API server's handler: network, TLS, reading and writing in client and server, and waiting for a CPU there", 2},
		result.PartFilters:   {"The API server's request filters, which run before the handler: authentication, authorization and others", 3},
		result.PartFairness:  {"Waiting in the API server's priority and fairness queues", 4},
		result.PartAdmission: {"Admission plugins, admission webhooks and policies", 5},
		result.PartEtcd:      {"Calls from the API server to etcd: network, etcd itself, and waits for a CPU on both sides", 1},
		result.PartCache:     {"Waiting until the API server's watch cache is up to date", 7},

		result.PartAdmissionOrFairness: {"Admission webhooks, or waiting in the priority and fairness queues; the metrics do not separate the two", 4},
	}
}

func breakdownView(_ context.Context, p *page) (any, error) {
	var v struct {
		Splits []splitView
		Note   string
	}
	rows := worstSplits(p.result, maxSplits)
	if len(rows) == 0 {
		return nil, nil
	}
	if n := len(p.result.Breakdown); n > len(rows) {
		v.Note = fmt.Sprintf("%d of %s bars are shown: those with the highest mean latency. result.json has all.", len(rows), chart.Count(n))
	}
	for _, b := range rows {
		v.Splits = append(v.Splits, newSplitView(b))
	}
	return v, nil
}

// worstSplits returns the rows of the latency breakdown with the largest means, at most `most` rows, in the order of
// the run.
func worstSplits(r result.Result, most int) []result.Breakdown {
	order := make([]int, len(r.Breakdown))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(r.Breakdown[j].ClientMean, r.Breakdown[i].ClientMean) })
	order = order[:min(most, len(order))]
	slices.Sort(order)
	rows := make([]result.Breakdown, len(order))
	for i, at := range order {
		rows[i] = r.Breakdown[at]
	}
	return rows
}

func newSplitView(b result.Breakdown) splitView {
	v := splitView{
		Call: callText(b.Verb, b.Resource, b.Variant, b.Tenant), Where: "phase " + terminal.Clean(b.Phase) + ", load " + terminal.Clean(b.Load), Mean: seconds(b.ClientMean),
		P99: seconds(b.ClientP99), Server: optional(b.ServerMean),
	}
	if b.ServerMean != nil && b.ServerSource == "audit" {
		v.Server += " (from the audit log)"
	}
	whole := max(b.Unexplained, 0)
	for _, p := range b.Parts {
		whole += max(p.Seconds, 0)
	}
	x := 0.0
	add := func(name, tells string, colour int, s float64) {
		p := piece{Name: name, Value: seconds(s), Tells: tells, Colour: colour, Share: shareText(s, b.ClientMean)}
		if s > 0 && whole > 0 {
			width := chart.PlotWidth * s / whole
			p.X, p.Width = chart.Coordinate(x), chart.Coordinate(width)
			x += width
		}
		v.Pieces = append(v.Pieces, p)
	}
	texts := partTexts()
	for _, p := range b.Parts {
		text := texts[p.Name]
		name := cmp.Or(map[string]string{result.PartWire: "outside handler"}[p.Name], terminal.Clean(p.Name)) // "wire" suggests only the network
		add(name, sentences(text.tells, "averaged over "+measuredOver(p.Of), terminal.Clean(p.Note), spansText(p.Spans)), text.colour, p.Seconds)
		if p.Most != nil {
			last := &v.Pieces[len(v.Pieces)-1]
			last.Value, last.Share = upTo(last.Value, seconds(*p.Most), p.Seconds), upTo(last.Share, shareText(*p.Most, b.ClientMean), p.Seconds)
		}
	}
	add("unexplained", sentences(terminal.Clean(b.UnexplainedNote)), -1, b.Unexplained)
	for _, p := range v.Pieces {
		v.Summary += fmt.Sprintf("%s %s, ", p.Name, p.Value)
	}
	v.Summary = v.Call + ": " + strings.TrimSuffix(v.Summary, ", ")
	if s := b.Slow; s != nil {
		v.Notes = append(v.Notes, slowText(*s))
	}
	for _, w := range b.Warnings {
		v.Notes = append(v.Notes, sentences(terminal.Clean(w)))
	}
	return v
}

// spansText says how long a part took according to the spans of traced requests.
func spansText(mean *float64) string {
	if mean == nil {
		return ""
	}
	return "the spans of traced requests give " + seconds(*mean)
}

// sentences joins the texts that are not empty. It makes each of them a sentence: capital letter, full stop.
func sentences(texts ...string) string {
	var all []string
	for _, text := range texts {
		if text != "" {
			all = append(all, capitalize(text)+".")
		}
	}
	return strings.Join(all, " ")
}

// upTo formats the range of a part whose exact size is unknown, such as "2 ms to 5 ms". certain and most are the lower
// and the upper end as text. seconds is the lower end; if it is 0, the result has only the upper end, as in "under 5 ms".
func upTo(certain, most string, seconds float64) string {
	if seconds <= 0 {
		return "under " + strings.TrimPrefix(most, "<")
	}
	return certain + " to " + most
}

func callText(verb, resource, variant, tenant string) string {
	text := terminal.Clean(verb + " " + resource)
	if variant != "" {
		text += " (" + terminal.Clean(variant) + ")"
	}
	if tenant != "" {
		text += " as " + terminal.Clean(tenant)
	}
	return text
}

// slowText describes the slow requests that the API server itself reported.
func slowText(s result.SlowRequests) string {
	text := fmt.Sprintf("The API server took over 500 ms for each of %s (mean %s)", plural(s.Count, "request"), seconds(s.Mean))
	var layers []string
	for _, name := range sortedKeys(s.Layers) {
		layers = append(layers, terminal.Clean(name)+" "+seconds(s.Layers[name]))
	}
	if len(layers) > 0 {
		text += ". Mean time in each layer, according to the API server: " + strings.Join(layers, ", ")
	}
	return text
}

// measuredOver describes the requests over which a latency part was averaged.
func measuredOver(of string) string {
	switch of {
	case "verb and resource":
		return "the requests of all clients with this verb and resource"
	case "resource":
		return "the requests of all clients for this resource"
	case "operation":
		return "the requests of all clients with this operation"
	case "server":
		return "all requests to the API server"
	}
	return "the requests of this load" // "our requests"
}

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return chart.Count(n) + " " + noun + "s"
}

// shareText formats part as a percentage of `of`, rounded to an integer.
func shareText(part, of float64) string {
	if of <= 0 {
		return chart.None
	}
	share := math.Round(100 * part / of)
	if share == 0 && part > 0 {
		return "<1%"
	}
	return chart.Number(share+0, 4) + "%" // +0 turns a negative zero into zero
}

// terminalSplits is the maximum number of rows of the tables of latency parts and scheduling in a summary, so that the
// summary fits on a screen.
const terminalSplits = 3

// breakdown writes the slowest calls with the parts of their mean latency in percent. The column "others" adds up the
// parts without a column, including the time that belongs to either admission or fairness.
func (t *terminalWriter) breakdown(r result.Result) {
	rows := worstSplits(r, terminalSplits)
	slices.SortStableFunc(rows, func(a, b result.Breakdown) int { return cmp.Compare(b.ClientMean, a.ClientMean) })
	if len(rows) == 0 {
		return
	}
	tab := newTable("~WHERE THE TIME WENT, in %", ">mean", ">lag", ">connect", ">outside", ">APF", ">etcd", ">others", ">unexplained")
	callOf := func(b result.Breakdown) string {
		return terminal.Clean(b.Phase) + " " + callText(b.Verb, b.Resource, b.Variant, b.Tenant)
	}
	calls := map[string]int{}
	for _, b := range r.Breakdown {
		calls[callOf(b)]++
	}
	for _, b := range rows {
		call := callOf(b)
		if calls[call] > 1 { // several loads send this call
			call += " (" + terminal.Clean(b.Load) + ")"
		}
		share := func(names ...string) string {
			sum, most, found := 0.0, 0.0, false
			for _, p := range b.Parts {
				if slices.Contains(names, p.Name) {
					sum, most, found = sum+p.Seconds, most+p.Seconds, true
					if p.Most != nil {
						most += *p.Most - p.Seconds
					}
				}
			}
			certain, upper := shareText(sum, b.ClientMean), shareText(most, b.ClientMean)
			switch {
			case !found:
				return chart.None
			case certain == upper || upper == "<1%":
				return upper
			}
			return certain + " to " + upper
		}
		tab.add(call, seconds(b.ClientMean),
			share(result.PartLag), share(result.PartConnect), share(result.PartWire), share(result.PartFairness), share(result.PartEtcd),
			share(result.PartFilters, result.PartAdmission, result.PartAdmissionOrFairness, result.PartCache), shareText(b.Unexplained, b.ClientMean))
	}
	t.section(tab)
	t.wrapped("  ", "lag: in loadgen; outside: network, TLS; APF: the API server's queues; all include waits for a CPU")
}
