package gate

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Objective is a built-in metric that a gate can put a bound on: an entry of objectives.yaml.
type Objective struct {
	// Name is the name that a gate gives after `objective:`.
	Name string
	// Doc describes the value. Source names where the value or its bound comes from.
	Doc, Source string
	// Default is the suggested bound, such as "max: 1s". If Source states a bound, Default is the same.
	Default string
	// Unit is the unit of the value.
	Unit scenario.Unit
	// Expr is the PromQL of an objective that reads scraped metrics. It is empty for an objective that the generator
	// measures. $window stands for the length of the window, and $hours for the length in hours, but at least 1.
	Expr string
	// Histogram describes a quantile of a histogram, from which Expr is generated. Nil means that Expr is not
	// generated.
	Histogram *histogram
	// Needs lists the components (jobs) whose metrics the objective reads.
	Needs []string
	// Gap says how to judge a window in which a fault made a target unreachable.
	Gap gapRule
	// Spans means that consecutive phases form one window. Sums means that the values of the windows are added up.
	Spans, Sums bool
	// Client means that the generator measured the value from outside the cluster, so the value may
	// include the generator's own delay.
	Client bool
	// Results is the kind of results of a load that the objective judges. Empty means that the objective needs no load.
	Results scenario.LoadResult
	// Requires says what a scenario must have: "pods", "nodes", "nodeFailure", "fault" (of the control plane),
	// "members" (a fault and several etcd members), "signals" or "transitions". Empty means nothing.
	Requires string
	// Least is the smallest possible value, in Unit.
	Least float64
	// Most is the largest possible value, in Unit. 0 means the largest value of the unit, if the unit has one.
	Most float64

	// measure computes the value from the generator's own measurements.
	measure func(evidence) finding
}

// histogram is a quantile of a classic histogram, for each group of the labels in By.
type histogram struct {
	Quantile float64
	Metric   string
	// Match is the label matchers that select the series. $virtual stands for the constant virtual.
	Match string
	By    []string
}

// virtual is a pattern of resources that are not stored in etcd. The official SLOs of Kubernetes
// exclude these resources.
const virtual = "(self|local)?subjectaccessreviews|selfsubjectrulesreviews|selfsubjectreviews|tokenreviews|bindings"

// buckets returns the PromQL of the histogram's buckets.
func (h *histogram) buckets() string {
	match := strings.ReplaceAll(h.Match, "$virtual", virtual)
	return fmt.Sprintf("sum by (%s) (increase(%s_bucket{%s}[$window]))", strings.Join(slices.Concat(h.By, []string{"le"}), ", "), h.Metric, match)
}

// largest returns the largest possible value of the objective, or infinity if the value is unlimited.
func (o Objective) largest() float64 {
	switch {
	case o.Most > 0:
		return o.Most
	case o.Unit == scenario.Ratio:
		return 1
	}
	return math.Inf(1)
}

//go:embed objectives.yaml
var objectivesYAML []byte

// Objectives returns the built-in objectives: first the objectives on scraped metrics, then on the
// generator's measurements, then on faults.
var Objectives = sync.OnceValue(func() (all []Objective) {
	d := yaml.NewDecoder(bytes.NewReader(objectivesYAML))
	d.KnownFields(true)
	if err := d.Decode(&all); err != nil {
		panic(err) // the file is embedded in the program
	}
	measure := measured()
	maps.Copy(measure, recovered())
	maps.Copy(measure, replayed())
	for i := range all {
		o := &all[i]
		o.measure = measure[o.Name]
		if h := o.Histogram; h != nil {
			o.Expr = fmt.Sprintf("histogram_quantile(%g, %s)", h.Quantile, h.buckets())
		}
	}
	return all
})

func find(name string) *Objective {
	for _, o := range Objectives() {
		if o.Name == name {
			return &o
		}
	}
	return nil
}

func names() []string {
	var all []string
	for _, o := range Objectives() {
		all = append(all, o.Name)
	}
	return all
}

