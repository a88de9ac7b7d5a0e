package result

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
)

const (
	// longestRun is longer than any run. It bounds loops over the time of a run.
	longestRun = 60 * 24 * time.Hour
	// maxCounted is larger than any number that a run measures, in any unit. Sums of numbers up to maxCounted do not
	// overflow.
	maxCounted = 1e15
)

// Check returns an error if r has values that no run writes.
func (r *Run) Check() error {
	switch {
	case r.ID == "":
		return errors.New("it has no id")
	case !isName(r.ID):
		return fmt.Errorf("the id %q is not a name", r.ID)
	case r.Started.IsZero():
		return errors.New("the start time of the run is missing")
	case !r.Ended.IsZero():
		if err := checkSpan("the run", r.Started, r.Ended); err != nil {
			return err
		}
	}
	return CheckLabels(r.Labels)
}

// checkSpan returns an error if a time span has no start or no end, ends before it starts, or is longer than any run.
func checkSpan(what string, from, until time.Time) error {
	switch took := until.Sub(from); {
	case from.IsZero() || until.IsZero():
		return fmt.Errorf("%s has no start or no end", what)
	case took < 0:
		return fmt.Errorf("%s ends %s before it starts", what, -took)
	case took > longestRun:
		return fmt.Errorf("%s lasts %s, which exceeds the maximum length of a run", what, took)
	}
	return nil
}

// Check returns an error if the event has no time or no kind.
func (e Event) Check() error {
	if e.Kind == "" || e.Time.IsZero() {
		return errors.New("invalid event: it has no time or no kind")
	}
	return nil
}

// Check returns an error if m has values that no generator writes. Phases must follow one another, numbers must not be
// negative, each load may occur only once per phase, and the sums must be correct.
func (m *Measurements) Check() error {
	if err := checkNumbers("", reflect.ValueOf(*m)); err != nil {
		return err
	}
	if len(m.Phases) > 0 {
		if err := checkSpan("the run", m.Phases[0].Start, m.Phases[len(m.Phases)-1].End); err != nil {
			return err
		}
	}
	named := map[string]bool{}
	for i, p := range m.Phases {
		switch {
		case p.Name == "":
			return fmt.Errorf("phases[%d] has no name", i)
		case named[p.Name]:
			return fmt.Errorf("phase %s appears twice", p.Name)
		case i > 0 && p.Start.Before(m.Phases[i-1].End):
			return fmt.Errorf("phase %s starts before %s ends", p.Name, m.Phases[i-1].Name)
		}
		named[p.Name] = true
		if err := checkSpan("phase "+p.Name, p.Start, p.End); err != nil {
			return err
		}
		if err := p.check(); err != nil {
			return fmt.Errorf("phase %s: %w", p.Name, err)
		}
	}
	return nil
}

// maxLoads is the maximum number of loads in a phase. It limits the time to judge them.
const maxLoads = 5_000

func (p Phase) check() error {
	once := map[string]bool{}
	load := func(kind, name string) error {
		if once[kind+" "+name] {
			return fmt.Errorf("load %s appears twice", name)
		}
		once[kind+" "+name] = true
		if len(once) > maxLoads {
			return fmt.Errorf("it has more loads than the maximum of %d", maxLoads)
		}
		return nil
	}
	requests := func(kind string, r Requests) error {
		if err := load(kind, strings.TrimSpace(strings.Join([]string{r.Load, r.Verb, r.Resource, r.Variant, r.Tenant}, " "))); err != nil {
			return err
		}
		var answered int64
		for _, n := range r.Outcomes {
			answered += n
		}
		switch {
		case r.Sent+r.Unsent != r.Offered:
			return fmt.Errorf("load %s: %d sent and %d unsent requests do not add up to %d offered", r.Load, r.Sent, r.Unsent, r.Offered)
		case max(answered, r.Succeeded, r.Latency.Count) > r.Sent:
			return fmt.Errorf("load %s: it has more responses than the %d requests that were sent", r.Load, r.Sent)
		}
		return nil
	}
	for _, r := range p.Requests {
		if err := requests("requests", r); err != nil {
			return err
		}
	}
	for _, c := range p.Changes {
		if err := requests("changes", c.Requests); err != nil {
			return err
		}
	}
	for _, w := range p.Watches {
		if err := load("watches", w.Load); err != nil {
			return err
		}
		if w.Delivered+w.Lost != w.Expected {
			return fmt.Errorf("load %s: %d delivered and %d lost events do not add up to %d expected", w.Load, w.Delivered, w.Lost, w.Expected)
		}
	}
	for _, c := range p.Custom {
		if err := load("measurement", c.Measurement); err != nil {
			return err
		}
	}
	return p.checkTransitions()
}

// checkNumbers returns an error if a number is negative or larger than maxCounted. All numbers that a generator
// measures are counts, lengths or rates.
func checkNumbers(path string, v reflect.Value) error {
	n := 0.0
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return checkNumbers(path, v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			if err := checkNumbers(fmt.Sprintf("%s[%d]", path, i), v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			if err := checkNumbers(fmt.Sprintf("%s[%s]", path, each.Key()), each.Value()); err != nil {
				return err
			}
		}
	case reflect.Struct:
		if l, ok := v.Interface().(Latency); ok {
			if err := l.check(); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		if _, ok := v.Interface().(time.Time); ok {
			return nil
		}
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			at := strings.Trim(path+"."+name, ".")
			if err := checkNumbers(at, v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Int, reflect.Int64:
		n = float64(v.Int())
	case reflect.Uint64:
		n = float64(v.Uint())
	case reflect.Float64:
		n = v.Float()
	}
	if !(n >= 0 && n <= maxCounted) {
		return fmt.Errorf("%s is %v, which is impossible", path, n)
	}
	return nil
}

// check returns an error if the quantiles are not in ascending order, or if more values were clamped (above the histogram's
// range) than counted.
func (l Latency) check() error {
	at := math.Inf(-1)
	for _, q := range []float64{l.P50, l.P90, l.P99, l.P999} { // older runs have no P95
		if q < at {
			return errors.New("its quantiles are not in ascending order")
		}
		at = q
	}
	if l.Clamped > l.Count {
		return errors.New("it counts more values above its range than values in total")
	}
	return nil
}

// Check returns an error if c has another schema version, has no variants, or has a variant without a unique, valid
// name.
func (c *Comparison) Check() error {
	switch {
	case c.Schema != ComparisonSchema:
		return fmt.Errorf("the schema is %q, but must be %q", c.Schema, ComparisonSchema)
	case len(c.Variants) == 0:
		return errors.New("it has no variants")
	}
	named := map[string]bool{}
	for _, v := range c.Variants {
		if !isName(v.Name) || named[v.Name] {
			return fmt.Errorf("variant %q is not a valid name, or appears twice", v.Name)
		}
		named[v.Name] = true
	}
	return nil
}

// isName reports whether name is valid as the name of a directory, as the names of variants and the IDs of runs must be.
func isName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, `/\`)
}

// Check returns an error if r has another schema version, the id or the labels of the run are invalid, or the measurements
// are invalid.
func (r *Result) Check() error {
	switch id := r.Run.ID; {
	case r.Schema != Schema:
		return fmt.Errorf("the schema is %q, but must be %q", r.Schema, Schema)
	case id != "" && !isName(id): // without run.json, the id is unknown
		return fmt.Errorf("run.id %q is not a name", id)
	}
	if err := CheckLabels(r.Run.Labels); err != nil {
		return fmt.Errorf("run.labels: %w", err)
	}
	return r.Measurements.Check()
}
