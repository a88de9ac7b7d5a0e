// Package diagnosis finds the causes of a disturbance of a control plane from metrics alone. It reads neither the
// timeline nor the scenario of a run, so it works in the same way on the Prometheus server of any cluster and on the
// archive of a run.
//
// A signal is a metric of a component. It deviates if it differs from its values in a time without the problem, called
// the comparison period, or if it breaks an objective. A symptom is a deviation that clients or users of the cluster
// notice. A mechanism is a known way of failing. It fires if certain signals deviate together; these deviations are its
// evidence. A mechanism is a consequence of another one if the other one explains all of its evidence. Any other
// mechanism that fires is a cause. A diagnosis also lists the symptoms that no cause explains.
package diagnosis

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Source evaluates PromQL over a range: the archive of a run, or a Prometheus server.
type Source interface {
	Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]archive.Series, error)
}

// Options configures a diagnosis.
type Options struct {
	// From and To bound the recorded data.
	From, To time.Time
	// Cut means that the run was killed or is still in progress, so that the data ends in the middle of a phase.
	Cut bool
	// Calm is the comparison period: the time without the problem. Zero means the first quarter of the data, but at
	// most a minute.
	Calm result.Span
	// CalmByDefault means that Calm is a default that the user did not choose. As for a zero Calm, Diagnose shortens
	// the comparison period so that it contains no sign of a cause.
	CalmByDefault bool
	// Under is the time to diagnose. Zero means all the time after Calm.
	Under result.Span
	// Step is the scrape interval. Zero means that Diagnose detects it.
	Step time.Duration
	// Failed holds the gates of the run that failed.
	Failed []FailedGate
	// NoData holds the names of the gates of the run that have no data. If there are any, the diagnosis is not
	// "healthy".
	NoData []string
	// Exits describes the exits of components that no fault of the run explains. The diagnosis only repeats these
	// descriptions; its answer and its causes do not depend on them.
	Exits []string
	// Reference is the archive of a run to compare with instead of a comparison period, or nil.
	Reference *archive.Archive
}

// FailedGate is a gate that failed. It counts as a symptom, because the user chose its bound.
type FailedGate struct {
	Name, Detail string
	// Slow means that the gate bounds a latency or a duration, which a busy machine lengthens.
	Slow bool
	// Broken holds the times at which the gate broke its bound. Empty means the whole time from the start of the
	// comparison period to the end of the diagnosed time.
	Broken []result.Span
}

const (
	// The default comparison period is the first 1/calmShare of the recorded time, but at most calmMost.
	calmShare = 4
	calmMost  = time.Minute
	// minScrapes is the minimum number of scrapes in the comparison period and in the diagnosed time.
	minScrapes = 3
)

// complete sets the defaults of the options. doubts contains reasons why there are no values to compare with. complete
// fails if there is too little data to diagnose.
func (o *Options) complete() (doubts []string, err error) {
	cut := false
	if o.Calm == (result.Span{}) {
		all := o.To.Sub(o.From)
		quarter := min(all/calmShare, calmMost)
		if least := (minScrapes - 1) * o.Step; least <= all/2 { // a short run needs a larger part
			quarter = max(quarter, least)
		}
		o.Calm = result.Span{From: o.From, To: o.From.Add(quarter)}
		if cut = o.Under != (result.Span{}) && o.Calm.To.After(o.Under.From); cut {
			o.Calm.To = o.Under.From
		}
	}
	if o.Under == (result.Span{}) {
		o.Under = result.Span{From: o.Calm.To, To: o.To}
	}
	for _, s := range []struct {
		name string
		span result.Span
	}{{"comparison period", o.Calm}, {"diagnosed time", o.Under}} {
		if s.span.To.Before(s.span.From) && !cut {
			return nil, tooLittle(fmt.Sprintf("the %s is after the recorded data, which ends at %s UTC", s.name, o.To.UTC().Format(time.DateTime)))
		}
	}
	if o.tooShort(o.Under) {
		return nil, tooLittle(fmt.Sprintf("the diagnosed time of %s is too short: it must contain at least %d scrapes, one every %s", o.Under.To.Sub(o.Under.From).Round(time.Second), minScrapes, o.Step))
	}
	switch {
	case cut && o.tooShort(o.Calm):
		doubts = append(doubts, fmt.Sprintf("fewer than %d scrapes were recorded before the diagnosed time, so there is nothing to compare with (choose a comparison period with --comparison-period)", minScrapes))
	case o.tooShort(o.Calm):
		doubts = append(doubts, fmt.Sprintf("the comparison period of %s is too short: it must contain at least %d scrapes, one every %s", o.Calm.To.Sub(o.Calm.From).Round(time.Second), minScrapes, o.Step))
	}
	return doubts, nil
}

