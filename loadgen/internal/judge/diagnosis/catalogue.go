package diagnosis

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/loadgen/internal/machine"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
)

//go:embed catalogue.yaml
var catalogueYAML []byte

// catalogue holds the signals (metrics) and mechanisms (ways of failing) that the diagnosis knows.
type catalogue struct {
	// Parts maps names to PromQL expressions that several signals contain.
	Parts   map[string]string
	Signals []signal
	// Groups maps names to lists of signals that many mechanisms affect.
	Groups     map[string][]string
	Mechanisms []mechanism
	Exits      exits
}

// exits says when the exit of a process may be a consequence of another deviation. The signals in Signals show such an
// exit. One of the signals in After must have deviated shortly before.
type exits struct {
	Signals, After []string
}

// signal is a PromQL expression with one value per component. The diagnosis compares the values with those in the
// comparison period (a time without the problem).
type signal struct {
	Name string
	// Of is the kind of the components: process, webhook or priority level.
	Of string
	// Component is the metric label that names the component.
	Component string
	// What is the name of the signal in reports.
	What string
	// Short is the name of the signal in a cause's list of signals that did not deviate. Empty means that the signal is
	// never in that list.
	Short string
	Unit  string
	Expr  string
	// written is Expr before the names of parts are replaced.
	written string
	// Source is for a signal that has no data until an event happens. It names another signal. If that signal has data
	// and this one has none, the event did not happen. Empty means that this signal always has data.
	Source string
	// Over is a fixed bound. A value that reaches Over deviates, unless the value was as high in the comparison period.
	// Nil means that there is no fixed bound.
	Over *float64
	// Level means that a value that reaches Over deviates even if values in the comparison period reached Over. Values
	// in the comparison period can then deviate too.
	Level bool
	// Limit is an objective: a value that reaches it deviates even if values in the comparison period reached it too. Nil
	// means that the signal has no objective.
	Limit *float64
	// Lasts is the time for which the value must deviate. Zero means the time in Hold.
	Lasts time.Duration
	// Part means that some control planes have no data for the signal. Missing data of the signal is then not reported.
	Part bool
	// Least is the minimum difference between a deviating value and the median in the comparison period. Times is the
	// minimum ratio of such a value to that median.
	Least, Times float64
	// Idle is the minimum of a deviating value if there were no calls in the comparison period. Zero means that in this
	// case the median in the comparison period counts as 0.
	Idle float64
	// Down means that the signal deviates if it falls by at least the fraction Share of the comparison period's median.
	Down  bool
	Share float64
	// Scraper means that the scrape itself provides the signal. The signal then has data even for a process that
	// exposes no metrics.
	Scraper bool
	// Event means that one deviating scrape suffices.
	Event bool
	// Hold is the number of consecutive evaluations that must deviate. Zero means the default: one for an Event, else
	// enough for two scrapes.
	Hold int
	// Delay is the time for which a cause must last before this signal can deviate.
	Delay time.Duration
	// Symptom means that clients or users of the cluster notice the deviation, so that the diagnosis must find its
	// cause.
	Symptom bool
	// Inner means that the symptom affects components but not necessarily clients. If a mechanism with mechanism.Load
	// explains only such symptoms, it is in Diagnosis.Limits, not in Diagnosis.Causes.
	Inner bool
}

func (c catalogue) signal(name string) *signal {
	at := slices.IndexFunc(c.Signals, func(s signal) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &c.Signals[at]
}

// signs returns, as keys, the signals in the Any lists of all mechanisms. The value is true if the signal indicates at
// least one mechanism for which mechanism.Load is false.
func (c catalogue) signs() map[*signal]bool {
	all := map[*signal]bool{}
	for _, m := range c.Mechanisms {
		for _, name := range m.Any {
			all[c.signal(name)] = all[c.signal(name)] || !m.Load
		}
	}
	return all
}

// hold returns the number of consecutive evaluations in which the signal must deviate. A rate covers two scrapes, so a
// deviation in one scrape affects two evaluations.
func (s *signal) hold() int {
	switch {
	case s.Hold > 0:
		return s.Hold
	case s.Event:
		return 1
	case strings.Contains(s.Expr, "$range"), strings.Contains(s.Expr, "$rate"):
		return held + 1
	}
	return held
}

// anyJob is a PromQL matcher for the jobs of all components.
var anyJob = fmt.Sprintf("job=~%q", strings.Join(scrape.Jobs(), "|"))

// query returns the PromQL of the signal with its variables replaced. window is the range of rates.
func (s *signal) query(window time.Duration) string {
	expr := counts.ReplaceAllString(rates.ReplaceAllString(s.Expr, rateOfNew), countOfNew)
	duration := func(d time.Duration) string { return model.Duration(d.Truncate(time.Millisecond)).String() }
	return strings.NewReplacer("$range", duration(window), "$long", duration(2*window), "$before", duration(window-time.Millisecond), "$age", fmt.Sprintf("%g", window.Seconds()), "$any", anyJob).Replace(expr)
}

// rates matches $rate(SELECTOR), which rateOfNew replaces. Some counters appear only when they first count something,
// and Prometheus computes no rate of that first count. rateOfNew adds the count if the process was scraped successfully
// before; otherwise the count may be old.
var rates = regexp.MustCompile(`\$rate\(([a-z_]+\{[^}]*\})\)`)

const rateOfNew = `(($1 unless $1 offset $$before) / $$age and on(job, instance) (up{$$any} offset $$before == 1) or rate($1[$$range]))`

// counts matches $count(SELECTOR), which countOfNew replaces. countOfNew is the increase of the counter in a range.
// Unlike PromQL's increase, it does not extrapolate, because that may double the count of a burst.
var counts = regexp.MustCompile(`\$count\(([a-z_]+\{[^}]*\})\)`)

const countOfNew = `(($1 unless $1 offset $$range) and on(job, instance) (up{$$any} offset $$range == 1) or clamp_min($1 - $1 offset $$range, 0))`

// partName matches a reference to a part in an expression, such as $(name).
var partName = regexp.MustCompile(`\$\(([a-z]+)\)`)

// known is the catalogue that is embedded in the program.
var known = func() catalogue {
	c, err := parse(catalogueYAML)
	if err != nil {
		panic(err)
	}
	return c
}()

func parse(text []byte) (c catalogue, err error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil {
		return c, fmt.Errorf("catalogue.yaml: %w", err)
	}
	c.Parts["clients"] = machine.ClientProcessors("$range")
	for i := range c.Signals {
		s := &c.Signals[i]
		s.written, s.Expr = s.Expr, expandParts(c.Parts, s.Expr)
	}
	for i := range c.Mechanisms {
		m := &c.Mechanisms[i]
		m.Moves, m.Return = c.expand(m.Moves), c.expand(m.Return)
		for kind, moves := range m.MovesOf {
			m.MovesOf[kind] = c.expand(moves)
		}
	}
	return c, nil
}

// expandParts replaces the names of parts in an expression with their PromQL. A part may name other parts.
func expandParts(parts map[string]string, expr string) string {
	for partName.MatchString(expr) {
		expr = partName.ReplaceAllStringFunc(expr, func(name string) string { return parts[partName.FindStringSubmatch(name)[1]] })
	}
	return expr
}

// expand replaces the names of groups in names with their signals. A group may name other groups.
func (c catalogue) expand(names []string) (all []string) {
	for _, name := range names {
		if group, ok := c.Groups[name]; ok {
			all = append(all, c.expand(group)...)
		} else {
			all = append(all, name)
		}
	}
	return all
}
