package report

import (
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// figuresTable returns a table of the figures (values) that the user's own measurement program reported.
func figuresTable(phases []result.Phase) table {
	t := table{Caption: "Custom measurements of the program that ran the scenario", Head: heads("Phase", "Measurement", "Value"), Merged: 1}
	for _, p := range phases {
		for _, c := range p.Custom {
			if c.Error != "" {
				t.add(terminal.Clean(p.Name), terminal.Clean(c.Measurement), "no values: "+terminal.Clean(c.Error))
			}
			for _, f := range c.Figures {
				t.add(terminal.Clean(p.Name), terminal.Clean(c.Measurement+"/"+f.Name), chart.Format(scenario.Unit(f.Unit), f.Value))
			}
		}
	}
	return t
}

func (t *terminalWriter) figures(r result.Result) {
	tab := figuresTable(r.Measurements.Phases)
	tab.Head = heads("CUSTOM MEASUREMENTS", "", "~value")
	if len(tab.Rows) > 0 {
		t.section(&tab)
	}
}
