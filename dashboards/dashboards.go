// Package dashboards holds the Grafana dashboards that Stormglass ships, as
// JSON that any Grafana imports or provisions (json/UID.json), and reads of
// them what others need: the queries, how each is to be shown, and what proves
// a panel (proof.json): which faults move it, and why a query may be empty.
//
// The JSON is written by package source, from Go; a test keeps both equal.
// This package links no Grafana SDK.
//
// # Conventions
//
// Every dashboard has the variables datasource, cluster and instance, and every
// query uses the latter two, a recording rule's only the labels it has. The jobs
// are those of package alerts, whose recording rules the queries read where one
// says the same. A description says what a panel shows, and after "Do:" what to
// do about it. Titles are unique within a dashboard.
package dashboards

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
)

//go:embed json/*.json
var files embed.FS

//go:embed proof.json
var proofFile []byte

// Files is the dashboards as a Grafana takes them, UID.json each.
func Files() fs.FS {
	sub, err := fs.Sub(files, "json")
	if err != nil {
		panic(err) // the name is a constant
	}
	return sub
}

// Order is the dashboards by UID, as a person reads them.
func Order() []string {
	return []string{
		"stormglass-overview", "stormglass-apiserver", "stormglass-etcd", "stormglass-scheduler",
		"stormglass-controller-manager", "stormglass-nodes", "stormglass-loadgen", "stormglass-run",
	}
}

// Dashboard is one dashboard, as read from its JSON.
type Dashboard struct {
	UID, Title, Description string
	Rows                    []Row
}

// Row is a heading and what is under it.
type Row struct {
	Title  string
	Panels []Panel
}

// Panel is one picture.
type Panel struct {
	// Kind is "timeseries", "stat", "table", "heatmap" or "state-timeline".
	Kind               string
	Title, Description string
	// Unit is Grafana's name of it: "s", "reqps", "percentunit", ...
	Unit string
	// X and W are columns of 24; Y and H are rows.
	X, Y, W, H int
	Targets    []Target
	// Steps are thresholds from low to high; the first has no value.
	Steps []Step
	// Lines tells whether thresholds are drawn into a time series.
	Lines bool
	// Log is a logarithmic axis, Stacked a stack of areas.
	Log, Stacked bool
	Min, Max     *float64
	// SoftMax is how high the axis is at least.
	SoftMax *float64
	// Calc is how a stat makes one number of a series: "lastNotNull", "max", "min".
	Calc string
	// Hidden and Renamed are columns of a table.
	Hidden  map[string]bool
	Renamed map[string]string
	// NoValue stands where there is no data.
	NoValue string
	// Moves lists what this panel must show: a kind of fault ("slowFsync") or of load
	// ("watches"), and after a space what it must be of, if that matters: a kind of
	// component ("kill etcd"), how a webhook fails ("webhook slow", "closed" or
	// "open"), a verb ("requests list"), "watches slow".
	Moves []string
}

// Target is one query of a panel.
type Target struct {
	RefID string
	// Expr is PromQL with Grafana's variables in it; see Asker.
	Expr string
	// Legend names a series, with {{label}} for a label's value.
	Legend string
	// Instant asks for the end of the range only.
	Instant bool
	// Empty is why it may have no answer; nil: it must have one.
	Empty *Reason
}

// Reason is why a query may have no answer.
type Reason struct {
	// Text is shown to a person.
	Text string `json:"text"`
	// Unless is PromQL, without variables. Where it has an answer, even once
	// during a run, the reason does not hold, and neither does the excuse.
	Unless string `json:"unless"`
}

// Step is a threshold: from Value on (nil: from the lowest) the colour holds.
type Step struct {
	Value *float64 `json:"value"`
	Color string   `json:"color"`
}

// Load reads all dashboards, in Order. An error is a file that is not what
// package source writes.
func Load() ([]Dashboard, error) {
	var proofs []Proof
	if err := json.Unmarshal(proofFile, &proofs); err != nil {
		return nil, fmt.Errorf("proof.json: %w", err)
	}
	byPanel := map[string]Proof{}
	for _, p := range proofs {
		byPanel[p.Dashboard+"/"+p.Panel] = p
	}
	var all []Dashboard
	for _, uid := range Order() {
		text, err := fs.ReadFile(Files(), uid+".json")
		if err != nil {
			return nil, err
		}
		d, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s.json: %w", uid, err)
		}
		for _, row := range d.Rows {
			for i := range row.Panels {
				p := &row.Panels[i]
				proof := byPanel[uid+"/"+p.Title]
				p.Moves = proof.Moves
				for j := range p.Targets {
					if reason, ok := proof.Empty[p.Targets[j].RefID]; ok {
						p.Targets[j].Empty = &reason
					}
				}
			}
		}
		all = append(all, d)
	}
	return all, nil
}

