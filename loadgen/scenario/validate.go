package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/builtin"
)

// Bounds of a scenario's values. They catch typing errors: each bound is far above the capacity of one machine.
const (
	MaxNodes   = 100_000
	MaxRate    = 100_000 // highest rate of a load, per second
	maxWatches = 1_000_000
	maxPods    = 500_000
	minPhase   = time.Second // minimum length of a phase, because scrapes are at least this far apart
	maxPhase   = 24 * time.Hour
	maxSeed    = 1 << 53 // largest seed: larger integers are not exact in a float64

	MinScrape, MaxScrape = time.Second, 5 * time.Minute // shortest and longest time between two scrapes
)

// dnsLabel matches names that become part of object names.
var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)

var numberOrPercent = regexp.MustCompile(`^[0-9]{1,7}%?$`)

// sizeWithB matches a size whose unit ends in B, such as 1MiB. Kubernetes quantities have no such units.
var sizeWithB = regexp.MustCompile(`^([0-9.]+) ?([kKmMgGtT])i?[bB]$`)

// validator checks a scenario, and collects the errors in the order of the file.
type validator struct {
	s    *Scenario
	errs []error
	// plane is the control plane after all upgrades and downgrades checked so far; nil before the first.
	plane *control.Config
}

func (v *validator) fail(path, hint, format string, args ...any) {
	if len(v.errs) >= strictyaml.MaxErrors {
		v.errs = append(v.errs, nil) // s.doc.Join only counts the errors above MaxErrors
		return
	}
	v.errs = append(v.errs, v.s.Errorf(path, hint, format, args...))
}

func (v *validator) oneOf(path, value string, allowed ...string) bool {
	if slices.Contains(allowed, value) {
		return true
	}
	hint := "one of " + strings.Join(allowed, ", ")
	if s := strictyaml.Suggest(value, allowed); s != "" && value != "" {
		hint = fmt.Sprintf("did you mean %q? %s", s, hint)
	}
	if value == "" {
		v.fail(path, hint, "is missing")
	} else {
		v.fail(path, hint, "unknown value %q", value)
	}
	return false
}

func (v *validator) name(path, value string) {
	const form = "lower-case letters, digits and -, at most 40"
	switch {
	case value == "":
		v.fail(path, form, "is missing")
	case !dnsLabel.MatchString(value):
		v.fail(path, form, "%q is not a usable name", value)
	}
}

func (v *validator) unique(path, what, name, hint string, seen map[string]bool) {
	if seen[name] {
		v.fail(path+".name", hint, "%s %q appears twice", what, name)
	}
	seen[name] = true
}

func (v *validator) uniqueName(path, what, name string, seen map[string]bool) {
	v.name(path+".name", name)
	v.unique(path, what, name, "give each "+what+" a unique name", seen)
}

func (v *validator) between(path string, value, low, high float64) {
	if value < low || value > high {
		if value == 0 && v.s.doc != nil && !v.s.doc.Written(path) {
			v.fail(path, fmt.Sprintf("from %s to %s", plain(low), plain(high)), "is missing")
			return
		}
		text := plain(value)
		if v.s.doc != nil && v.s.doc.Text(path) != "" {
			text = v.s.doc.Text(path)
		}
		v.fail(path, fmt.Sprintf("from %s to %s", plain(low), plain(high)), "%s is out of bounds", text)
	}
}

func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func (v *validator) quantity(path, value string, check func(resource.Quantity)) {
	if value == "" {
		return
	}
	q, err := builtin.ParseQuantity(value)
	if err != nil || q.Sign() <= 0 {
		hint := "write a positive Kubernetes quantity, for example 500m or 32Gi"
		if m := sizeWithB.FindStringSubmatch(value); m != nil {
			hint = "write " + m[1] + strings.ToUpper(m[2]) + "i"
		}
		v.fail(path, hint, "%q is not a quantity", value)
		return
	}
	check(q)
}

func (v *validator) cpu(path, value string) {
	v.quantity(path, value, func(q resource.Quantity) {
		if most := resource.MustParse("10k"); !v.s.recorded && q.Cmp(most) > 0 {
			v.fail(path, "write a number of CPUs, for example 8 or 500m", "%s is %s CPUs", value, plain(q.AsApproximateFloat64()))
		}
	})
}

func (v *validator) memory(path, value string, least int64) {
	v.quantity(path, value, func(q resource.Quantity) {
		number := strings.TrimRight(value, "num")
		switch {
		case v.s.recorded:
		case number != value:
			v.fail(path, fmt.Sprintf("write %sMi", number), "%s is %s bytes", value, plain(q.AsApproximateFloat64()))
		case q.CmpInt64(least) < 0:
			v.fail(path, fmt.Sprintf("at least %s, with a unit, for example 32Mi or 32Gi", resource.NewQuantity(least, resource.BinarySI)), "%s is only %s bytes", value, plain(q.AsApproximateFloat64()))
		}
	})
}

