package report

import (
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// figureRows returns a row for each figure (value) that the user's own measurement program reported: phase, name and
// value.
func figureRows(phases []result.Phase) [][]string {
	var rows [][]string
	for _, p := range phases {
		for _, c := range p.Custom {
			if c.Error != "" {
				rows = append(rows, []string{terminal.Clean(p.Name), terminal.Clean(c.Measurement), "no values: " + terminal.Clean(c.Error)})
			}
			for _, f := range c.Figures {
				rows = append(rows, []string{terminal.Clean(p.Name), terminal.Clean(c.Measurement + "/" + f.Name), chart.Format(scenario.Unit(f.Unit), f.Value)})
			}
		}
	}
	return rows
}

func figuresTable(phases []result.Phase) tableView {
	return tableView{Caption: "Custom measurements of the program that ran the scenario", Head: heads("Phase", "Measurement", "Value"), Rows: figureRows(phases), Merged: 1}
}

func (t *terminalWriter) figures(r result.Result) {
	rows := figureRows(r.Measurements.Phases)
	if len(rows) == 0 {
		return
	}
	tab := &table{align: "llf"}
	tab.add(styled("head", "CUSTOM MEASUREMENTS", "", "value")...)
	for _, row := range rows {
		tab.add(plain(row...)...)
	}
	t.section(tab)
}
