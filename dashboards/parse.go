package dashboards

import (
	"encoding/json"
	"fmt"
)

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
