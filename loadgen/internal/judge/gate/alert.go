package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

type alert struct {
	rules *alerting.Ruleset
	fires bool
	reach alerting.Reach
	known func(metric string) bool
}

// book looks up the alerts of gates, first in extra (the rules given with the gates), then in shipped (Stormglass' own
// rules). Gates share the rulesets, so that replays evaluates each of them only once.
type book struct {
	extra *alerting.Ruleset
	// shipped returns the shipped rules. It reads them at the first call, because most scenarios name no alert.
	shipped func() (*alerting.Ruleset, error)
}

func newBook(extra *alerting.Ruleset) book {
	return book{extra, sync.OnceValues(func() (*alerting.Ruleset, error) {
		shipped, err := alerting.Shipped()
		return &shipped, err
	})}
}

func (b book) rules() ([]*alerting.Ruleset, error) {
	shipped, err := b.shipped()
	return []*alerting.Ruleset{b.extra, shipped}, err
}

// CompileWith is like Compile, but gates may also name alerts of the ruleset extra. Such an alert takes precedence over
// a shipped alert with the same name.
func CompileWith(s *plan.Plan, extra *alerting.Ruleset) ([]Compiled, error) {
	return compileAll(s, newBook(extra))
}

// Quiet returns a gate for each alert in the ruleset. The gate fails if the alert fires in any phase. The result of the
// run lists these alerts. If informs is set, the gates do not affect the verdict of the run.
func Quiet(s *plan.Plan, rules *alerting.Ruleset, informs bool) ([]Compiled, error) {
	b := newBook(rules)
	var all []Compiled
	for _, name := range rules.Alerts() {
		c, err := compile(s, scenario.Gate{Name: name, Alert: name, Fires: new(false)}, "", b)
		if err != nil {
			return nil, err
		}
		c.listed, c.informs = true, informs
		all = append(all, c)
	}
	return all, nil
}

func (c *Compiled) compileAlert(s *plan.Plan, path string, b book) error {
	all, err := b.rules()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(rules *alerting.Ruleset) bool { return len(rules.Find(c.Alert)) > 0 })
	if at < 0 {
		var known []string
		for _, rules := range all {
			known = append(known, rules.Alerts()...)
		}
		hint := "docs/reference/alerts.md lists them; to use your own rules, run `loadgen gate --rules` or `loadgen run --abort-rules`"
		return s.Errorf(path+".alert", strictyaml.Hint(c.Alert, known, hint), "unknown alert %q", c.Alert)
	}
	rules := all[at]
	c.alert = &alert{rules: rules, fires: *c.Fires, reach: rules.Reach(c.Alert), known: alerting.Known(s.Record.Drop)}
	c.op = "<="
	if c.alert.fires {
		c.op, c.bound = ">=", 1
	}
	var exprs []string
	for _, r := range rules.Find(c.Alert) {
		exprs = append(exprs, strings.TrimSpace(r.Expr))
	}
	c.objective = Objective{Name: "alert", Unit: scenario.Count, Expr: strings.Join(exprs, "\n")}
	c.reads = rules.Reads(c.Alert)
	for _, selector := range c.reads {
		if jobs := alerting.JobsOf(selector); len(jobs) == 1 && !slices.Contains(c.objective.Needs, jobs[0]) {
			c.objective.Needs = append(c.objective.Needs, jobs[0])
		}
	}
	return nil
}

// replays evaluates each ruleset once over the archive, only for alerts that gates name. It returns the results by
// ruleset. Without an archive, the map is empty.
func replays(ctx context.Context, gates []Compiled, a *archive.Archive) (map[*alerting.Ruleset]alerting.History, error) {
	names := map[*alerting.Ruleset][]string{}
	for _, c := range gates {
		if c.alert != nil {
			names[c.alert.rules] = append(names[c.alert.rules], c.Alert)
		}
	}
	all := map[*alerting.Ruleset]alerting.History{}
	if a == nil {
		return all, nil
	}
	for rules, named := range names {
		h, err := rules.Only(named...).Replay(ctx, a, alerting.Options{})
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if err != nil { // for example because the archive has no scrapes
			h.Failed = map[string]error{}
			for _, name := range named {
				h.Failed[name] = err
			}
		}
		all[rules] = h
	}
	return all, nil
}

