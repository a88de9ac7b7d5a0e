package gate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Stop is a compiled condition that ends a run early.
type Stop struct {
	*scenario.Abort
	// Every is the scrape interval, which determines the range of the rates in limits.
	Every time.Duration

	compiled Compiled // the condition, unless it is a limit
	limit    *Limit   // the limit; nil if the condition is a gate, an alert or an expression
	over     []string // the phases in which the condition applies
	follower *alerting.Follower

	since time.Time // when the condition began to hold; zero if it does not hold
	// Blind is the reason why the last evaluation of the condition failed. Empty means that it succeeded.
	Blind string
}

// Source evaluates PromQL over the data so far: an *archive.Archive, or a Prometheus server that scrapes the cluster.
type Source interface {
	Instant(ctx context.Context, expr string, at time.Time) ([]archive.Sample, error)
}

// AlertSource is a source that evaluates alerts itself.
type AlertSource interface {
	// Firing returns whether an alert fires, and its summary.
	Firing(ctx context.Context, alert string, at time.Time) (fires bool, summary string, err error)
}

// Stops compiles the conditions in abortOn of a scenario. The error has one line for each problem, which names
// the field.
func Stops(s *plan.Plan) (stops []*Stop, err error) {
	return stopsOf(s, func(i int) string { return fmt.Sprintf("abortOn[%d]", i) }, StopOptions{})
}

// StopOptions contains the rules whose alerts a condition in a flag may name.
type StopOptions struct {
	Rules alerting.Ruleset // rules from the user, which take precedence over the shipped rules
	// Elsewhere means that a Prometheus server evaluates the alerts, with rules that this program does not know.
	Elsewhere bool
}

// FlagStops compiles the conditions in the values of a flag, in the format of ParseAbort. Errors name the flag.
func FlagStops(s *plan.Plan, flag string, texts []string, o StopOptions) (stops []*Stop, err error) {
	var errs []error
	for _, text := range texts {
		from := fmt.Sprintf("%s %q", flag, text)
		a, err := scenario.ParseAbort(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", from, err))
			continue
		}
		of, err := s.AbortedBy(from, a)
		if err == nil {
			aborted, one := *s, []*Stop(nil)
			aborted.Scenario = of
			one, err = stopsOf(&aborted, func(int) string { return "" }, o)
			stops = append(stops, one...)
		}
		errs = append(errs, err)
	}
	return stops, errors.Join(errs...)
}

func stopsOf(s *plan.Plan, path func(int) string, o StopOptions) (stops []*Stop, err error) {
	b := newBook(&o.Rules)
	var errs []error
	for i := range s.AbortOn {
		stop, err := compileStop(s, &s.AbortOn[i], path(i), b, o.Elsewhere)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		stops = append(stops, stop)
	}
	return stops, errors.Join(errs...)
}

func compileStop(s *plan.Plan, a *scenario.Abort, path string, b book, elsewhere bool) (*Stop, error) {
	stop := &Stop{Abort: a, Every: s.Record.Interval.D(), over: a.Over}
	if len(stop.over) == 0 {
		stop.over = s.PhaseNames()
	}
	if a.Limit != "" {
		var err error
		stop.limit, err = compileLimit(a, func(field, hint, format string, args ...any) error {
			return s.Errorf(path+"."+field, hint, format, args...)
		})
		return stop, err
	}
	if a.Alert != "" && elsewhere {
		stop.compiled.Alert = a.Alert
		return stop, nil
	}
	g := scenario.Gate{Name: path, Expr: a.Expr, Max: a.Max, Min: a.Min, Over: a.Over, Alert: a.Alert}
	at := path
	switch {
	case a.Gate != "":
		i := slices.IndexFunc(s.Gates, func(g scenario.Gate) bool { return g.Name == a.Gate })
		if i < 0 {
			return nil, s.Errorf(path+".gate", "name a gate of this scenario", "no gate %q", a.Gate)
		}
		g, at = s.Gates[i], "gates."+a.Gate
	case a.Alert != "":
		g.Fires = new(false)
	}
	c, err := compile(s, g, at, b)
	if err != nil {
		return nil, err
	}
	switch {
	case c.alert != nil && c.alert.fires:
		return nil, s.Errorf(path+".gate", "name one with fires: false", "gate %q can be judged only at the end of its phases", a.Gate)
	case c.objective.measure != nil:
		return nil, s.Errorf(path+".gate", "write a limit, or an expr over the generator's metrics, for example stormglass_requests_total", "objective %s of gate %q is known only at the end of the run", c.objective.Name, a.Gate)
	}
	stop.compiled, stop.over = c, c.Over
	return stop, nil
}

// StopFamilies returns the sorted names of the metrics that the conditions read.
func StopFamilies(stops []*Stop) []string {
	var all [][]*labels.Matcher
	for _, s := range stops {
		reads := s.compiled.reads
		if s.limit != nil && s.limit.expr != "" {
			reads, _ = selectors(s.limit.at(s.Every))
		}
		all = append(all, reads...)
	}
	return alerting.MetricsOf(all)
}

