// Package alerting computes which alerts would have fired during a recorded run. It evaluates the rules over the
// archive with Prometheus' own code (rules.Group.Eval), for times in the recording. It does not change the archive: it
// keeps in memory the series that rules write.
//
// Groups with the same interval are evaluated at the same times, one after another in the order of their files,
// beginning at the archive's first scrape. A Prometheus server gives each group its own offset. So on a server, an
// alert that reads a recording rule of another group may fire up to one interval later. A range that begins before the
// first scrape contains fewer samples.
package alerting

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// defaultEvery is the evaluation interval of groups that set none: the default of Prometheus.
const defaultEvery = time.Minute

// Options configure a replay. The zero value is usable.
type Options struct {
	// Calm is how long the replay may continue after the end of the archive, so that alerts can resolve. It evaluates
	// alerts that fire at the end until they resolve, as if every further scrape repeated the last one. Zero means that
	// the replay ends with the archive.
	Calm time.Duration
	// Hidden lists data that is hidden from the rules.
	Hidden []Hidden
}

// Firing is one period of an alert: from the time at which its condition begins to hold to the time at which the
// condition no longer holds. If the condition holds again later, that is another Firing.
type Firing struct {
	Alert string // the rule's name
	// Labels are the labels of the alert: those in the result of the expression, those in the rule, and alertname.
	Labels  map[string]string
	Summary string  // annotation "summary" when the alert fired; the latest one if it did not fire
	Value   float64 // value of the expression when the alert fired; the latest one if it did not fire
	Pending time.Time
	For     time.Duration // how long the condition must hold before the alert fires
	// Fired is when the alert began to fire. Zero means that the alert was only pending.
	Fired time.Time
	// Resolved is the time of the first evaluation at which the condition no longer held. Zero
	// means that the condition held to the end.
	Resolved time.Time
}

// History is the result of a replay.
type History struct {
	// Start and End are the archive's bounds (archive.Bounds). If Options.Calm is set, evaluations
	// after End repeat the last scrape.
	Start, End time.Time
	// Rounds is the number of group evaluations.
	Rounds int
	// Firings are sorted by rule, and by time within a rule.
	Firings []Firing
	// Failed maps each alert that could not be evaluated to its error, or to the error of a
	// recording rule that the alert depends on.
	Failed map[string]error
	// Written holds the series that the rules wrote: records, ALERTS and ALERTS_FOR_STATE.
	Written storage.Queryable
}

// Of returns the firings of the alerts with the given name, except firings that were only pending.
func (h History) Of(alert string) []Firing {
	var all []Firing
	for _, f := range h.Firings {
		if f.Alert == alert && !f.Fired.IsZero() {
			all = append(all, f)
		}
	}
	return all
}

// During reports whether the alert fired at some time from start to end.
func (f Firing) During(start, end time.Time) bool {
	return !f.Fired.IsZero() && !f.Fired.After(end) && (f.Resolved.IsZero() || f.Resolved.After(start))
}

type replay struct {
	set    Ruleset
	engine *promql.Engine
	opts   Options
	store  *store
	groups []*group
	h      History
}

func newReplay(s Ruleset, engine *promql.Engine, o Options) *replay {
	written := &store{byLabels: map[string]*promql.Series{}, byName: map[string][]*promql.Series{}}
	return &replay{set: s, engine: engine, opts: o, store: written, h: History{Failed: map[string]error{}, Written: written}}
}

type group struct {
	*rules.Group
	next   time.Time
	active map[string]*Firing // pending and firing alerts, by the names and labels of rule and alert
}

// Replay evaluates all rules over an archive, from the start to the end of its bounds. It fails if ctx ends, the
// archive cannot be read or a rule does not parse. History.Failed reports rules that cannot be evaluated.
func (s Ruleset) Replay(ctx context.Context, a *archive.Archive, o Options) (History, error) {
	first, last, err := a.Bounds(ctx)
	if err != nil {
		return History{}, err
	}
	archive, engine := a.Storage()
	r := newReplay(s, engine, o)
	r.h.Start, r.h.End = first, last
	seen := archive
	if len(o.Hidden) > 0 {
		seen = view{inner: archive, hidden: o.Hidden, end: last.UnixMilli()}
	}
	if err := r.load(s, seen, first); err != nil {
		return r.h, err
	}
	if err := r.until(ctx, last); err != nil {
		return r.h, err
	}
	if o.Calm > 0 {
		seen = view{inner: archive, hidden: o.Hidden, end: last.UnixMilli(), step: r.calmStep().Milliseconds()}
		if err := r.calm(ctx, seen, last.Add(o.Calm)); err != nil {
			return r.h, err
		}
	}
	r.record(func(*Firing) bool { return true })
	order := s.Alerts()
	slices.SortStableFunc(r.h.Firings, func(x, y Firing) int {
		return cmp.Or(cmp.Compare(slices.Index(order, x.Alert), slices.Index(order, y.Alert)), x.Pending.Compare(y.Pending),
			labels.Compare(labels.FromMap(x.Labels), labels.FromMap(y.Labels)))
	})
	return r.h, nil
}

