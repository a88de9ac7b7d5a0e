package report

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Live holds the texts and gates that the page of a run in progress shows in addition to the data of the run.
type Live struct {
	Word     string // the state of the run, such as "running" or "paused"
	Headline string
	Gates    []result.Gate // the gates of the run, without values
	Starting bool          // whether nothing is recorded yet, so that there are no charts
	// Remote means that another process executes the run. The page then has no buttons and does not update itself.
	Remote bool
}

// pending is the verdict of a gate that has not been judged yet.
const pending result.Verdict = "pending"

// liveSections returns the sections of the page that need no verdict and are cheap to render.
func liveSections() []section {
	return slices.DeleteFunc(sections(), func(s section) bool { return !slices.Contains([]string{"gates", "tracks", "charts"}, s.name) })
}

// LiveHTML writes the page of a run in progress: report.html without a verdict. Unless l.Remote is set, a script on the
// page asks the server repeatedly for the state of the run and for a newer page. r holds the data of the run so far.
// r.Run.Ended is the time at which the page was made.
func LiveHTML(ctx context.Context, w io.Writer, r result.Result, timeline []result.Event, slots []samples.Slot, scenarioYAML []byte, src chart.Source, l Live) error {
	r.Verdict, r.Gates = pending, slices.Clone(l.Gates)
	for i := range r.Gates {
		r.Gates[i].Verdict = pending
	}
	p := &page{live: true, steered: !l.Remote, bare: l.Starting}
	p.lay(ctx, r, timeline, slots, scenarioYAML, src)
	p.Word, p.Headline = word(result.Verdict(l.Word)), terminal.Clean(l.Headline)
	p.Title = fmt.Sprintf("%s: %s", p.Word, p.Scenario)
	p.Facts = slices.DeleteFunc(p.Facts, func(f fact) bool { return f.Name == exitFact })
	all := liveSections()
	if l.Starting {
		all = nil
	}
	return p.write(ctx, w, all)
}

// Live reports whether the run is in progress.
func (p *page) Live() bool { return p.live }

// Steered reports whether the page has buttons to control the run.
func (p *page) Steered() bool { return p.steered }
