package gate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Stop is a compiled condition that ends a run early.
type Stop struct {
	*scenario.Abort
	compiled Compiled
	over     []string // phases
	follower *alerting.Follower

	since time.Time // when it began to hold; zero: it does not
	// Blind says why it could not be evaluated the last time; empty: it could.
	Blind string
}

// Stops compiles the conditions of a scenario's abortOn. All errors are joined, one line each, naming the field.
func Stops(s *scenario.Scenario) (stops []*Stop, err error) {
	b := newBook(nil)
	var errs []error
	for i := range s.AbortOn {
		a := &s.AbortOn[i]
		path := fmt.Sprintf("abortOn[%d]", i)
		stop, err := compileStop(s, a, path, b)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		stops = append(stops, stop)
	}
	return stops, errors.Join(errs...)
}

func compileStop(s *scenario.Scenario, a *scenario.Abort, path string, b book) (*Stop, error) {
	g := scenario.Gate{Name: path, Expr: a.Expr, Max: a.Max, Min: a.Min, Over: a.Over, Alert: a.Alert}
	at := path
	switch {
	case a.Gate != "":
		i := slices.IndexFunc(s.Gates, func(g scenario.Gate) bool { return g.Name == a.Gate })
		if i < 0 {
			return nil, s.Errorf(path+".gate", "name one that is judged", "no gate %q", a.Gate)
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
		return nil, s.Errorf(path+".gate", "name one with fires: false", "whether gate %q holds is known at the end of its phases only", a.Gate)
	case c.objective.measure != nil:
		return nil, s.Errorf(path+".gate", "write an expr over the generator's metrics, as stormglass_requests_total", "objective %s of gate %q is not recorded: it is judged when the run is over", c.objective.Name, a.Gate)
	}
	return &Stop{Abort: a, compiled: c, over: c.Over}, nil
}

// Holds evaluates the condition at a moment of a phase that began at start, over what is recorded so far. It returns why the
// run ends, or "" while it goes on. An error is the context's.
func (s *Stop) Holds(ctx context.Context, a *archive.Archive, phase string, start, at time.Time) (why string, err error) {
	s.Blind = ""
	if !slices.Contains(s.over, phase) {
		s.since = time.Time{}
		return "", nil
	}
	if s.compiled.alert != nil {
		why, err = s.fires(ctx, a, at)
	} else {
		why, err = s.breaks(ctx, a, phase, start, at)
	}
	switch {
	case err != nil:
		return "", err
	case why == "":
		s.since = time.Time{}
		return "", nil
	case s.since.IsZero():
		s.since = at
	}
	held := at.Sub(s.since)
	if held < s.For.D() {
		return "", nil
	}
	if s.For > 0 {
		why += fmt.Sprintf(", for %s", span(held))
	}
	return fmt.Sprintf("abortOn: %s in phase %s, %s after its start: %s", s.Abort, phase, span(at.Sub(start)), why), nil
}

// fires says that the alert fires, or "".
func (s *Stop) fires(ctx context.Context, a *archive.Archive, at time.Time) (string, error) {
	if s.follower == nil {
		s.follower = s.compiled.alert.rules.Only(s.compiled.Alert).Follow(a)
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

// breaks says that the value breaks the bound, or "".
func (s *Stop) breaks(ctx context.Context, a *archive.Archive, phase string, start, at time.Time) (string, error) {
	c := s.compiled
	samples, err := a.Instant(ctx, c.exprAt(window{name: phase, start: start, end: at}), at)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		s.Blind = err.Error()
		return "", nil
	}
	why := ""
	s.Blind = "it gives no value"
	for _, sample := range samples {
		if math.IsNaN(sample.V) || math.IsInf(sample.V, 0) {
			continue
		}
		s.Blind = ""
		over, word := sample.V > c.bound, "over"
		if c.op == ">=" {
			over, word = sample.V < c.bound, "under"
		}
		if over {
			why = noted(fmt.Sprintf("%s is %s %s", show(c.objective.Unit, sample.V), word, show(c.objective.Unit, c.bound)), describe(sample.Labels))
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