// tooShort reports whether the time range t has fewer than minScrapes scrapes.
func (o *Options) tooShort(t result.Span) bool { return t.To.Sub(t.From) < (minScrapes-1)*o.Step }

// Diagnose finds the causes of the symptoms in the time o.Under. It fails if there is too little data in that time.
// Without data in the comparison period, it compares signals only with their objectives and fixed bounds, and adds a
// doubt.
func Diagnose(ctx context.Context, source Source, o Options) (d result.Diagnosis, err error) {
	if o.Step == 0 {
		until := o.To
		if until.IsZero() || !o.Under.To.IsZero() {
			until = o.Under.To
		}
		if o.Step, err = Interval(ctx, source, until); err != nil {
			return d, err
		}
	}
	chosen, follows := o.Calm == result.Span{} || o.CalmByDefault, o.Under == result.Span{}
	doubts, err := o.complete()
	if err != nil {
		return d, err
	}
	all, err := read(ctx, source, o)
	if err != nil {
		return d, err
	}
	switch {
	case len(all) == 0:
		return d, Nothing
	case !slices.ContainsFunc(all, series.ofAPIServer):
		return d, NoAPIServer
	case !slices.ContainsFunc(all, func(s series) bool { return isAPIServer(s.component) && s.within(o.Under) }):
		return d, tooLittle("no metrics of kube-apiserver were recorded in the time to diagnose")
	}
	if chosen && len(doubts) == 0 {
		o.settle(known, all, follows)
	}
	if len(doubts) == 0 {
		doubts = o.incomparable(all)
	}
	markNew(all, o.Calm)
	d = reason(known, all, o)
	d.Schema, d.Calm, d.Under, d.Lacked = result.DiagnosisSchema, o.Calm, o.Under, lacked(known, all, o)
	d.Doubts, d.Exits = append(doubts, d.Doubts...), o.Exits
	if len(d.Lacked) > 0 {
		d.Doubts = append(d.Doubts, fmt.Sprintf("%d of %d signals have no data", len(d.Lacked), len(known.Signals)))
	}
	if len(o.NoData) > 0 {
		d.Doubts = append(d.Doubts, "gates without data: "+strings.Join(o.NoData, ", "))
	}
	if d.Answer == result.Healthy && len(d.Doubts) > 0 {
		d.Answer = result.CannotTell
	}
	d.Machine, err = machineUse(ctx, source, o)
	return d, err
}

// window returns the range of rates: two scrape intervals.
func (o *Options) window() time.Duration { return 2*o.Step + time.Millisecond }

// incomparable returns the reasons why the comparison period has no values to compare with, or nil if it has such
// values.
func (o *Options) incomparable(all []series) (doubts []string) {
	switch {
	case o.tooShort(o.Calm):
		return []string{fmt.Sprintf("the comparison period has fewer than %d scrapes with data (choose another one with --comparison-period)", minScrapes)}
	case !slices.ContainsFunc(all, func(s series) bool { return s.ofAPIServer() && s.within(o.Calm) }):
		return []string{"no metrics of kube-apiserver were recorded in the comparison period"}
	case !haveCommonAPIServer(all, *o):
		return []string{"no kube-apiserver has metrics in both the comparison period and the diagnosed time, so nothing can be compared (choose another comparison period with --comparison-period)"}
	}
	return nil
}

// haveCommonAPIServer reports whether at least one API server was scraped in both the comparison period and the
// diagnosed time.
func haveCommonAPIServer(all []series, o Options) bool {
	return slices.ContainsFunc(all, func(calm series) bool {
		return calm.ofAPIServer() && calm.within(o.Calm) && slices.ContainsFunc(all, func(under series) bool {
			return under.component == calm.component && under.within(o.Under)
		})
	})
}

