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
	"github.com/stormglass/stormglass/loadgen/internal/record"
)

//go:embed catalogue.yaml
var catalogueYAML []byte

// catalogue holds the signals and mechanisms that a diagnosis tries.
type catalogue struct {
	// Parts holds PromQL that several signals share, by name.
	Parts   map[string]string
	Signals []signal
	// Groups are signals that follow from many mechanisms, by a common name.
	Groups     map[string][]string
	Mechanisms []mechanism
	Exits      exits
}

// exits lists the exit signals of clients of the API server, and the signals that such an exit may follow.
type exits struct {
	Signals, After []string
}

// signal is a PromQL figure of each component that some mechanism moves.
type signal struct {
	Name string
	// Of is the kind of its components: process, webhook, priority level.
	Of string
	// Component is the label that names the component.
	Component string
	What      string
	// Short names the signal in a list of calm signals. Empty means it is not listed there.
	Short string
	Unit  string
	Expr  string
	// written is Expr before parts are expanded.
	written string
	// Source names a signal that has data whenever this one can. If Source has data and this signal has none, the event
	// did not happen. Empty means this signal always has data.
	Source string
	// Over is a fixed bound. Nil means the value is compared with the calm time.
	Over *float64
	// Level: Over also applies within the calm time, and the calm value does not matter.
	Level bool
	// Limit is an objective: a value that reaches it deviates even if the calm value did too. Nil means no objective.
	Limit *float64
	// Lasts is the time for which the value must deviate. Zero means Hold decides.
	Lasts time.Duration
	// Part: the signal has data only if the plane has a certain part. Its absence does not count as missing data.
	Part bool
	// Least is the smallest change that matters, Times the smallest ratio to the calm median.
	Least, Times float64
	// Idle is the smallest value that matters if only the calm time had no calls. Zero means the calm value counts as
	// 0.
	Idle float64
	// Down: the signal deviates by falling, by at least Share of the calm median.
	Down  bool
	Share float64
	// Scraper: the signal comes from the scrape itself, so it also has data for a process that exposes nothing.
	Scraper bool
	// Event: a single deviating scrape suffices.
	Event bool
	// Hold is the number of consecutive evaluations that must deviate. Zero means two scrapes.
	Hold int
	// Delay is the time for which a cause must last before this signal may follow from it.
	Delay time.Duration
	// Symptom: clients or users of the cluster notice it, so a cause must explain it.
	Symptom bool
	// Inner: the symptom is between components and clients need not notice it. It does not make a limit a cause.
	Inner bool
}

func (c catalogue) signal(name string) *signal {
	at := slices.IndexFunc(c.Signals, func(s signal) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &c.Signals[at]
}

// signs returns the signals that indicate a cause and not only a load.
func (c catalogue) signs() map[*signal]bool {
	all := map[*signal]bool{}
	for _, m := range c.Mechanisms {
		for _, name := range m.Any {
			all[c.signal(name)] = all[c.signal(name)] || !m.Load
		}
	}
	return all
}

// hold returns the number of consecutive evaluations that must deviate. A rate covers two scrapes, so a deviation of
// one scrape shows in two evaluations.
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

// anyJob matches the jobs of all components.
var anyJob = fmt.Sprintf("job=~%q", strings.Join(record.Jobs(), "|"))

// query returns the signal's PromQL with a range of rates.
func (s *signal) query(window time.Duration) string {
	expr := counts.ReplaceAllString(rates.ReplaceAllString(s.Expr, rateOfNew), countOfNew)
	duration := func(d time.Duration) string { return model.Duration(d.Truncate(time.Millisecond)).String() }
	return strings.NewReplacer("$range", duration(window), "$long", duration(2*window), "$before", duration(window-time.Millisecond), "$age", fmt.Sprintf("%g", window.Seconds()), "$any", anyJob).Replace(expr)
}

// rates matches $rate(SELECTOR), and rateOfNew replaces it. A counter that appears with its first count has no rate of
// that count, so rateOfNew adds it. It does so only if the process was scraped successfully before; otherwise the count
// may be old.
var rates = regexp.MustCompile(`\$rate\(([a-z_]+\{[^}]*\})\)`)

const rateOfNew = `(($1 unless $1 offset $$before) / $$age and on(job, instance) (up{$$any} offset $$before == 1) or rate($1[$$range]))`

// counts matches $count(SELECTOR), and countOfNew replaces it with the counter's growth within a range. Unlike increase it does
// not extrapolate, which may double the count of a burst.
var counts = regexp.MustCompile(`\$count\(([a-z_]+\{[^}]*\})\)`)

const countOfNew = `(($1 unless $1 offset $$before) and on(job, instance) (up{$$any} offset $$before == 1) or clamp_min($1 - $1 offset $$before, 0))`

// partName matches the name of a part in an expression.
var partName = regexp.MustCompile(`\$\(([a-z]+)\)`)

// known is the shipped catalogue.
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

// expandParts replaces the names of parts with their PromQL, also within parts.
func expandParts(parts map[string]string, expr string) string {
	for partName.MatchString(expr) {
		expr = partName.ReplaceAllStringFunc(expr, func(name string) string { return parts[partName.FindStringSubmatch(name)[1]] })
	}
	return expr
}

// expand replaces the names of groups with their signals. A group may name other groups.
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
