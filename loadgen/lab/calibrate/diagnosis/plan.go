package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/loadgen/lab/calibrate/runner"
)

//go:embed cases.yaml
var tableYAML []byte

// table is the content of cases.yaml.
type table struct {
	Cases      []faultCase
	Pairs      [][]string
	Topologies map[string]topology
	Storms     []string
}

// faultCase is a fault or a load to inject (plant), in three sizes, with the expected diagnosis.
type faultCase struct {
	Name        string
	On          []string // names of the topologies on which the case runs
	Beside      []string // names of the storms (heavy loads) during which the case runs; empty means all
	Fault, Load string   // YAML of the fault or load to plant; {size} stands for its size
	Neighbours  bool     // plant {size} processes that each use a whole processor
	Undo        string   // fault in the next phase that reverts this fault; empty means that this fault ends with its phase
	Sizes       []string
	Want        []string // kinds of causes; the diagnosis must name at least one
	// Also: kinds of causes that are side effects of planting the fault, such as the end of a restarted process
	Also         []string
	Components   string   // "any" if the fault has no component
	Words, Never []string // words that the cause's text must contain, and words that it must not contain
}

// topology is a kind of control plane, with the durations and rates of the plans that run on it.
type topology struct {
	Interval     string         // scrape interval
	Fault, Rest  string         // durations of a phase with faults, and of the phase after it
	Changes      string         // rate of the changes in the storm "watches"
	ControlPlane map[string]any `yaml:"controlPlane"`
	// Setup and Background are added to the fields setup and background of each plan's scenario.
	Setup, Background []any
}

func readTable() (t table, err error) {
	dec := yaml.NewDecoder(bytes.NewReader(tableYAML))
	dec.KnownFields(true)
	if err := dec.Decode(&t); err != nil {
		return t, fmt.Errorf("cases.yaml: %w", err)
	}
	return t, nil
}

func (t table) named(name string) faultCase {
	return t.Cases[slices.IndexFunc(t.Cases, func(c faultCase) bool { return c.Name == name })]
}

// planted is a phase in which one or two faults are planted (injected).
type planted struct {
	phase string
	cases []faultCase
	size  int // index of the size in faultCase.Sizes
}

// plan is one run: a topology, a storm (a heavy load), and faults that are planted one after another in separate
// phases.
type plan struct {
	name, storm string
	topology    topology
	faults      []planted
	scenario    string   // for a healthy run, the scenario of the catalogue
	sets        []string // for a healthy run, the values of --set
	seed        int64
}

// plans returns the runs. For each topology and storm, one run plants each fault, in one size, and some pairs of faults. A
// further o.healthy runs have a storm but no faults. Runs with every pair of faults, such as pairs-three-rollout, are
// included only if o.plans names them.
func (t table) plans(o options) (all []plan) {
	var pairs []plan
	for i, topology := range []string{"three", "one", "services"} {
		for j, storm := range t.Storms {
			p := plan{name: topology + "-" + storm, storm: storm, topology: t.Topologies[topology], seed: o.seed}
			both := p
			both.name = "pairs-" + p.name
			shuffle := rand.New(rand.NewPCG(uint64(o.seed), uint64(3*i+j)))
			for k, c := range t.Cases {
				if slices.Contains(c.On, topology) && (len(c.Beside) == 0 || slices.Contains(c.Beside, storm)) {
					size := (j + k) % len(c.Sizes)
					p.faults = append(p.faults, planted{phase: c.Name, cases: []faultCase{c}, size: size})
				}
			}
			for k, pair := range t.Pairs {
				f := planted{phase: fmt.Sprintf("pair-%d", k+1), cases: []faultCase{t.named(pair[0]), t.named(pair[1])}, size: 1}
				if slices.ContainsFunc(f.cases, func(c faultCase) bool { return !slices.Contains(c.On, topology) }) {
					continue
				}
				if k%len(t.Storms) == j {
					p.faults = append(p.faults, f)
				}
				f.size = (j + k) % len(f.cases[0].Sizes)
				both.faults = append(both.faults, f)
			}
			for _, one := range []plan{p, both} {
				shuffle.Shuffle(len(one.faults), func(a, b int) { one.faults[a], one.faults[b] = one.faults[b], one.faults[a] })
				// Faults that restart etcd with other data come after the other faults. A fault that leaves unscheduled
				// pods behind comes last.
				slices.SortStableFunc(one.faults, func(a, b planted) int { return last(a) - last(b) })
			}
			all = append(all, p)
			if len(both.faults) > 0 {
				pairs = append(pairs, both)
			}
		}
	}
	storms := [][]string{ // each scenario in a size that takes two minutes
		{"rollout-500", "nodes.count=150", "phases.rollout.actions.web.replicas=300"},
		{"watch-flood", "phases.flood.load.crowd.count=1000", "phases.fan-out.for=30s"},
		{"node-failure-storm", "nodes.count=150", "phases.fill.actions.web.replicas=300"},
		{"ci-gate"},
		{"rollout-demo"},
	}
	for i := range o.healthy {
		s := storms[i%len(storms)]
		if i >= o.healthy-len(storms) { // the last run of each storm has three etcd members
			s = append(slices.Clone(s), "controlPlane.etcd.members=3")
		}
		all = append(all, plan{name: fmt.Sprintf("healthy-%02d", i), scenario: s[0], sets: s[1:], seed: o.seed + int64(i)})
	}
	if len(o.plans) > 0 {
		all = slices.DeleteFunc(append(all, pairs...), func(p plan) bool {
			return !slices.ContainsFunc(o.plans, func(name string) bool { return strings.HasPrefix(p.name, name) })
		})
	}
	return all
}