// lacks returns what the objective requires and the scenario does not have, and a hint on how to add it. Both are empty
// if nothing is missing.
func (o Objective) lacks(s *plan.Plan) (hint, lack string) {
	const noNodes = "set nodes.count"
	needsFault := o.Requires == "fault" || o.Requires == "members"
	switch {
	case o.Requires == "nodes" && s.Nodes.Count == 0:
		return noNodes, "there are no simulated nodes"
	case o.Requires == "nodeFailure" && !slices.ContainsFunc(s.Phases, failsNodes):
		return "add faults: [{kind: nodeFailure, fraction: 0.3}] to a phase", "no node fails in this scenario"
	case needsFault && len(withFault(s)) == 0:
		return "add faults: [{kind: kill, component: etcd-0, for: 5s}] to a phase", "no fault of the control plane in this scenario"
	case o.Requires == "signals" && len(s.Signals) == 0:
		return "add signals: [{name: fsync, expr: ..., steady: [...], under: [...]}]", "the scenario has no signals"
	case o.Requires == "transitions" && len(s.Transitions) == 0:
		return "add transitions: [{name: pod-ready}]", "the scenario has no transitions"
	case s.Recorded():
	case o.Requires == "members" && s.ControlPlane.Count(control.KindEtcd) <= 1:
		return "set controlPlane.etcd.members: 3", "a single etcd member cannot change its leader"
	case o.Requires == "pods" && len(s.StartsPods) == 0:
		hint = "add actions: [{kind: deploy, name: web, replicas: 100}] to a phase"
		if s.Nodes.Count == 0 {
			hint = noNodes + ", and " + hint
		}
		return hint, "nothing is deployed in this scenario"
	case o.Requires == "pods" && s.Nodes.Count == 0:
		return noNodes, "no pod starts: there are no simulated nodes"
	}
	return "", ""
}

// during returns the phases in which the objective can have a value.
func (o Objective) during(s *plan.Plan) []string {
	switch o.Requires {
	case "pods":
		return s.StartsPods
	case "nodeFailure":
		return s.PhaseNames()[slices.IndexFunc(s.Phases, failsNodes):]
	case "fault", "members":
		return withFault(s)
	}
	return s.PhaseNames()
}

func withFault(s *plan.Plan) []string {
	var all []string
	for _, f := range s.Faults {
		if !f.OfNodes() && !slices.Contains(all, f.Phase) {
			all = append(all, f.Phase)
		}
	}
	return all
}

// longest is the largest possible value of an objective in seconds: the maximum length of a phase.
const longest = 24 * 3600

// impossible returns a reason (`wrong`) and a hint if a gate with the bound b can never fail or never pass, otherwise
// "" and "". op is "<=" for max and ">=" for min. impossible does not check the objective "expr".
func (o Objective) impossible(b *scenario.Bound, op string) (hint, wrong string) {
	if o.Name == "expr" {
		return "", ""
	}
	most, upTo := o.largest(), "at most"
	if op == "<=" {
		upTo = "less than"
	}
	switch {
	case b.Value < 0:
		return "write 0 or more, for example " + o.Unit.Example(), fmt.Sprintf("%s is below 0, but %s never is", b, o.Name)
	case b.Value > most && o.Unit == scenario.Ratio && b.Value <= 100 && b.Fits(scenario.Count):
		return fmt.Sprintf("write %g%% or %g", b.Value, b.Value/100), fmt.Sprintf("%s is %g%%, and %s is at most 100%%", b, b.Value*100, o.Name)
	case b.Value > most && o.Unit == scenario.Ratio:
		return upTo + " 100%", fmt.Sprintf("%s is over 100%%, but %s never is", b, o.Name)
	case b.Value > most && !math.IsInf(most, 1):
		return fmt.Sprintf("%s %g", upTo, most), fmt.Sprintf("%s is over %g, but %s never is", b, most, o.Name)
	case o.Unit == scenario.Count && b.Value != math.Trunc(b.Value):
		return fmt.Sprintf("write %g or %g", math.Floor(b.Value), math.Ceil(b.Value)), fmt.Sprintf("%s is not a whole number, and %s is a count", b, o.Name)
	case o.Unit == scenario.Seconds && b.Value > longest:
		return "at most 24h, the maximum length of a phase", fmt.Sprintf("%s is longer than any phase", b)
	case op == "<=" && b.Value >= most:
		return "write less, or leave the gate out", fmt.Sprintf("%s is never over %s: the gate cannot fail", o.Name, b)
	case op == ">=" && b.Value <= o.Least:
		return "write more, or leave the gate out", fmt.Sprintf("%s is never under %s: the gate cannot fail", o.Name, b)
	case op == "<=" && b.Value < o.Least:
		return "write more; to begin with, " + o.Default, fmt.Sprintf("%s is never %s or less: the gate cannot pass", o.Name, b)
	}
	return "", ""
}