// Proof is a panel's entry in proof.json.
type Proof struct {
	Dashboard string `json:"dashboard"` // its UID
	Panel     string `json:"panel"`     // its title
	// Moves are the kinds of fault that the panel must show.
	Moves []string `json:"moves,omitempty"`
	// Empty is why a query may have no answer, by its RefID.
	Empty map[string]Reason `json:"empty,omitempty"`
}

// document is the part of Grafana's schema that is read.
type document struct {
	UID         string     `json:"uid"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Panels      []docPanel `json:"panels"`
}

type docPanel struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct {
		X, Y, W, H int
	} `json:"gridPos"`
	Targets []struct {
		RefID        string `json:"refId"`
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
		Instant      bool   `json:"instant"`
	} `json:"targets"`
	FieldConfig struct {
		Defaults struct {
			Unit       string   `json:"unit"`
			NoValue    string   `json:"noValue"`
			Min        *float64 `json:"min"`
			Max        *float64 `json:"max"`
			Thresholds struct {
				Steps []Step `json:"steps"`
			} `json:"thresholds"`
			Custom struct {
				AxisSoftMax       *float64 `json:"axisSoftMax"`
				ScaleDistribution struct {
					Type string `json:"type"`
				} `json:"scaleDistribution"`
				Stacking struct {
					Mode string `json:"mode"`
				} `json:"stacking"`
				ThresholdsStyle struct {
					Mode string `json:"mode"`
				} `json:"thresholdsStyle"`
			} `json:"custom"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Options struct {
		ReduceOptions struct {
			Calcs []string `json:"calcs"`
		} `json:"reduceOptions"`
		YAxis struct {
			Unit string `json:"unit"`
		} `json:"yAxis"`
	} `json:"options"`
	Transformations []struct {
		ID      string `json:"id"`
		Options struct {
			ExcludeByName map[string]bool   `json:"excludeByName"`
			RenameByName  map[string]string `json:"renameByName"`
		} `json:"options"`
	} `json:"transformations"`
}

func parse(text []byte) (Dashboard, error) {
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		return Dashboard{}, err
	}
	d := Dashboard{UID: doc.UID, Title: doc.Title, Description: doc.Description}
	for _, p := range doc.Panels {
		if p.Type == "row" {
			d.Rows = append(d.Rows, Row{Title: p.Title})
			continue
		}
		if len(d.Rows) == 0 {
			return d, fmt.Errorf("panel %q is under no row", p.Title)
		}
		row := &d.Rows[len(d.Rows)-1]
		row.Panels = append(row.Panels, p.panel())
	}
	return d, nil
}

func (p docPanel) panel() Panel {
	f := p.FieldConfig.Defaults
	out := Panel{
		Kind: p.Type, Title: p.Title, Description: p.Description, Unit: f.Unit,
		X: p.GridPos.X, Y: p.GridPos.Y, W: p.GridPos.W, H: p.GridPos.H,
		Steps: f.Thresholds.Steps, Min: f.Min, Max: f.Max, NoValue: f.NoValue,
		Lines:   f.Custom.ThresholdsStyle.Mode != "" && f.Custom.ThresholdsStyle.Mode != "off",
		SoftMax: f.Custom.AxisSoftMax,
		Log:     f.Custom.ScaleDistribution.Type == "log", Stacked: f.Custom.Stacking.Mode == "normal",
	}
	if p.Type == "heatmap" {
		out.Unit = p.Options.YAxis.Unit
	}
	if calcs := p.Options.ReduceOptions.Calcs; len(calcs) > 0 {
		out.Calc = calcs[0]
	}
	for _, t := range p.Transformations {
		if t.ID == "organize" {
			out.Hidden, out.Renamed = t.Options.ExcludeByName, t.Options.RenameByName
		}
	}
	for _, t := range p.Targets {
		out.Targets = append(out.Targets, Target{RefID: t.RefID, Expr: t.Expr, Legend: t.LegendFormat, Instant: t.Instant})
	}
	return out
}