func (s *Scenario) validate() error {
	v := &validator{s: s}
	if s.APIVersion != APIVersion {
		v.fail("apiVersion", "write apiVersion: "+APIVersion, "unknown version %q", s.APIVersion)
	}
	if s.Kind != Kind {
		v.fail("kind", "write kind: "+Kind, "unknown kind %q", s.Kind)
	}
	v.name("name", s.Name)
	v.between("seed", float64(s.Seed), -maxSeed, maxSeed)
	if !s.recorded { // another version of Stormglass may have recorded the run
		v.controlPlane()
	}
	v.nodes()
	if d := s.Record.Interval.D(); d < MinScrape || d > MaxScrape {
		v.fail("record.interval", "from 1s to 5m", "%s is out of bounds", s.Record.Interval)
	}
	v.namespaceGroups()
	created := map[string]bool{}
	v.setup(created)
	for i := range s.Objects {
		path := fmt.Sprintf("objects[%d]", i)
		if !s.Objects[i].Has() {
			v.fail(path+".templates", "write templates: [{file: web.yaml, replicas: 100}]", "is missing")
			continue
		}
		v.batch(path, &s.Objects[i])
	}
	v.minAchieved("minAchieved", s.MinAchieved)
	v.tracing(s.Tracing)
	v.namespaceLabels("namespaceLabels", s.NamespaceLabels)
	loadNames := map[string]bool{}
	for i := range s.Background {
		path := fmt.Sprintf("background[%d]", i)
		v.uniqueLoad(path, &s.Background[i], loadNames)
		v.load(path, &s.Background[i], nil)
	}
	v.phases(loadNames, created)
	v.teardown()
	v.hooks()
	if len(v.errs) == 0 {
		v.targets()
	}
	v.variants()
	v.signals()
	v.transitions()
	v.gates()
	v.aborts()
	v.compare()
	v.capacity()
	return s.doc.Join(v.errs)
}

func (v *validator) controlPlane() {
	for _, p := range v.s.ControlPlane.Problems() {
		v.fail("controlPlane."+p.Path, p.Hint, "%s", p.Msg)
	}
	v.schedulerConfig()
}

func (v *validator) phases(loadNames, created map[string]bool) {
	if len(v.s.Phases) == 0 {
		v.fail("phases", "write at least one phase: - {name: steady, for: 30s}", "no phases")
	}
	seen := map[string]bool{}
	held := map[string]*Load{}
	deployed := map[string]*Action{}
	for i := range v.s.Phases {
		p := &v.s.Phases[i]
		path := fmt.Sprintf("phases[%d]", i)
		v.uniqueName(path, "phase", p.Name, seen)
		v.phaseEnd(path, p)
		for j := range p.Actions {
			at := fmt.Sprintf("%s.actions[%d]", path, j)
			v.action(at, &p.Actions[j], deployed, created)
			v.actionTimes(at, p, &p.Actions[j])
		}
		v.awaited(path, p, deployed)
		before := len(v.errs)
		for j := range p.Faults {
			v.fault(fmt.Sprintf("%s.faults[%d]", path, j), p, &p.Faults[j])
			v.inOrder(fmt.Sprintf("%s.faults[%d]", path, j), p, j)
		}
		if len(v.errs) == before { // after an error, the components of the fault are unknown
			v.clashes(path, p)
		}
		v.loadsOf(path, p, held, loadNames)
		v.pprof(path, p)
	}
}

func (v *validator) phaseEnd(path string, p *Phase) {
	switch {
	case p.For == 0 && p.Until.IsZero():
		v.fail(path, "write for: 30s, or until: podsReady with within: 5m", "phase %q has no end", p.Name)
	case p.For != 0 && !p.Until.IsZero():
		v.fail(path+".until", "keep one of them", "phase %q has both for and until", p.Name)
	case !p.Until.IsZero():
		if v.until(path+".until", p) && p.Within == 0 {
			v.fail(path+".until", "add within: 5m", "phase %q has no time limit, so it may never end", p.Name)
		}
		if p.Until.Is("nodesNotReady") && !v.failsNodesBy(p) {
			v.fail(path+".until", "add faults: [{kind: nodeFailure, fraction: 0.3}]", "no node fails before the end of phase %q", p.Name)
		}
		if (p.Until.Is("nodesReady") || p.Until.Is("nodesNotReady")) && v.s.Nodes.Count == 0 {
			v.fail(path+".until", "set nodes.count", "there are no simulated nodes")
		}
		if p.Until.Is("objectsMade") && !slices.ContainsFunc(p.Load, func(l Load) bool { return l.Kind == "objects" }) {
			v.fail(path+".until", "add load: "+objectsKind().example, "phase %q has no load of kind objects", p.Name)
		}
		if p.Until.Is("resourcesServed") && !slices.ContainsFunc(p.Manifests(), func(m Manifest) bool { return m.Defines() }) {
			v.fail(path+".until", "add actions: [{kind: create, object: {kind: CustomResourceDefinition, ...}}]", "phase %q defines no custom resource", p.Name)
		}
	case p.Within != 0:
		v.fail(path+".within", "leave it out; it is only a time limit for until", "phase %q has a fixed length", p.Name)
	}
	for field, d := range map[string]Duration{"for": p.For, "within": p.Within} {
		if d != 0 && d.D() < minPhase && !v.s.recorded {
			v.fail(path+"."+field, fmt.Sprintf("from %s to 24h", minPhase), "%s is out of bounds", d)
		}
	}
	if p.For.D() > maxPhase || p.Within.D() > maxPhase {
		field := map[bool]string{true: ".for", false: ".within"}[p.For.D() > maxPhase]
		v.fail(path+field, "at most 24h", "phase %q is too long", p.Name)
	}
}