// contradictions returns an error for each pair of gates on the same value that cannot both pass.
func contradictions(s *plan.Plan, all []Compiled) []error {
	var errs []error
	for i, c := range all {
		if c.alert != nil {
			errs = append(errs, contradictingAlerts(s, c, all[:i])...)
			continue
		}
		for _, other := range all[:i] {
			same := other.alert == nil && c.Objective == other.Objective && canonical(c.Expr) == canonical(other.Expr) && c.Load == other.Load && c.Signal == other.Signal &&
				c.Transition == other.Transition && c.quantile() == other.quantile() && c.Figure == other.Figure && sameSet(c.Over, other.Over)
			low, high := c, other
			if c.op == "<=" {
				low, high = other, c
			}
			if same && c.op != other.op && low.bound > high.bound {
				field, hint := "min", fmt.Sprintf("write at most %s", high.Max)
				if c.op == "<=" {
					field, hint = "max", fmt.Sprintf("write at least %s", low.Min)
				}
				if _, vain := c.objective.impossible(high.Max, ">="); field == "min" && vain != "" {
					hint = "leave one of them out"
				} else if _, vain := c.objective.impossible(low.Min, "<="); field == "max" && vain != "" {
					hint = "leave one of them out"
				}
				errs = append(errs, s.Errorf("gates."+c.Name+"."+field, hint, "gate %q requires %s or more, and gate %q requires %s or less: they cannot both pass", low.Name, low.Min, high.Name, high.Max))
			}
		}
	}
	return errs
}

// contradictingAlerts returns an error if one gate requires an alert to fire and another gate requires the alert to
// stay silent in the same phases. It compares the gate c with the gates before it.
func contradictingAlerts(s *plan.Plan, c Compiled, before []Compiled) []error {
	for _, other := range before {
		if other.alert == nil || other.Alert != c.Alert || other.alert.fires == c.alert.fires {
			continue
		}
		fires, silent := c, other
		if other.alert.fires {
			fires, silent = other, c
		}
		if !slices.ContainsFunc(fires.Over, func(p string) bool { return !slices.Contains(silent.Over, p) }) {
			return []error{s.Errorf("gates."+c.Name+".fires", "name other phases in over", "gates %q and %q require that %s fires and that it does not fire: they cannot both pass", other.Name, c.Name, c.Alert)}
		}
	}
	return nil
}

func sameSet(a, b []string) bool {
	in := func(of []string) func(string) bool { return func(x string) bool { return !slices.Contains(of, x) } }
	return !slices.ContainsFunc(a, in(b)) && !slices.ContainsFunc(b, in(a))
}

// isGate reports whether path is the path of a gate in the scenario. Figures have other paths.
func isGate(path string) bool { return strings.HasPrefix(path, "gates.") }

// unattainable returns an error if the gate can never pass, because its bound on a phase duration contradicts the
// length of the phase, or because a signal does not name the phases that the gate needs.
func (c *Compiled) unattainable(s *plan.Plan, path string) error {
	if s.Recorded() || !isGate(path) {
		return nil
	}
	for _, name := range c.Over {
		if p := s.Phase(name); c.objective.Name == "phase-duration" && c.op == "<=" && p.For.D().Seconds() > c.bound {
			return s.Errorf(path+".max", fmt.Sprintf("more than %s", p.For), "phase %q lasts %s", name, p.For)
		} else if c.objective.Name == "phase-duration" && c.op == ">=" && p.Until.IsZero() && p.For.D().Seconds() < c.bound {
			return s.Errorf(path+".min", fmt.Sprintf("at most %s, or a longer phase", p.For), "phase %q lasts %s", name, p.For)
		} else if c.objective.Name == "phase-duration" && c.op == ">=" && !p.Until.IsZero() && p.Within.D().Seconds() < c.bound {
			return s.Errorf(path+".min", fmt.Sprintf("at most %s, or increase within:", p.Within), "phase %q ends after %s, whether or not its condition is met", name, p.Within)
		}
	}
	for _, signal := range s.Signals {
		if c.objective.Name == "signal-returned" && len(signal.After) == 0 && (c.Signal == "" || c.Signal == signal.Name) {
			return s.Errorf(path+".objective", fmt.Sprintf("add after: to signal %q, or name another with signal:", signal.Name), "signal %q names no phases after the fault", signal.Name)
		}
	}
	return nil
}