// load replaces the rule groups with the groups of s. A group that already exists keeps its state and the time of its
// next evaluation. The first evaluation of a new group is at `from`.
func (r *replay) load(s Ruleset, scraped storage.Queryable, from time.Time) error {
	seen := archive.Merge(scraped, r.store)
	opts := &rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(r.engine, seen), NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Appendable: r.store, Queryable: seen, ExternalURL: &url.URL{}, Logger: slog.New(slog.DiscardHandler), Metrics: rules.NewGroupMetrics(nil),
	}
	before := r.groups
	r.groups = nil
	for _, g := range s {
		made, err := r.group(g, opts)
		if err != nil {
			return err
		}
		made.next = from
		for _, b := range before {
			if b.File() == g.File && b.Name() == g.Name {
				made.CopyState(b.Group)
				made.next, made.active = b.next, b.active
			}
		}
		r.groups = append(r.groups, made)
	}
	return nil
}

func (r *replay) group(g alerts.Group, opts *rules.ManagerOptions) (*group, error) {
	every := cmp.Or(time.Duration(g.Interval), defaultEvery)
	var all []rules.Rule
	for _, x := range g.Rules {
		expr, err := archive.NewParser().ParseExpr(x.Expr)
		if err != nil {
			return nil, fmt.Errorf("%s: %s%s: %w", g.File, x.Record, x.Alert, err)
		}
		set := rules.FromMaps(g.Labels, x.Labels)
		if x.Alert == "" {
			all = append(all, rules.NewRecordingRule(x.Record, expr, set))
			continue
		}
		set = rules.FromMaps(cheapAll(g.Labels), cheapAll(x.Labels))
		summary := labels.FromStrings("summary", cheap(x.Annotations["summary"])) // no other annotation is used
		all = append(all, rules.NewAlertingRule(x.Alert, expr, time.Duration(x.For), time.Duration(x.KeepFiringFor), set,
			summary, labels.EmptyLabels(), "", true, opts.Logger))
	}
	made := rules.NewGroup(rules.GroupOptions{
		Name: g.Name, File: g.File, Interval: every, Limit: g.Limit, Rules: all, Opts: opts, QueryOffset: (*time.Duration)(g.QueryOffset),
	})
	return &group{Group: made, active: map[string]*Firing{}}, nil
}

func (r *replay) until(ctx context.Context, end time.Time) error {
	for {
		at := end.Add(1)
		for _, g := range r.groups {
			if g.next.Before(at) {
				at = g.next
			}
		}
		if at.After(end) {
			return nil
		}
		for _, g := range r.groups {
			if !g.next.Equal(at) {
				continue
			}
			g.next = at.Add(g.Interval())
			r.h.Rounds++
			g.Eval(ctx, at)
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			r.look(g, at)
		}
	}
}

func (r *replay) look(g *group, at time.Time) {
	now := map[string]bool{}
	for _, rule := range g.Rules() {
		if err := rule.LastError(); err != nil {
			r.failed(rule, err)
		}
		alert, ok := rule.(*rules.AlertingRule)
		if !ok {
			continue
		}
		for _, a := range alert.ActiveAlerts() {
			key := fmt.Sprint(rule.Name(), rule.Labels(), a.Labels)
			now[key] = true
			f := g.active[key]
			if f == nil {
				f = &Firing{Alert: rule.Name(), Labels: a.Labels.Map(), Pending: a.ActiveAt, For: alert.HoldDuration()}
				g.active[key] = f
			}
			if f.Fired.IsZero() {
				f.Fired, f.Value, f.Summary = a.FiredAt, a.Value, a.Annotations.Get("summary")
			}
		}
	}
	for key, f := range g.active {
		if !now[key] {
			f.Resolved = at
			r.h.Firings = append(r.h.Firings, *f)
			delete(g.active, key)
		}
	}
}

// failed records an error of a rule for all alerts that depend on the rule.
func (r *replay) failed(rule rules.Rule, err error) {
	if _, ok := rule.(*rules.AlertingRule); ok {
		r.h.Failed[rule.Name()] = err
		return
	}
	for _, alert := range r.set.Alerts() {
		if len(r.set.Only(alert).records(rule.Name())) > 0 && r.h.Failed[alert] == nil {
			r.h.Failed[alert] = fmt.Errorf("record %s: %w", rule.Name(), err)
		}
	}
}

// calm continues to evaluate the alerts that fire at the end of the archive, until all have resolved or until the time
// `end`. Pending alerts stay pending, because later data is unknown.
func (r *replay) calm(ctx context.Context, archive storage.Queryable, end time.Time) error {
	r.record(func(f *Firing) bool { return f.Fired.IsZero() })
	for at := r.h.End; ; at = at.Add(time.Minute) {
		firing := r.firing()
		if len(firing) == 0 || !at.Before(end) {
			break
		}
		if err := r.load(r.set.Only(firing...), archive, at); err != nil {
			return err
		}
		if err := r.until(ctx, at.Add(time.Minute)); err != nil {
			return err
		}
	}
	return nil
}

func (r *replay) firing() []string {
	var all []string
	for _, g := range r.groups {
		for _, f := range g.active {
			if !f.Fired.IsZero() && !slices.Contains(all, f.Alert) {
				all = append(all, f.Alert)
			}
		}
	}
	slices.Sort(all)
	return all
}

// calmStep returns the interval between the repeated scrapes, which is the shortest interval of all groups.
func (r *replay) calmStep() time.Duration {
	step := defaultEvery
	for _, g := range r.groups {
		step = min(step, g.Interval())
	}
	return step
}

// record moves the active firings for which `what` returns true into the history.
func (r *replay) record(what func(*Firing) bool) {
	for _, g := range r.groups {
		for key, f := range g.active {
			if what(f) {
				r.h.Firings = append(r.h.Firings, *f)
				delete(g.active, key)
			}
		}
	}
}
