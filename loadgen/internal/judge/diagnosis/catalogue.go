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
	// Parts are PromQL of several signals, by their names.
	Parts   map[string]string
	Signals []signal
	// Groups are signals that follow from many mechanisms, by a name for all of them.
	Groups     map[string][]string
	Mechanisms []mechanism
	Exits      exits
}

// exits says what the exit of a client of the API server follows from.
type exits struct {
	Signals, After []string
}

// signal is a figure of each component, in PromQL, that some mechanism moves.
type signal struct {
	Name string
	// Of names the kind of its components: process, webhook, priority level.
	Of string
	// Component is the label that names the component.
	Component string
	What      string
	// Short names it among those that stayed calm; empty: it is not listed there.
	Short string
	Unit  string
	Expr  string
	// written is Expr with the names of parts.
	written string
	// Source names a signal that has data wherever this one can have: where it alone has none, it has not happened.
	// Empty: it always has data.
	Source string
	// Over is a fixed bound; nil: the value is compared with the calm time.
	Over *float64
	// Level: Over holds without regard to the calm time, and within it too.
	Level bool
	// Limit is an objective: a value that reaches it deviates without regard to the calm time; nil: no objective.
	Limit *float64
	// Lasts is how long the value must deviate; zero: Hold decides.
	Lasts time.Duration
	// Part: it has data only where the plane has a part. Its absence is no lack of data.
	Part bool
	// Least is the least change that matters, Times the least ratio to the calm median.
	Least, Times float64
	// Idle is the least value that matters of what was called before, but not in the calm time; zero: as if it had been 0 then.
	Idle float64
	// Down: it deviates by falling, by at least Share of the calm median.
	Down  bool
	Share float64
	// Scraper: it is of the scrape itself, so it has data of a process that exposes nothing too.
	Scraper bool
	// Event: one scrape suffices.
	Event bool
	// Hold is in how many evaluations in a row it must deviate; zero: in two scrapes.
	Hold int
	// Delay is how long a cause must last before this signal may follow from it.
	Delay time.Duration
	// Symptom: clients or users of the cluster notice it, so a cause must explain it.
	Symptom bool
	// Inner: it is a symptom between components, which clients need not notice. By such ones no limit is a cause.
	Inner bool
}

func (c catalogue) signal(name string) *signal {
	at := slices.IndexFunc(c.Signals, func(s signal) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &c.Signals[at]
}

// signs are the signals that tell of a cause, not of a load.
func (c catalogue) signs() map[*signal]bool {
	all := map[*signal]bool{}
	for _, m := range c.Mechanisms {
		for _, name := range m.Any {
			all[c.signal(name)] = all[c.signal(name)] || !m.Load
		}
	}
	return all
}

// hold is how many evaluations in a row must deviate. A rate covers two scrapes, so what lasts for one scrape shows in
// two evaluations.
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

// query is the signal's PromQL with a range of rates.
func (s *signal) query(window time.Duration) string {
	expr := rates.ReplaceAllString(s.Expr, rateOfNew)
	duration := func(d time.Duration) string { return model.Duration(d.Truncate(time.Millisecond)).String() }
	return strings.NewReplacer("$range", duration(window), "$before", duration(window-time.Millisecond), "$age", fmt.Sprintf("%g", window.Seconds()), "$any", anyJob).Replace(expr)
}

// rates is $rate(SELECTOR), and rateOfNew what it stands for. A counter that is not there before it first counts has no rate of that; one whose
// process was not scraped before, or in vain, may have counted long ago.
var rates = regexp.MustCompile(`\$rate\(([a-z_]+\{[^}]*\})\)`)

const rateOfNew = `(($1 unless $1 offset $$before) / $$age and on(job, instance) (up{$$any} offset $$before == 1) or rate($1[$$range]))`

// partName is the name of a part in an expression.
var partName = regexp.MustCompile(`\$\(([a-z]+)\)`)

// known is the catalogue that ships.
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

// expandParts puts parts in the place of their names, those in parts too.
func expandParts(parts map[string]string, expr string) string {
	for partName.MatchString(expr) {
		expr = partName.ReplaceAllStringFunc(expr, func(name string) string { return parts[partName.FindStringSubmatch(name)[1]] })
	}
	return expr
}

// expand puts the signals of groups in the place of their names. A group may name others.
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
