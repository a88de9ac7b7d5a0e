// Package alerts holds the Prometheus rules that Stormglass ships: recording
// rules that dashboards share, alerts with their runbooks, and for each alert
// the fault that must fire it (Table).
//
// The rules are plain rule files (*.yaml here) that any Prometheus loads; their tests, in promtool's format, are in
// tests/*.yaml. Nothing in them is made for the harness: the same files watch production and are proven here.
//
// # What the rules expect
//
// The jobs kube-apiserver, etcd, kube-scheduler, kube-controller-manager and
// loadgen, as Stormglass records them; a label cluster is kept where there is
// one. Scrapes at most 30 s apart: the shortest range is 2 minutes, which holds
// four of them.
//
// # Conventions
//
// Thresholds on histograms are fractions over an edge of a bucket, which are
// exact, not quantiles, which are interpolated. Edges of whole seconds are
// matched as "1" and as "1.0": Prometheus 3 changed how they are written. A
// counter that exists only after its first event is also watched for appearing.
// Nothing is added to a series that may be absent: PromQL would drop the sum.
package alerts

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

//go:embed *.yaml
var files embed.FS

// Files returns the rule files, by name, in the form that Prometheus loads.
func Files() fs.FS { return files }

// Group is a group of rules and the file that it is from.
type Group struct {
	File string
	rulefmt.RuleGroup
}

// Load parses all rule files, in the order of their names, and checks them as Prometheus
// does it. An error names the file, the group and the rule.
func Load() ([]Group, error) {
	return load(func(text []byte) (*rulefmt.RuleGroups, error) {
		groups, errs := rulefmt.Parse(text, false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
		return groups, errors.Join(errs...)
	})
}

// Records is the groups with recording rules, and of each those alone. They are not checked, which takes most of Load's time.
func Records() ([]Group, error) {
	return load(func(text []byte) (*rulefmt.RuleGroups, error) {
		var groups rulefmt.RuleGroups
		err := yaml.Unmarshal(text, &groups)
		for i := range groups.Groups {
			g := &groups.Groups[i]
			g.Rules = slices.DeleteFunc(g.Rules, func(r rulefmt.Rule) bool { return r.Record == "" })
		}
		groups.Groups = slices.DeleteFunc(groups.Groups, func(g rulefmt.RuleGroup) bool { return len(g.Rules) == 0 })
		return &groups, err
	})
}

func load(parse func(text []byte) (*rulefmt.RuleGroups, error)) ([]Group, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var all []Group
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		groups, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, g := range groups.Groups {
			all = append(all, Group{name, g})
		}
	}
	return all, nil
}

// Alert is one alerting rule, with what must fire it.
type Alert struct {
	rulefmt.Rule
	Proof
	// File and Group it is in.
	File, Group string
	// Interval is how often its group is evaluated.
	Interval time.Duration
}

// Rules is all alerts, in the order of the files, each with its proof. An
// error is a rule file that does not parse, or an alert and the Table that do
// not know of each other.
func Rules() ([]Alert, error) {
	loaded, err := Load()
	if err != nil {
		return nil, err
	}
	proofs := map[string]Proof{}
	for _, p := range Table() {
		if _, twice := proofs[p.Name]; twice {
			return nil, fmt.Errorf("the table has %s twice", p.Name)
		}
		proofs[p.Name] = p
	}
	var all []Alert
	for _, g := range loaded {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			p, ok := proofs[r.Alert]
			if !ok {
				return nil, fmt.Errorf("%s: the table has no fault that fires %s", g.File, r.Alert)
			}
			delete(proofs, r.Alert)
			all = append(all, Alert{Rule: r, Proof: p, File: g.File, Group: g.Name, Interval: time.Duration(g.Interval)})
		}
	}
	for name := range proofs {
		return nil, fmt.Errorf("the table names %s, which is not an alert", name)
	}
	return all, nil
}

// Floor is the longest that a fault of the documented size can take to fire
// the alert when nothing is late: until the next scrape sees it, until the rule
// is over its threshold (Window), until the next round of evaluation, and for.
// A rule that needs much longer is broken; one that is faster was lucky.
//
// scrape is the interval between scrapes, evaluation that between evaluations
// (zero: the group's own).
func (a Alert) Floor(scrape, evaluation time.Duration) time.Duration {
	return scrape + a.Window + time.Duration(a.For) + cmp.Or(evaluation, a.Interval)
}