// minCalm is the minimum length to which leaveOut may shorten a comparison period.
const minCalm = 5 * time.Minute

// settle ends the comparison period before the first sign of a cause in it. To find such signs, it compares the second
// half of the period with the first half or, if CalmByDefault is set, the last three quarters with the first quarter.
// With CalmByDefault, it also moves the start of the period to the first data, or to the end of a disturbance that is
// over. If follows is set, settle makes the diagnosed time begin at the end of the comparison period.
func (o *Options) settle(known catalogue, all []series, follows bool) {
	signs := known.signs()
	part := time.Duration(2)
	if o.CalmByDefault { // a quarter of an hour is enough for a comparison
		part, o.Calm.From = 4, firstOf(all, o.Calm)
	}
	least := o.Calm.From.Add((minScrapes - 1) * o.Step)
	half := o.Calm.From.Add(o.Calm.To.Sub(o.Calm.From) / part)
	end := o.Calm.To
	var over []episode
	// cut ends the comparison period before the episode e. If e has already ended, cut adds it to over instead.
	cut := func(e episode) {
		if o.CalmByDefault && e.last.Before(o.Calm.To.Add(-2*o.Step)) {
			over = append(over, e)
		} else if signs[e.signal] && !e.began.Before(least) && e.began.Before(end) {
			end = e.began
		}
	}
	for _, e := range episodesOf(all, starvationOf(all), Options{Calm: result.Span{From: o.Calm.From, To: half}, Under: result.Span{From: least, To: o.Calm.To}, Step: o.Step}, 1) {
		if e.signal.Event || !half.Before(least) && !e.began.Before(half.Add(-o.Step)) {
			cut(e)
		}
	}
	if o.CalmByDefault {
		bounded := slices.DeleteFunc(slices.Clone(all), func(s series) bool { return s.signal.Over == nil })
		for _, e := range episodesOf(bounded, nil, Options{Under: o.Calm, Step: o.Step}, 1) { // compare only with fixed bounds
			cut(e)
		}
	}
	if follows {
		o.Under.From = end
	}
	o.Calm.To = end
	for _, e := range over {
		if signs[e.signal] {
			o.leaveOut(e)
		}
	}
}

// leaveOut moves the start of the comparison period to the end of the episode e, if a comparison period of at least
// minCalm remains.
func (o *Options) leaveOut(e episode) {
	if over := e.last.Add(2 * o.Step); over.After(o.Calm.From) && !over.Add(minCalm).After(o.Calm.To) {
		o.Calm.From = over
	}
}

// firstOf returns the time of the first data of an API server in the time range t, or the end of t if there is no data.
func firstOf(all []series, t result.Span) time.Time {
	first := t.To
	for _, s := range all {
		for _, p := range s.points {
			if s.ofAPIServer() && finite(p.V) && !p.T.Before(t.From) && p.T.Before(first) {
				first = p.T
			}
		}
	}
	return first
}

// lacked returns the names of the signals without data in the diagnosed time. It also returns signals that are compared
// with the comparison period and have no data there. Without a load generator, it skips the generator's signals.
func lacked(known catalogue, all []series, o Options) (names []string) {
	generates := slices.ContainsFunc(all, func(s series) bool { return s.component == generator })
	for _, s := range known.Signals {
		if s.Part || !generates && strings.Contains(s.Expr, "stormglass_") {
			continue
		}
		if !isComparable(all, &s, o) && (s.Source == "" || !recorded(all, s.Source, o.Under)) {
			names = append(names, s.Name)
		}
	}
	return names
}

// generator is the component name of the load generator.
const generator = "loadgen"

// isComparable reports whether a component has data of a signal in the diagnosed time. If the signal is compared with
// the comparison period, that component must also have data there.
func isComparable(all []series, s *signal, o Options) bool {
	compared := s.Over == nil && s.Source == ""
	return slices.ContainsFunc(all, func(one series) bool {
		return one.signal.Name == s.Name && one.within(o.Under) && (!compared || one.within(o.Calm))
	})
}

