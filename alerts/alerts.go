// Package alerts contains the Prometheus server rules that Stormglass ships: recording rules for the dashboards, and
// alerts. For each alert, Table describes the fault that must fire it.
//
// The rules are plain rule files (*.yaml in this directory) that any Prometheus server loads. Their tests, in
// promtool's format, are in tests/*.yaml. The tested files are the files for production: the rules contain nothing that
// is specific to tests.
//
// # What the rules expect
//
// The rules expect the jobs kube-apiserver, etcd, kube-scheduler, kube-controller-manager and loadgen, as Stormglass
// records them. If the series have a label cluster, the rules keep it. The scrape interval must be at most 30 s: the
// shortest range, 2 minutes, then contains four scrapes.
//
// # Conventions
//
// A threshold on a histogram is a fraction of observations above a bucket boundary. This fraction is exact; a quantile
// is an interpolation. Boundaries of whole seconds are matched both as "1" and as "1.0", because Prometheus 3 changed
// how they are written. Two rules also detect that a series appears, because their counters exist only after the first
// event.
// No rule adds a value to a series that may be absent: PromQL would drop the sum.
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

// Files returns the rule files. Any Prometheus server can load them.
func Files() fs.FS { return files }

// Group is a group of rules, with the name of the file that defines it.
type Group struct {
	File string
	rulefmt.RuleGroup
}

// Load parses and checks all rule files in the order of their names, with the checks of Prometheus. An error names the
// file, the group and the rule.
func Load() ([]Group, error) {
	return load(func(text []byte) (*rulefmt.RuleGroups, error) {
		groups, errs := rulefmt.Parse(text, false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
		return groups, errors.Join(errs...)
	})
}

// Records returns the recording rules, by group. It omits groups without recording rules. It does not check the rules,
// because the checks take most of the time of Load.
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

// Alert is an alerting rule, with the fault or load that must make it fire (Proof).
type Alert struct {
	rulefmt.Rule
	Proof
	// File is the name of the rule file, and Group the name of the group in the file.
	File, Group string
	// Interval is the evaluation interval of the group.
	Interval time.Duration
}

// Rules returns all alerts in the order of the rule files, each with its Proof. It fails if a rule file cannot be
// parsed, an alert has no entry in Table, or an entry of Table has no alert.
func Rules() ([]Alert, error) {
	loaded, err := Load()
	if err != nil {
		return nil, err
	}
	proofs := map[string]Proof{}
	for _, p := range Table() {
		if _, twice := proofs[p.Name]; twice {
			return nil, fmt.Errorf("the table lists %s twice", p.Name)
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
				return nil, fmt.Errorf("%s: the table contains no fault that makes alert %s fire", g.File, r.Alert)
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

// FiresWithin returns the maximum time from the start of a fault until the alert fires, if no scrape and no evaluation
// is late. The fault must have the size that Proof.How describes. The time is the sum of the scrape interval, the time
// until the rule exceeds its threshold (Window), the evaluation interval, and the rule's `for`. A rule that takes much
// longer is broken. A rule may fire earlier by chance.
//
// scrape is the scrape interval. evaluation is the evaluation interval; zero means the interval of the group.
func (a Alert) FiresWithin(scrape, evaluation time.Duration) time.Duration {
	return scrape + a.Window + time.Duration(a.For) + cmp.Or(evaluation, a.Interval)
}
