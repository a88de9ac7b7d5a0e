package alerting

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// Mapping replaces a label's value in the selectors of rules, because the recorded series have another value.
type Mapping struct {
	Label, From string
	To          string // new value of the label; empty selects series without the label
}

// ParseMapping parses a mapping in the format LABEL=FROM:TO.
func ParseMapping(text string) (Mapping, error) {
	label, values, _ := strings.Cut(text, "=")
	from, to, ok := strings.Cut(values, ":")
	if !ok || from == "" || strings.Contains(to, ":") || !model.UTF8Validation.IsValidLabelName(label) || label == model.MetricNameLabel {
		return Mapping{}, fmt.Errorf("%q: expected LABEL=FROM:TO (for example job=apiserver:kube-apiserver)", text)
	}
	return Mapping{label, from, to}, nil
}

func (m Mapping) String() string { return m.Label + "=" + m.From + ":" + m.To }

// MapFlags parses values, the values of the flag --map. It returns the mapped rules, and the mappings.
func (s Ruleset) MapFlags(values []string) (mapped Ruleset, given []Mapping, err error) {
	for _, text := range values {
		m, err := ParseMapping(text)
		if err != nil {
			return nil, nil, fmt.Errorf("--map %w", err)
		}
		given = append(given, m)
	}
	if mapped, err = s.Map(given); err != nil {
		return nil, nil, fmt.Errorf("--map %w", err)
	}
	return mapped, given, nil
}

// Map replaces label values in the rules. It fails if two mappings replace the same value of a label, or if the rules
// do not contain a value to replace.
func (s Ruleset) Map(all []Mapping) (Ruleset, error) {
	to := map[labels.Label]string{}
	for _, m := range all {
		at := labels.Label{Name: m.Label, Value: m.From}
		if _, twice := to[at]; twice {
			return nil, fmt.Errorf("%s: %s=%s is mapped twice", m, m.Label, m.From)
		}
		to[at] = m.To
	}
	values := map[string][]string{} // values to replace, by label
	mapped := slices.Clone(s)
	for i, g := range s {
		mapped[i].Rules = slices.Clone(g.Rules)
		for n, r := range g.Rules {
			expr, err := archive.NewParser().ParseExpr(r.Expr)
			if err != nil {
				return nil, err // cannot happen: rules in a set have been parsed
			}
			changed := false
			for _, selector := range parser.ExtractSelectors(expr) {
				for at, m := range selector {
					old := valuesOf(m)
					values[m.Name] = append(values[m.Name], old...)
					replaced := slices.Clone(old)
					for k, v := range old {
						if by, ok := to[labels.Label{Name: m.Name, Value: v}]; ok {
							replaced[k] = by
						}
					}
					if slices.Equal(old, replaced) {
						continue
					}
					// The selector is a slice of the expression itself, so this assignment changes the expression.
					if selector[at], err = matching(m, replaced); err != nil {
						return nil, err
					}
					changed = true
				}
			}
			if changed {
				mapped[i].Rules[n].Expr = expr.String()
			}
		}
	}
	for _, m := range all {
		if known := values[m.Label]; !slices.Contains(known, m.From) {
			slices.Sort(known)
			return nil, fmt.Errorf("%s: no rule selects %s=%q (%s)", m, m.Label, m.From, strictyaml.Hint(m.From, slices.Compact(known), "write the value as in the rules"))
		}
	}
	return mapped, nil
}

// valuesOf returns the values that a matcher lists, or its pattern if the pattern is not a list of values.
func valuesOf(m *labels.Matcher) []string {
	if set := m.SetMatches(); len(set) > 0 && (m.Type == labels.MatchRegexp || m.Type == labels.MatchNotRegexp) {
		return set
	}
	return []string{m.Value}
}

