// Package dashboards holds the Grafana dashboards that Stormglass ships. A YAML file of the
// folder source describes each, process.yaml the row that several have, reasons.yaml why a
// query may be empty. Package source makes of them the JSON that any Grafana imports or
// provisions (json/UID.json); the report draws them without Grafana. Here is also what proves
// a panel: which faults move it.
//
// This package links no Grafana SDK.
//
// # Conventions
//
// Every dashboard has the variables datasource, cluster and instance, and every
// query uses the latter two, a recording rule's only the labels it has. Jobs are
// named as in package alerts. Queries read its recording rules where one
// computes the same. A description says what a panel shows, and after "Do:" what to
// do about it. Titles are unique within a dashboard.
package dashboards

import "slices"

// Dashboard is one dashboard.
type Dashboard struct {
	UID, Title string
	// Tells what the dashboard is for.
	Tells string
	// Jobs is the PromQL matcher of the components whose instances can be chosen.
	Jobs string
	Rows []Row
}

// Row is a heading and what is under it.
type Row struct {
	Title  string
	Panels []Panel
	// Process puts the row of process.yaml here.
	Process *Process
}

// Process holds the differences between components in the row of process metrics.
type Process struct {
	// Waits tells whether the component exports how long its goroutines wait (etcd does not).
	Waits bool
	// Moves lists what must move the panel of descriptors.
	Moves []string
}

// Panel is one picture. The zero values of its looks are a plain line chart.
type Panel struct {
	// Kind is "timeseries" (the default), "stat", "table", "heatmap" or "state-timeline".
	Kind  string
	Title string
	// Tells what is shown and what it means; Do, what to do about it.
	Tells, Do string
	// Unit is Grafana's name of it: "s", "reqps", "percentunit", ...
	Unit string
	// X and W are columns of 24; Y and H are rows. W and H are 8 by default; X and Y follow.
	X, Y    uint32 `yaml:"-"`
	W, H    uint32
	Queries []Query
	// Warn and Bad are where orange and red begin; zero: nowhere. With Falls
	// they are where they end: low is bad.
	Warn, Bad float64
	Falls     bool
	Log       bool    // logarithmic axis
	Stacked   bool    // a stack of areas
	Max       float64 // of the axis; zero: as high as the values
	Min       float64 // of a logarithmic axis; zero: as low as the values
	// Calc makes one number of a series, of a stat: "max", "min"; empty: the last.
	Calc string
	// Hidden and Renamed are columns of a table.
	Hidden  []string
	Renamed map[string]string
	// More is the UID of the dashboard that shows more of this.
	More string
	// Moves lists what must move this panel, each shown by a run: a kind of fault ("slowFsync")
	// or of load ("watches"), and after a space what it must be of, if that matters: a kind of
	// component ("kill etcd"), how a webhook fails ("webhook slow", "closed" or
	// "open"), a verb ("requests list"), "watches slow".
	Moves []string
}

// Query is one PromQL expression of a panel.
type Query struct {
	// RefID is A for the first of a panel, then B, C, ...
	RefID string `yaml:"-"`
	// Expr is PromQL with Grafana's variables in it; see Asker. The file may use abbreviations.
	Expr string
	// Legend names a series, with {{label}} for a label's value.
	Legend string
	// Empty names the reason of reasons.yaml why it may have no answer; empty: it must
	// have one.
	Empty  string
	Reason *Reason `yaml:"-"` // the reason that Empty names
}

// Reason is why a query may have no answer.
type Reason struct {
	// Text is shown to a person.
	Text string
	// Unless is PromQL, without variables. Where it has an answer, even once
	// during a run, the reason does not hold, and neither does the excuse.
	Unless string
}

// Step is a threshold: from Value on (nil: from the lowest) the colour holds.
type Step struct {
	Value *float64
	Color string
}

// faint is the colour of a state that is not.
const faint = "rgba(128, 128, 128, 0.15)"

// Steps are the thresholds from low to high: green, from Warn on orange, from Bad on red; of
// states, off and on, which is red where on is bad.
func (p Panel) Steps() []Step {
	steps := []Step{{Color: "green"}}
	add := func(at float64, colour string) {
		if at != 0 {
			steps = append(steps, Step{&at, colour})
		}
	}
	switch {
	case p.Falls:
		steps[0].Color = "red"
		add(p.Warn, "green")
	case p.Kind == "state-timeline" && p.Bad != 0:
		steps[0].Color = faint
		add(p.Bad, "red")
	case p.Kind == "state-timeline":
		steps[0].Color = faint
		add(1, "blue")
	default:
		add(p.Warn, "orange")
		add(p.Bad, "red")
	}
	return steps
}

// DrawsSteps reports whether the thresholds are drawn into the panel.
func (p Panel) DrawsSteps() bool { return p.Kind == "timeseries" && (p.Warn != 0 || p.Bad != 0) }

// SoftMax is how high the axis is at least, so that one slow call of a thousand does not fill
// the panel; zero: as high as the values.
func (p Panel) SoftMax() float64 {
	if p.Kind == "timeseries" && p.Unit == "percentunit" && p.Max == 0 {
		return p.Warn
	}
	return 0
}

// NoData is shown where no query has data: the first query's reason, if each has one.
func (p Panel) NoData() string {
	if len(p.Queries) == 0 || slices.ContainsFunc(p.Queries, func(q Query) bool { return q.Reason == nil }) {
		return ""
	}
	return p.Queries[0].Reason.Text
}