// alertFinding counts how often the gate's alert fired during the phases that the gate covers.
func (c Compiled) alertFinding(ctx context.Context, a *archive.Archive, h alerting.History, phases map[string]result.Phase) (finding, error) {
	windows := c.windows(phases)
	f := finding{summed: true} // the count may be too low if data is missing
	if a == nil {
		f.readings = []reading{{missing: "there is no archive of metrics"}}
		return f, nil
	}
	total := reading{of: c.Alert, detail: fmt.Sprintf("did not fire in %s%s", strings.Join(c.Over, ", "), pending(h, c.Alert))}
	var lives []string
	for _, life := range h.Of(c.Alert) {
		i := slices.IndexFunc(windows, func(w window) bool { return w.missing == "" && life.During(w.start, w.end) })
		if i >= 0 {
			total.value++
			lives = append(lives, describeFiring(life, windows[i], h.End)+c.lookedBack(life, phases))
		}
	}
	f.readings = []reading{total}
	if len(lives) > 0 {
		f.readings[0].detail = strings.Join(lives, "; ")
		return f, nil // the alert fired, so missing data does not matter
	}
	why, notes, err := c.silenceDoubts(ctx, a, h, windows)
	if err != nil {
		return f, err
	}
	f.readings[0].detail = withNotes(f.readings[0].detail, notes)
	f.readings = append(f.readings, why...)
	return f, nil
}

func describeFiring(f alerting.Firing, w window, end time.Time) string {
	when := fmt.Sprintf("fired %s after the start of %s", span(f.Fired.Sub(w.start)), w.name)
	if f.Fired.Before(w.start) {
		when = "fired before " + w.name
	}
	length := fmt.Sprintf("and was still firing at the end of the run, %s later", span(end.Sub(f.Fired)))
	switch {
	case f.Resolved.IsZero():
	case f.Fired.Before(w.start):
		length = "and was still firing, for " + span(f.Resolved.Sub(f.Fired))
	default:
		length = "for " + span(f.Resolved.Sub(f.Fired))
	}
	text := when + ", " + length
	if f.Summary != "" {
		text += ": " + f.Summary
	}
	return text
}

// lookedBack describes the time range of the data that the rule read when its alert fired: its length, and the phase in
// which the range began. The cause can be anywhere in this range, and may be over when the alert fires. lookedBack
// returns "" if the rule reads no earlier data.
func (c Compiled) lookedBack(f alerting.Firing, phases map[string]result.Phase) string {
	back := c.alert.rules.Hindsight(c.Alert).Whole()
	if back == 0 {
		return ""
	}
	from, in := f.Fired.Add(-back), ", before the first phase"
	for _, name := range c.order {
		if p, reached := phases[name]; reached && !from.Before(p.Start) {
			in = ", in " + name
		}
	}
	return fmt.Sprintf(" (fired at %s; its rules look back %s, to %s%s)", clock(f.Fired), span(back), clock(from), in)
}

func clock(t time.Time) string { return t.UTC().Format(time.TimeOnly) }

func pending(h alerting.History, name string) string {
	for _, f := range h.Firings {
		if f.Alert != name || !f.Fired.IsZero() {
			continue
		}
		if f.Resolved.IsZero() {
			return ", but was pending (not yet firing) at the end of the run"
		}
		return fmt.Sprintf(", but was pending for %s", show("seconds", f.Resolved.Sub(f.Pending).Seconds()))
	}
	return ""
}

func span(d time.Duration) string { return show("seconds", d.Seconds()) }

