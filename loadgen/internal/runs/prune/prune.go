// Package prune removes recorded runs from folders, or reduces them to their results.
//
// Scan finds the runs, Plan decides, and Apply carries out the decisions. A comparison or a search with its runs is one
// unit. A unit is removed only if the program wrote everything in it and no process uses it.
package prune

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Criteria select runs. A run must meet all criteria that are set.
type Criteria struct {
	OlderThan time.Duration     // minimum age; 0: any
	Keep      int               // number of newest selected units to keep for each kind and scenario; 0: none
	MaxSize   int64             // maximum size of the units in a folder, in bytes: remove the oldest until they fit; 0: no limit
	Verdicts  []string          // the unit must have one of these verdicts; nil: any
	Labels    map[string]string // the unit must have all these labels
	Reduce    bool              // whether to reduce the runs to their results instead of removing them
	// Downsample is the interval to which the metrics of the runs are downsampled, instead of removing the runs; 0: do
	// not downsample.
	Downsample time.Duration
}

// Empty reports whether no criterion is set.
func (c Criteria) Empty() bool {
	return c.OlderThan == 0 && c.Keep == 0 && c.MaxSize == 0 && len(c.Verdicts) == 0 && len(c.Labels) == 0
}

// Action is what prune does with an entry of a folder.
type Action string

// The values of Action.
const (
	Remove     Action = "remove"
	Reduce     Action = "reduce"
	Downsample Action = "downsample"
	Resume     Action = "resume" // finish or undo what an interrupted prune began
	Keep       Action = "keep"
	LeaveAlone Action = "leave alone" // the entry is not a run, or must not be removed now
)

// Decision is the action for one entry of a folder, and the reason.
type Decision struct {
	Found
	Action Action `json:"action"`
	Why    string `json:"why"`
	Frees  int64  `json:"freesBytes"` // bytes that the action frees; before Apply, the maximum if the action is Downsample or Resume
	Coarse bool   `json:"-"`          // whether the entry is kept because its metrics are already downsampled enough

	interval time.Duration // interval of the action Downsample
}

// Plan decides what to do with each entry of the folders. In each folder, the decisions begin with the remains of an
// interrupted prune; the units follow, the oldest first.
func Plan(all []Found, c Criteria, now time.Time) []Decision {
	p := planner{Criteria: c, now: now, total: map[string]int64{}}
	decisions := make([]Decision, 0, len(all))
	for _, f := range all {
		decisions = append(decisions, p.start(f))
	}
	slices.SortStableFunc(decisions, func(a, b Decision) int {
		return cmp.Or(cmp.Compare(a.Folder, b.Folder), a.Started.Compare(b.Started), cmp.Compare(a.Name, b.Name))
	})
	newest := map[string]int{}
	for i := len(decisions) - 1; i >= 0; i-- {
		if d := &decisions[i]; c.Keep > 0 && d.Action == p.action() && d.Kind != Rest {
			key := strings.Join([]string{d.Folder, string(d.Kind), d.Scenario}, "\x00")
			if newest[key]++; newest[key] <= c.Keep {
				*d = kept(d.Found, fmt.Sprintf("among the newest %d of %s", c.Keep, d.Scenario))
			}
		}
	}
	for i := range decisions {
		d := &decisions[i]
		if d.Action == p.action() && d.Kind != Rest {
			p.finish(d)
		}
		if d.Action == Keep && d.unfinished() {
			*d = Decision{Found: d.Found, Action: Resume, Why: "an interrupted prune left it", Frees: d.frees(0)}
		}
	}
	return decisions
}

// planner decides about one entry after the other.
type planner struct {
	Criteria
	now   time.Time
	total map[string]int64 // size of the units of each folder
}

func (p *planner) action() Action {
	switch {
	case p.Reduce:
		return Reduce
	case p.Downsample > 0:
		return Downsample
	}
	return Remove
}

// start applies the criteria that do not depend on other entries.
func (p *planner) start(f Found) Decision {
	if f.Kind != Rest {
		p.total[f.Folder] += f.Bytes
	}
	switch {
	case f.Alone != "":
		return Decision{Found: f, Action: LeaveAlone, Why: f.Alone}
	case f.Kind == Rest:
		return Decision{Found: f, Action: Remove, Why: "an interrupted prune left it", Frees: f.Bytes}
	case p.OlderThan > 0 && p.now.Sub(f.Started) <= p.OlderThan:
		return kept(f, "not older than "+age(p.OlderThan))
	case len(p.Verdicts) > 0 && !slices.ContainsFunc(p.Verdicts, func(v string) bool { return slices.Contains(f.Verdicts, v) }):
		return kept(f, "verdict "+strings.Join(f.Verdicts, ", "))
	case p.action() != Remove && f.frees(p.Downsample) == 0:
		return done(f, p.Downsample)
	}
	for name, value := range p.Labels {
		if f.Labels[name] != value {
			return kept(f, "does not have the label "+name+"="+value)
		}
	}
	d := Decision{Found: f, Action: p.action(), Frees: f.Bytes, interval: p.Downsample}
	if d.Action != Remove {
		d.Frees = f.frees(p.Downsample)
	}
	return d
}

// finish applies Criteria.MaxSize to a decision to remove an entry, and states the reason.
func (p *planner) finish(d *Decision) {
	total := p.total[d.Folder]
	if p.MaxSize > 0 && total <= p.MaxSize {
		*d = kept(d.Found, "the runs fit in "+Size(p.MaxSize))
		return
	}
	p.total[d.Folder] -= d.Frees
	var why []string
	if p.OlderThan > 0 {
		why = append(why, "older than "+age(p.OlderThan))
	}
	if p.Keep > 0 {
		why = append(why, fmt.Sprintf("not among the newest %d of %s", p.Keep, d.Scenario))
	}
	if p.MaxSize > 0 {
		why = append(why, fmt.Sprintf("the runs take %s, more than %s", Size(total), Size(p.MaxSize)))
	}
	if len(p.Verdicts) > 0 {
		why = append(why, "verdict "+strings.Join(d.Verdicts, ", "))
	}
	if len(p.Labels) > 0 {
		why = append(why, "has the labels")
	}
	d.Why = strings.Join(why, "; ")
}

func kept(f Found, why string) Decision { return Decision{Found: f, Action: Keep, Why: why} }

// done returns the decision to keep a unit in which there is nothing to reduce. If the interval is not 0, there is
// nothing to downsample: the metrics already have at most one sample per interval.
func done(f Found, interval time.Duration) Decision {
	if interval == 0 || len(f.runs) == 0 {
		return kept(f, "nothing to reduce")
	}
	return Decision{Found: f, Action: Keep, Why: "its metrics already have at most one sample per " + age(interval), Coarse: true}
}

// Size formats a number of bytes, such as 1.5 GB.
func Size(bytes int64) string { return chart.Format(scenario.Size, float64(bytes)) }

func age(d time.Duration) string { return model.Duration(d).String() }