// recorded reports whether a signal has data in the time range t.
func recorded(all []series, name string, t result.Span) bool {
	return slices.ContainsFunc(all, func(s series) bool { return s.signal.Name == name && s.within(t) })
}

// series is a signal of one component.
type series struct {
	signal    *signal
	component string
	points    []archive.Point
	// fresh means that the process was not scraped in the comparison period.
	fresh bool
}

// ofAPIServer reports whether an API server exposed the series.
func (s series) ofAPIServer() bool { return isAPIServer(s.component) && !s.signal.Scraper }

// within reports whether the series has data in the time range t.
func (s series) within(t result.Span) bool {
	return slices.ContainsFunc(s.points, func(p archive.Point) bool { return finite(p.V) && !p.T.Before(t.From) && !p.T.After(t.To) })
}

// finite reports whether a value counts as data. NaN and infinities do not count: they come from ratios with the
// denominator 0.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// markNew sets fresh in each series of a process that was not scraped in the comparison period.
func markNew(all []series, calm result.Span) {
	known := map[string]bool{}
	for _, s := range all {
		known[s.component] = known[s.component] || s.within(calm)
	}
	for i := range all {
		all[i].fresh = all[i].signal.Component == model.InstanceLabel && !known[all[i].component]
	}
}

// apart is the minimum gap between the comparison period and the diagnosed time at which the function read queries the
// two separately.
const apart = time.Hour

func read(ctx context.Context, source Source, o Options) (all []series, err error) {
	spans := []result.Span{o.Calm, o.Under}
	if o.Under.From.Before(o.Calm.From) {
		slices.Reverse(spans)
	}
	if spans[1].From.Sub(spans[0].To) < apart {
		spans = []result.Span{{From: spans[0].From, To: spans[1].To}}
		if o.Calm.To.After(spans[0].To) {
			spans[0].To = o.Calm.To
		}
	}
	for i := range known.Signals {
		s := &known.Signals[i]
		at := len(all)
		for _, span := range spans {
			found, err := source.Range(ctx, s.query(o.window()), span.From, span.To, o.Step)
			if err != nil {
				return nil, fmt.Errorf("signal %s: %w", s.Name, err)
			}
			for _, one := range found {
				all = add(all, at, series{signal: s, component: componentOf(one, s), points: one.Points})
			}
		}
	}
	return slices.DeleteFunc(all, series.empty), nil
}

func (s series) empty() bool {
	return !slices.ContainsFunc(s.points, func(p archive.Point) bool { return finite(p.V) })
}

// add adds the series `one` to `all`. If a series in all[at:] has the same component and ends earlier, add appends the
// points of `one` to that series.
func add(all []series, at int, one series) []series {
	if len(one.points) == 0 {
		return all
	}
	for i := at; i < len(all); i++ {
		if same := &all[i]; same.component == one.component && same.points[len(same.points)-1].T.Before(one.points[0].T) {
			same.points = append(same.points, one.points...)
			return all
		}
	}
	return append(all, one)
}

// componentOf returns the name of the component of a series, which is the value of the label in signal.Component. An
// instance whose name does not begin with the name of its job, such as 10.0.0.7:6443, gets the job as a prefix:
// "kube-apiserver 10.0.0.7:6443".
func componentOf(s archive.Series, of *signal) string {
	// In the label of a zone, the value is "region:\x00:zone-0", or ":\x00:zone-0" without a region.
	name := strings.ReplaceAll(strings.Trim(s.Labels[of.Component], ": \x00"), ":\x00:", "/")
	if job := s.Labels[model.JobLabel]; of.Component == model.InstanceLabel && !strings.HasPrefix(name, job) {
		return job + " " + name
	}
	return name
}

// tooLittle is the error for a time range with too few samples.
type tooLittle string

func (e tooLittle) Error() string { return result.CannotTell + ": " + string(e) }

// Unjudged returns true, because the error means missing data. The program then ends with exit code 3.
func (e tooLittle) Unjudged() bool { return true }

// Nothing is the error for a time range without any metrics.
const Nothing = tooLittle("no component's metrics were recorded in that time")

// NoAPIServer is the error for a time range without metrics of an API server, in which the absence of deviations would
// prove nothing.
const NoAPIServer = tooLittle("no metrics of kube-apiserver were recorded in that time")