// Text returns the condition with its bound and duration, in the format of ParseAbort.
func (s *Stop) Text() string {
	a := s.Abort
	text := strings.Replace(a.String(), " ", "=", 1)
	switch {
	case a.Limit != "":
		text = fmt.Sprintf("%s=%s", a.Limit, a.Max)
	case a.Expr != "" && a.Max != nil:
		text += ",max=" + a.Max.String()
	case a.Expr != "":
		text += ",min=" + a.Min.String()
	}
	if a.For > 0 {
		text += ",for=" + a.For.String()
	}
	for _, phase := range a.Over {
		text += ",over=" + phase
	}
	return text
}

// OfClient reports whether the condition is about the generator's own requests. Evaluate such a condition with HoldsOf,
// and any other with Holds.
func (s *Stop) OfClient() bool { return s.limit != nil && s.limit.Client }

// HoldsOf evaluates a condition about the generator's requests at the time `at`, in a phase that began at
// start. It returns the reason to end the run, or "" to continue.
func (s *Stop) HoldsOf(c Client, phase string, start, at time.Time) string {
	if !slices.Contains(s.over, phase) {
		return s.sustained("", phase, start, at)
	}
	s.Blind = ""
	r := s.limit.client(c, s.Max.Value)
	why := ""
	switch {
	case r.few:
		s.Blind = "there were too few requests"
	case r.over && r.text != "":
		why = r.text
	case r.over:
		why = fmt.Sprintf("%s is over %s", show(s.limit.Unit, r.value), show(s.limit.Unit, s.Max.Value))
	}
	return s.sustained(why, phase, start, at)
}

// Holds evaluates a condition on recorded data at the time `at`, in a phase that began at start. It returns the reason
// to end the run, or "" to continue. It fails only if ctx ends.
func (s *Stop) Holds(ctx context.Context, a Source, phase string, start, at time.Time) (why string, err error) {
	s.Blind = ""
	if !slices.Contains(s.over, phase) {
		return s.sustained("", phase, start, at), nil
	}
	switch {
	case s.compiled.Alert != "":
		why, err = s.fires(ctx, a, at)
	case s.limit != nil:
		why, err = s.breaks(ctx, a, s.limit.at(s.Every), s.limit.Unit, s.Max.Value, "<=", at)
	default:
		c := s.compiled
		why, err = s.breaks(ctx, a, c.exprAt(window{name: phase, start: start, end: at}), c.objective.Unit, c.bound, c.op, at)
	}
	if err != nil {
		return "", err
	}
	return s.sustained(why, phase, start, at), nil
}

// sustained returns the reason to end the run, or "" if the condition has not held for long enough. why describes the
// value that breaks the bound; "" means that the condition does not hold now.
func (s *Stop) sustained(why, phase string, start, at time.Time) string {
	switch {
	case why == "":
		s.since = time.Time{}
		return ""
	case s.since.IsZero():
		s.since = at
	}
	held := at.Sub(s.since)
	if held < s.For.D() {
		return ""
	}
	if s.For > 0 {
		why += fmt.Sprintf(", for %s", span(held))
	}
	return fmt.Sprintf("abortOn: %s in phase %s, %s after its start: %s", s.Abort, phase, span(at.Sub(start)), why)
}

// fires returns a description of the alert if it fires, otherwise "".
func (s *Stop) fires(ctx context.Context, a Source, at time.Time) (string, error) {
	if theirs, ok := a.(AlertSource); ok {
		fires, summary, err := theirs.Firing(ctx, s.compiled.Alert, at)
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case err != nil:
			s.Blind = err.Error()
		case fires:
			return noted("it fires", summary), nil
		}
		return "", nil
	}
	recorded, ok := a.(*archive.Archive)
	if !ok || s.compiled.alert == nil {
		s.Blind = "no source of metrics evaluates the alert"
		return "", nil
	}
	if s.follower == nil {
		s.follower = s.compiled.alert.rules.Only(s.compiled.Alert).Follow(recorded)
	}
	firing, failed, err := s.follower.Firing(ctx, at)
	if err != nil {
		return "", err
	}
	if err := failed[s.compiled.Alert]; err != nil {
		s.Blind = err.Error()
	}
	for _, f := range firing {
		if f.Alert == s.compiled.Alert {
			return noted("it fires", f.Summary), nil
		}
	}
	return "", nil
}

// breaks returns a description of a value of the expression that breaks the bound, or "" if no value does.
func (s *Stop) breaks(ctx context.Context, a Source, expr string, u scenario.Unit, bound float64, op string, at time.Time) (string, error) {
	samples, err := a.Instant(ctx, expr, at)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		s.Blind = err.Error()
		return "", nil
	}
	why := ""
	s.Blind = "the expression returns no value"
	for _, sample := range samples {
		if math.IsNaN(sample.V) || math.IsInf(sample.V, 0) {
			continue
		}
		s.Blind = ""
		over, word := sample.V > bound, "over"
		if op == ">=" {
			over, word = sample.V < bound, "under"
		}
		if over {
			why = noted(fmt.Sprintf("%s is %s %s", show(u, sample.V), word, show(u, bound)), describe(sample.Labels))
		}
	}
	return why, nil
}

func noted(text, note string) string {
	if note == "" {
		return text
	}
	return text + " (" + note + ")"
}