func last(p planted) int {
	switch p.cases[0].Name {
	case "quota", "etcd-restore":
		return 1
	case "unschedulable":
		return 2
	}
	return 0
}

func (p plan) yaml() string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: diagnosis-%s\nseed: %d\n", p.name, p.seed)
	planes, _ := yaml.Marshal(map[string]any{"controlPlane": p.topology.ControlPlane, "record": map[string]string{"interval": p.topology.Interval}})
	b.Write(planes)
	if len(p.topology.Setup) > 0 {
		b.WriteString("setup:\n" + items(p.topology.Setup))
	}
	b.WriteString(`nodes: {count: 40, fidelity: lean}
background:
  - {name: patch, kind: requests, verb: patch, objects: 200, rate: 20/s, arrival: poisson}
  - {name: get, kind: requests, verb: get, objects: 200, rate: 20/s, arrival: poisson}
  - {name: create, kind: requests, verb: create, rate: 10/s, arrival: poisson}
  - {name: service, kind: requests, verb: create, resource: services, rate: 2/s, arrival: poisson}
  - {name: list, kind: requests, verb: list, resource: secrets, objects: 100, rate: 1/s}
` + items(p.topology.Background) + "phases:\n")
	first := "    load: [{name: watch, kind: watches, count: 200, rate: 100/s, hold: true}]\n"
	if p.storm == "watches" {
		first = strings.Replace(first, "count: 200", "count: 1000", 1)
	}
	if p.storm == "rollout" {
		first += "    actions: [{kind: deploy, name: web, replicas: 80}]\n"
	}
	fmt.Fprintf(&b, "  - name: open\n    for: 20s\n%s", first)
	fmt.Fprintf(&b, "  - name: calm\n    for: 1m\n%s", p.contentOf(0, nil, nil))
	for i, f := range p.faults {
		var faults, loads []string
		for _, c := range f.cases {
			if c.Fault != "" {
				faults = append(faults, strings.Replace(c.Fault, "{size}", c.Sizes[f.size], 1))
			}
			if c.Load != "" {
				loads = append(loads, strings.Replace(c.Load, "{size}", c.Sizes[f.size], 1))
			}
		}
		fmt.Fprintf(&b, "  - name: %s\n    for: %s\n%s", f.phase, p.topology.Fault, p.contentOf(2*i+1, faults, loads))
		fmt.Fprintf(&b, "  - name: %s-after\n    for: %s\n%s", f.phase, p.topology.Rest, p.contentOf(2*i+2, f.undo(), nil))
	}
	return b.String()
}

// items returns the lines of a YAML list. Each line contains one item as JSON.
func items(all []any) string {
	var b strings.Builder
	for _, item := range all {
		text, _ := json.Marshal(item)
		fmt.Fprintf(&b, "  - %s\n", text)
	}
	return b.String()
}

// undo returns the faults that revert those planted faults that would otherwise last longer than the phase.
func (f planted) undo() (faults []string) {
	for _, c := range f.cases {
		if c.Undo != "" {
			faults = append(faults, c.Undo)
		}
	}
	return faults
}

// contentOf returns the YAML of phase i: the actions, loads and faults of the storm, and the given faults and loads.
func (p plan) contentOf(i int, faults, loads []string) string {
	text := ""
	switch p.storm {
	case "rollout":
		text = "    actions: [{kind: rollingUpdate, name: web}]\n"
	case "watches":
		loads = append(loads, fmt.Sprintf("{name: changes-%d, kind: changes, watches: watch, rate: %s}", i, p.topology.Changes))
	case "nodes":
		// A fifth of the nodes falls silent in the phase after each fault and recovers with the next fault.
		if i%2 == 0 {
			faults = append(faults, "{kind: nodeFailure, fraction: 0.2}")
		} else {
			faults = append([]string{"{kind: nodeRecovery}"}, faults...)
		}
	}
	if len(loads) > 0 {
		text += "    load: [" + strings.Join(loads, ", ") + "]\n"
	}
	if len(faults) > 0 {
		text += "    faults: [" + strings.Join(faults, ", ") + "]\n"
	}
	return text
}

// record runs a plan, unless its directory exists or o.Run is false.
func (p plan) record(ctx context.Context, o options, dir string) error {
	if _, err := os.Stat(dir); err == nil || !o.Run {
		return nil
	}
	name, args := p.scenario, []string{}
	if name == "" {
		name = filepath.Join(o.Dir, p.name+".yaml")
		if err := os.MkdirAll(o.Dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(p.yaml()), 0o644); err != nil {
			return err
		}
	} else {
		for _, set := range append(p.sets, fmt.Sprintf("seed=%d", p.seed)) {
			args = append(args, "--set", set)
		}
	}
	following, stop := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() { defer close(stopped); p.neighbours(following, dir) }()
	defer runner.Busy(ctx, o.busy)()
	err := o.Do(ctx, p.name, append([]string{"run", name, "--out", dir}, args...)...)
	stop()
	<-stopped
	return err
}
