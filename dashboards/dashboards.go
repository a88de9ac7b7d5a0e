// Package dashboards contains the Grafana dashboards that Stormglass ships. The folder source has a YAML file for each
// dashboard; process.yaml describes a row that several dashboards contain, and reasons.yaml explains why a query may
// have no result. Package source generates the JSON that any Grafana imports or provisions (json/UID.json). The report
// draws the dashboards without Grafana. The YAML files also list, for each panel, the faults that must visibly change
// it.
//
// This package does not link the Grafana SDK.
//
// # Conventions
//
// Every dashboard has the variables datasource, cluster and instance. Every query uses cluster and instance; a query of
// a recording rule uses only those labels that the rule keeps. Package alerts defines the job names. Queries use the
// recording rules of that package if a rule computes the same value. A panel's description says what the panel shows,
// and after "Do:" what to do about it. Titles are unique within a dashboard.
package dashboards

import "slices"

// Dashboard is one dashboard.
type Dashboard struct {
	UID, Title string
	// Tells describes the purpose of the dashboard.
	Tells string
	// Jobs is the PromQL matcher of the jobs whose instances the user can choose.
	Jobs string
	Rows []Row
}

// Row is a heading and the panels below it.
type Row struct {
	Title  string
	Panels []Panel
	// Process, if not nil, means that Load replaces this row with the row in process.yaml.
	Process *Process
}

// Process holds the component-specific settings of the row of process metrics.
type Process struct {
	// Waits reports whether the component exports how long its goroutines wait. etcd does not export it.
	Waits bool
	// Moves lists the faults and loads that must visibly change the panel of open file descriptors, as in Panel.Moves.
	Moves []string
}

// Panel is one panel of a dashboard. With zero values it is a plain line chart.
type Panel struct {
	// Kind is "timeseries" (the default), "stat", "table", "heatmap" or "state-timeline".
	Kind  string
	Title string
	// Tells explains what the panel shows and what it means. Do says what to do if the panel shows a problem.
	Tells, Do string
	// Unit is Grafana's identifier of the unit, such as "s", "reqps" or "percentunit".
	Unit string
	// X and W are the position and the width of the panel, in 24ths of the dashboard's width. Y and H are the position
	// and the height, in rows of Grafana's grid. W and H are 8 by default. Load calculates X and Y.
	X, Y    uint32 `yaml:"-"`
	W, H    uint32
	Queries []Query
	// Warn is the lowest value at which the panel is orange, and Bad is the lowest value at which it is red. Zero means
	// no such threshold. With Falls, low values are bad: the panel is red below Warn and green above it.
	Warn, Bad float64
	Falls     bool
	Log       bool    // whether the axis is logarithmic
	Stacked   bool    // whether the areas are stacked
	Max       float64 // maximum of the axis; zero means the highest value
	Min       float64 // minimum of a logarithmic axis; zero means the lowest value
	// Calc is the function that reduces a series of a stat to one number: "max" or "min". Empty means the last value.
	Calc string
	// Hidden lists the hidden columns of a table. Renamed maps columns to their displayed names.
	Hidden  []string
	Renamed map[string]string
	// More is the UID of the dashboard with more panels about the same subject.
	More string
	// Moves lists the kinds of fault and load that must visibly change this panel. For each of them, a run proves it.
	// An element is a kind of fault ("slowFsync") or of load ("watches"). A qualifier may follow after a space: the
	// kind of component ("kill etcd"), how a webhook fails ("webhook slow", "webhook closed" or "webhook open"), the
	// verb ("requests list"), or that the watches read too slowly ("watches slow").
	Moves []string
}

// Query is one PromQL expression of a panel.
type Query struct {
	// RefID is the letter of the query in its panel: A for the first query, then B, C, ...
	RefID string `yaml:"-"`
	// Expr is PromQL with Grafana's variables; see Asker. In the YAML file it may contain abbreviations.
	Expr string
	// Legend is the name of a series in the legend. {{label}} is replaced with the value of a label.
	Legend string
	// Empty names the reason in reasons.yaml why the query may have no result. If Empty is "", the query must have a result.
	Empty  string
	Reason *Reason `yaml:"-"` // the reason whose name is in Empty
}

// Reason explains why a query may have no result.
type Reason struct {
	// Text is the explanation for the user.
	Text string
	// Report replaces Text in the report of a run. Empty means Text.
	Report string
	// Unless is a PromQL expression without variables. If it has a result at any time of a run, the reason does not
	// apply, so the query must have a result.
	Unless string
}

// Step is a threshold: values of Value or more have the colour. A nil Value means the lowest possible value.
type Step struct {
	Value *float64
	Color string
}

// faint is the colour of the state "off" in a state timeline.
const faint = "rgba(128, 128, 128, 0.15)"

// Steps returns the thresholds from low to high: green, orange at Warn or more, and red at Bad or more. With Falls,
// values are red below Warn and green at Warn or more. A state timeline has the states "off" and "on"; "on" is red if
// Bad is set, and blue otherwise.
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

// DrawsSteps reports whether the panel shows its thresholds.
func (p Panel) DrawsSteps() bool { return p.Kind == "timeseries" && (p.Warn != 0 || p.Bad != 0) }

// SoftMax returns the lowest value at which the axis may end, so that a fraction of 0.1% does not fill the whole panel.
// Zero means that the axis ends at the highest value.
func (p Panel) SoftMax() float64 {
	if p.Kind == "timeseries" && p.Unit == "percentunit" && p.Max == 0 {
		return p.Warn
	}
	return 0
}

// NoData returns the text for a panel without data: the reason of the first query if every query has a reason, otherwise "".
func (p Panel) NoData() string {
	if len(p.Queries) == 0 || slices.ContainsFunc(p.Queries, func(q Query) bool { return q.Reason == nil }) {
		return ""
	}
	return p.Queries[0].Reason.Text
}
