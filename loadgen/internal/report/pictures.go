package report

import (
	"context"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Picture is one chart of a report. It can be saved as a separate file.
type Picture struct {
	Name  string `json:"name"`  // lower-case words joined by dashes; the page has the chart at #chart-NAME
	Title string `json:"title"` // the title for readers
	// Missing is the reason why there is nothing to draw. Empty means that there is a chart.
	Missing string `json:"missing,omitempty"`

	draw func() []byte
}

// SVG returns the picture as an SVG file that needs no style sheet, font or script. It returns nil if Missing is set.
func (p Picture) SVG() []byte {
	if p.draw == nil {
		return nil
	}
	return p.draw()
}

// Pictures returns the charts of the report of a run, in the order of the report. It leaves out charts of key metrics
// that repeat other charts. The charts show the same data as the page that HTML writes. interval is the time between two
// samples of a series; 0 means the scrape interval of the scenario. Pictures returns an error only if ctx has ended.
func Pictures(ctx context.Context, r result.Result, timeline []result.Event, slots []samples.Slot, scenarioYAML []byte, src chart.Source, interval time.Duration) ([]Picture, error) {
	p := &page{interval: interval}
	p.lay(ctx, r, timeline, slots, scenarioYAML, src)
	if err := ctx.Err(); err != nil {
		return nil, err // some charts would be missing
	}
	overview := Picture{Name: "timeline", Title: "Timeline", draw: p.SVG}
	if len(p.Bands) == 0 {
		overview = Picture{Name: overview.Name, Title: overview.Title, Missing: "No phase was started."}
	}
	all := []Picture{overview}
	falls, _ := waterfalls(rolledOut(r.Measurements.Phases))
	for _, w := range falls {
		all = append(all, Picture{Name: w.Name, Title: "Rollout: " + w.Title, draw: func() []byte { return w.SVG(p.Origin) }})
	}
	for _, s := range p.Sections {
		for _, c := range s.Charts {
			if s.Title == signalsTitle {
				c.Title = "Signal " + c.Title
			}
			all = append(all, Picture{Name: c.Name(), Title: c.Title, draw: func() []byte { return p.ChartSVG(c) }})
		}
	}
	for _, s := range p.Sections {
		for _, c := range s.empty {
			all = append(all, Picture{Name: c.Name(), Title: c.Title, Missing: c.Missing})
		}
	}
	return all, nil
}

func origin(r result.Result) string {
	parts := []string{"Stormglass", runName(r), r.Run.Started.UTC().Format("2006-01-02 15:04 UTC")}
	if v := kubernetesText(r.Run.Versions); v != "" {
		parts = append(parts, "Kubernetes "+v)
	}
	if n := r.Measurements.Nodes; n != nil && n.Count > 0 {
		parts = append(parts, chart.Count(n.Count)+" simulated nodes")
	}
	return strings.Join(parts, " · ")
}
