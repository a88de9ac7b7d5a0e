package alerting

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// Ruleset is a list of rule groups in evaluation order.
type Ruleset []alerts.Group

// Shipped returns the rules of package alerts, in the order of its files.
func Shipped() (Ruleset, error) { return alerts.Load() }

var (
	// position matches the line and the column at the start of a rulefmt error. An error may
	// contain this prefix twice. The number 0 means that the line or column is unknown.
	position = regexp.MustCompile(`^(?:(\d+):\d+: )?(?:(\d+):\d+: )?`)
	yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)
	earlier  = regexp.MustCompile(`already defined at line (\d+)$`)
	noField  = regexp.MustCompile(`^field (\S+) not found in type \S+$`)
)

// ruleErrors converts the errors that rulefmt found in text, a part of a file. line converts a line number in text to a
// line number in the file.
func ruleErrors(file string, text []byte, line func(int) int, errs []error) error {
	var all []error
	seen := map[string]bool{}
	add := func(msg string) {
		e := &strictyaml.Error{File: file, Hint: "as Prometheus loads rules"}
		for _, form := range []*regexp.Regexp{yamlLine, position} {
			m := form.FindStringSubmatch(msg)
			for _, number := range m[min(1, len(m)):] {
				if n, _ := strconv.Atoi(number); e.Line == 0 {
					e.Line = n
				}
			}
			if len(m) > 0 {
				msg = msg[len(m[0]):]
			}
		}
		if m := noField.FindStringSubmatch(msg); m != nil {
			msg = fmt.Sprintf("unknown field %q", m[1])
		}
		if m := earlier.FindStringSubmatch(msg); m != nil {
			n, _ := strconv.Atoi(m[1])
			msg = fmt.Sprintf("%s%d", strings.TrimSuffix(msg, m[1]), line(n))
		}
		if e.Line == 0 {
			e.Line = lineOf(text, msg)
		}
		e.Line = line(e.Line)
		if e.Msg = strings.TrimPrefix(msg, "yaml: "); !seen[e.Error()] {
			seen[e.Error()] = true
			all = append(all, e)
		}
	}
	for _, err := range errs {
		if typed, ok := errors.AsType[*yaml.TypeError](err); ok {
			for _, msg := range typed.Errors {
				add(msg)
			}
			continue
		}
		add(err.Error())
	}
	return errors.Join(all...)
}

var quoted = regexp.MustCompile(`"([^"]+)"`)

// lineOf returns the number of the only line that contains the quoted text of an error, or 0 if no
// line or several lines contain it.
func lineOf(text []byte, msg string) int {
	m := quoted.FindStringSubmatch(msg)
	if m == nil || strings.Count(string(text), m[1]) != 1 {
		return 0
	}
	return 1 + strings.Count(string(text)[:strings.Index(string(text), m[1])], "\n")
}

func (s Ruleset) where(is func(rulefmt.Rule) bool) (all []rulefmt.Rule) {
	for _, g := range s {
		for _, r := range g.Rules {
			if is(r) {
				all = append(all, r)
			}
		}
	}
	return all
}

func isAlert(r rulefmt.Rule) bool { return r.Alert != "" }

// Alerts returns the names of all alerts in order, without duplicates.
func (s Ruleset) Alerts() []string {
	var all []string
	for _, r := range s.where(isAlert) {
		if !slices.Contains(all, r.Alert) {
			all = append(all, r.Alert)
		}
	}
	return all
}

// Find returns the alerting rules with the given name. Several rules may share a name.
func (s Ruleset) Find(alert string) []rulefmt.Rule {
	return s.where(func(r rulefmt.Rule) bool { return r.Alert == alert && alert != "" })
}

func (s Ruleset) records(name string) []rulefmt.Rule {
	return s.where(func(r rulefmt.Rule) bool { return r.Record == name && name != "" })
}

// Only returns the alerting rules with the given names, and the recording rules that they read, directly or through
// other recording rules.
func (s Ruleset) Only(names ...string) Ruleset {
	keep := map[string]bool{} // names of the recording rules to keep
	all := false
	for _, name := range names {
		for _, r := range s.Find(name) {
			all = s.follow(r.Expr, keep, func(*parser.VectorSelector) {}) || all
		}
	}
	var left Ruleset
	for _, g := range s {
		g.Rules = slices.DeleteFunc(slices.Clone(g.Rules), func(r rulefmt.Rule) bool {
			return !all && !keep[r.Record] && !slices.Contains(names, r.Alert)
		})
		if len(g.Rules) > 0 {
			left = append(left, g)
		}
	}
	return left
}

// Reads returns the selectors of scraped metrics that the alerts with the given name read, directly
// or through recording rules.
func (s Ruleset) Reads(alert string) [][]*labels.Matcher {
	var all [][]*labels.Matcher
	seen := map[string]bool{}
	for _, r := range s.Find(alert) {
		s.follow(r.Expr, map[string]bool{}, func(v *parser.VectorSelector) {
			if text := (&parser.VectorSelector{LabelMatchers: v.LabelMatchers}).String(); !seen[text] {
				seen[text] = true
				all = append(all, v.LabelMatchers)
			}
		})
	}
	return all
}

// Metrics returns the names of the scraped metrics that the rules read.
func (s Ruleset) Metrics() []string { return MetricsOf(s.selectors()) }

// MetricsOf returns the sorted names of the metrics that the selectors name.
func MetricsOf(selectors [][]*labels.Matcher) (names []string) {
	for _, matchers := range selectors {
		if name := MetricOf(matchers); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// selectors returns the selectors of scraped metrics in all rules.
func (s Ruleset) selectors() (all [][]*labels.Matcher) {
	records := map[string]bool{}
	rules := s.where(func(rulefmt.Rule) bool { return true })
	for _, r := range rules {
		records[r.Record] = r.Record != ""
	}
	for _, r := range rules {
		if expr, err := archive.NewParser().ParseExpr(r.Expr); err == nil { // rules in a set have been parsed
			all = append(all, slices.DeleteFunc(parser.ExtractSelectors(expr), func(m []*labels.Matcher) bool { return records[MetricOf(m)] })...)
		}
	}
	return all
}

// follow calls visit for each selector of scraped metrics that an expression reads, directly or through recording
// rules. `seen` collects the names of these recording rules. `any` is true if a selector may read the series of any
// rule, because it names no metric or names ALERTS.
func (s Ruleset) follow(expr string, seen map[string]bool, visit func(*parser.VectorSelector)) (any bool) {
	parsed, err := archive.NewParser().ParseExpr(expr)
	if err != nil {
		return false // cannot happen: rules in a set have been parsed
	}
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		name := MetricOf(v.LabelMatchers)
		any = any || name == "" || name == "ALERTS" || name == "ALERTS_FOR_STATE"
		records := s.records(name)
		if len(records) == 0 {
			visit(v)
			return nil
		}
		if !seen[name] {
			seen[name] = true
			for _, r := range records {
				any = s.follow(r.Expr, seen, visit) || any
			}
		}
		return nil
	})
	return any
}

// MetricOf returns the name of the metric that the matchers select, or "" if they may select several metrics.
func MetricOf(matchers []*labels.Matcher) string {
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			return m.Value
		}
	}
	return ""
}

// JobsOf returns the jobs that the matchers name, or nil if they name none.
func JobsOf(matchers []*labels.Matcher) []string {
	for _, m := range matchers {
		switch {
		case m.Name != "job":
		case m.Type == labels.MatchEqual:
			return []string{m.Value}
		case m.Type == labels.MatchRegexp:
			return m.SetMatches()
		}
	}
	return nil
}