// silenceDoubts returns the reasons, such as lost scrapes, why an alert that did not fire might have fired with
// complete data. It also returns notes on the data.
func (c Compiled) silenceDoubts(ctx context.Context, a *archive.Archive, h alerting.History, windows []window) (why []reading, notes []string, err error) {
	for _, w := range windows {
		if w.missing != "" {
			why = append(why, reading{missing: w.missing})
		}
	}
	if err := h.Failed[c.Alert]; err != nil {
		return append(why, reading{missing: fmt.Sprintf("%s cannot be evaluated: %v", c.Alert, err)}), nil, nil
	}
	s, err := c.alert.rules.Look(ctx, a, c.Alert, c.alert.known)
	if err != nil {
		return nil, nil, err
	}
	if s.Blind != "" {
		return append(why, reading{missing: s.Blind}), nil, nil
	}
	if len(s.Unborn) > 0 {
		notes = append(notes, strings.Join(s.Unborn, ", ")+" had no series yet")
	}
	why = append(why, c.late(h.Start, windows)...)
	for _, w := range windows {
		if w.missing != "" {
			continue
		}
		var targets []fitness
		for _, instance := range s.Instances {
			t, err := c.fit(ctx, a, w, instance, func(gap stretch) bool { return c.harmless(gap, h) })
			if err != nil {
				return nil, nil, err
			}
			if t.why != "" {
				why = append(why, reading{missing: t.why})
				continue
			}
			targets = append(targets, t)
		}
		lost, more, _ := gapEach.gaps(targets, w.name)
		if notes = append(append(notes, lostNotes(targets, w.name)...), more...); lost != "" {
			why = append(why, reading{missing: lost})
		}
	}
	return why, notes, nil
}

// harmless reports whether a lost scrape cannot be the reason why the alert did not fire. This is so if each range that
// the alert reads still contains two samples, and the alert did not stop being pending in the gap. gap is the time from
// the scrape before the lost one to the scrape after it.
func (c Compiled) harmless(gap stretch, h alerting.History) bool {
	between := gap.to.Sub(gap.from) // between the scrapes before and after: two intervals
	if shortest := c.alert.rules.Hindsight(c.Alert).Shortest; shortest > 0 && 2*shortest < 3*between {
		return false
	}
	return !slices.ContainsFunc(h.Firings, func(f alerting.Firing) bool {
		// A pending alert might have fired if its condition stopped holding only because its series were missing.
		return f.Alert == c.Alert && f.Fired.IsZero() && !f.Resolved.IsZero() && f.Pending.Before(gap.to) && f.Resolved.After(gap.from) && !f.Resolved.After(gap.to)
	})
}

// late returns the reasons why an alert could not fire in the windows: a window ends too early, or contains no
// evaluation of the alert. `first` is the time of the first evaluation.
func (c Compiled) late(first time.Time, windows []window) (why []reading) {
	tooShort := func(format string, args ...any) {
		why = append(why, reading{missing: fmt.Sprintf(format, args...), short: true})
	}
	r := c.alert.reach
	if n := len(windows); n > 0 && windows[n-1].missing == "" && !r.Fires(first, windows[n-1].end) {
		var needs []string
		if r.For > 0 {
			needs = append(needs, "its for field is "+span(r.For))
		}
		if r.Back > 0 {
			needs = append(needs, "its expression reads the last "+span(r.Back))
		}
		tooShort("%s cannot fire within %s: %s", c.Alert, span(windows[n-1].end.Sub(first)), strings.Join(needs, ", and "))
	}
	for _, w := range c.stretches(windows) {
		if !r.Looks(first, w.start, w.end) {
			tooShort("%s was not evaluated in %s: it is evaluated every %s (set interval: in its group and in the groups of the records that it reads)", c.Alert, w.name, span(r.Every))
		}
	}
	return why
}

// stretches merges the windows of consecutive phases into one, and skips windows without data.
func (c Compiled) stretches(windows []window) (all []window) {
	last := -2 // index of the previous phase
	for _, w := range windows {
		at := slices.Index(c.order, w.name)
		switch {
		case w.missing != "":
			continue
		case at == last+1:
			all[len(all)-1].extend(w)
		default:
			all = append(all, w)
		}
		last = at
	}
	return all
}