// lasts returns the length of the phase, or its time limit if a condition ends it. `what` is the text that introduces
// this length in messages.
func (p *Phase) lasts() (length time.Duration, what string) {
	if p.Until.IsZero() {
		return p.For.D(), "the phase lasts"
	}
	return p.Within.D(), "the phase lasts at most"
}

// awaited checks the names of the workloads for which a phase waits.
func (v *validator) awaited(path string, p *Phase, deployed map[string]*Action) {
	if len(p.Of) > 0 && !p.Until.Is("podsReady") {
		v.fail(path+".of", "add until: podsReady, or leave it out", "has no effect without until: podsReady")
		return
	}
	for j, name := range p.Of {
		at := fmt.Sprintf("%s.of[%d]", path, j)
		if slices.Contains(p.Of[:j], name) {
			v.fail(at, "name each once", "%q appears twice", name)
		}
		v.known(at, "workload", name, slices.Sorted(maps.Keys(deployed)))
	}
}

func (v *validator) failsNodesBy(p *Phase) bool {
	for i := range v.s.Phases {
		q := &v.s.Phases[i]
		if stops := slices.ContainsFunc(q.Faults, Fault.StopsNodes); stops || q == p {
			return stops
		}
	}
	return false
}

var actionKinds = []string{"deploy", "rollingUpdate", "scale", "delete", "demand", "create", "apply", "patch", "evict", "exec", "restart", "custom"}

func (v *validator) action(path string, a *Action, deployed map[string]*Action, created map[string]bool) {
	if !v.oneOf(path+".kind", a.Kind, actionKinds...) {
		return
	}
	if a.OnObjects() {
		v.objectAction(path, a)
		return
	}
	if a.Kind == "custom" {
		v.deployShape(path, a)
		v.name(path+".name", a.Name)
		return
	}
	if a.Kind == "create" {
		v.deployShape(path, a)
		v.creation(path, a, created)
		return
	}
	v.name(path+".name", a.Name)
	v.between(path+".replicas", float64(a.Replicas), 0, maxPods)
	v.cpu(path+".cpu", a.CPU)
	v.memory(path+".memory", a.Memory, 1<<10)
	if a.EvictAfter.D()%time.Second != 0 && !v.s.recorded {
		v.fail(path+".evictAfter", fmt.Sprintf("write %s", Duration(a.EvictAfter.D().Truncate(time.Second)+time.Second)), "%s is not a whole number of seconds, as the API server requires for a toleration", a.EvictAfter)
	}
	for _, share := range [][2]string{{"maxSurge", a.MaxSurge}, {"maxUnavailable", a.MaxUnavailable}} {
		if share[1] != "" && !numberOrPercent.MatchString(share[1]) {
			v.fail(path+"."+share[0], "for example 25% or 10", "%q is neither a percentage nor a number", share[1])
		}
	}
	if percent, found := strings.CutSuffix(a.MaxUnavailable, "%"); found {
		if n, err := strconv.Atoi(percent); err == nil && n > 100 {
			v.fail(path+".maxUnavailable", "at most 100%", "%s is more than 100%% of the pods", a.MaxUnavailable)
		}
	}
	v.deployShape(path, a)
	v.workload(path, a, deployed[a.Name])
	if a.PriorityClass != "" && !v.s.recorded {
		v.existing(path+".priorityClass", "PriorityClass", "PriorityClass", a.PriorityClass, created)
	}
	v.autoscale(path, a, deployed[a.Name])
	v.gang(path, a)
	v.schedulerName(path, a)
	v.devices(path, a)
	switch {
	case a.Kind == "deploy":
		deployed[a.Name] = a
		if a.Replicas == 0 && a.WorkloadKind() != DaemonSet {
			v.fail(path+".replicas", "write replicas: 100", "the number of replicas is missing")
		}
	case deployed[a.Name] == nil:
		v.fail(path+".name", "deploy it earlier in this phase, or in an earlier phase", "%s of %q, which is not deployed yet", a.Kind, a.Name)
	case a.Kind == "delete":
		delete(deployed, a.Name)
	case a.Kind == "scale" && a.Replicas == 0 && !v.s.recorded && v.s.doc != nil && !v.s.doc.Written(path+".replicas"):
		v.fail(path+".replicas", "write replicas: 100, or replicas: 0 to remove all pods", "the number of replicas is missing")
	}
}

func isZero(s string) bool { return strings.Trim(s, "0%") == "" }