func matching(m *labels.Matcher, values []string) (*labels.Matcher, error) {
	if m.Type == labels.MatchEqual || m.Type == labels.MatchNotEqual {
		return labels.NewMatcher(m.Type, m.Name, values[0])
	}
	patterns := make([]string, len(values))
	for i, v := range values {
		patterns[i] = regexp.QuoteMeta(v)
	}
	return labels.NewMatcher(m.Type, m.Name, strings.Join(patterns, "|"))
}

// Derive maps jobs that the rules select but the recorder did not scrape. It maps such a job to the only scraped job
// that has the same metrics, unless the rules also select that scraped job. `notes` describes these mappings, and the
// jobs that Derive could not map. `given` are the mappings already applied.
func (s Ruleset) Derive(ctx context.Context, a *archive.Archive, given []Mapping) (derived []Mapping, notes []string, err error) {
	first, last, err := a.Bounds(ctx)
	if err != nil {
		return nil, nil, ctx.Err()
	}
	jobsOf := func(metric string) []string {
		var jobs []string
		if err == nil {
			jobs, err = a.Values(ctx, first, last, model.JobLabel, archive.Equal(model.MetricNameLabel, metric))
		}
		return jobs
	}
	selected, metrics := map[string]bool{}, map[string][]string{} // jobs in the rules, and the metrics of each
	for _, selector := range s.selectors() {
		metric, jobs := MetricOf(selector), JobsOf(selector)
		for _, job := range jobs {
			selected[job] = true
		}
		// If a selector lists several jobs, it does not show which of them has the metric.
		if len(jobs) == 1 && metric != "" && metric != "up" && !slices.Contains(metrics[jobs[0]], metric) {
			metrics[jobs[0]] = append(metrics[jobs[0]], metric)
		}
	}
	for _, job := range jobsOf("up") {
		delete(metrics, job)
	}
	for _, m := range given {
		if m.Label == model.JobLabel {
			delete(metrics, m.To)
		}
	}
	var all []candidates
	claims := map[string]int{} // number of jobs of the rules, by their only candidate
	for _, job := range slices.Sorted(maps.Keys(metrics)) {
		c := candidates{job: job, of: len(metrics[job])}
		for _, metric := range metrics[job] {
			having := jobsOf(metric)
			if len(having) == 0 {
				continue
			}
			if c.recorded++; c.recorded == 1 {
				c.in = having
			}
			c.in = slices.DeleteFunc(c.in, func(j string) bool { return !slices.Contains(having, j) })
		}
		if c.recorded == 0 || 2*c.recorded < c.of { // with fewer metrics, a coincidence is likely
			continue
		}
		if all = append(all, c); len(c.in) == 1 {
			claims[c.in[0]]++
		}
	}
	for _, c := range all {
		why := ""
		switch {
		case len(c.in) == 0:
			why = "its metrics were recorded under different jobs"
		case len(c.in) > 1:
			why = "its metrics were recorded under " + strings.Join(c.in, ", ")
		case selected[c.in[0]]:
			why = "the rules also select job " + c.in[0]
		case claims[c.in[0]] > 1:
			why = "another job of the rules also has the metrics of job " + c.in[0]
		}
		if why != "" {
			notes = append(notes, fmt.Sprintf("job %s of the rules was not scraped and is not mapped: %s (map it with --map job=%s:JOB)", c.job, why, c.job))
			continue
		}
		derived = append(derived, Mapping{model.JobLabel, c.job, c.in[0]})
		notes = append(notes, fmt.Sprintf("job %s of the rules is mapped to job %s, the only job with these metrics (%d of the %d metrics that the rules select were recorded; --map job=%[1]s:JOB overrides this)",
			c.job, c.in[0], c.recorded, c.of))
	}
	return derived, notes, err
}

// candidates are the recorded jobs to which a job of the rules could be mapped.
type candidates struct {
	job          string
	in           []string // recorded jobs that have all metrics of job, as far as these were recorded
	of, recorded int      // number of metrics that the rules select from job, and how many of them were recorded
}
