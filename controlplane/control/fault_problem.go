package control

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The bounds of a fault's fields.
const (
	maxFaultFor         = 24 * time.Hour
	maxFaultDelay       = time.Minute
	maxFaultDescriptors = 1 << 20
	maxFaultWriters     = 64
	minFaultSize        = 4 << 10
	maxFaultSize        = 1 << 30
	minFaultQuota       = 1 << 20
	maxFaultQuota       = 8 << 30
	maxWebhookTimeout   = 30
	maxWebhooks         = 32
	minThrottle         = 0.01
)

const throttleHint = "requests a second, from 0.01 to 1000000"

// The values of Fault.Files.
const (
	FaultFilesWAL = "wal"
	FaultFilesAll = "all"
)

// resourceName matches names such as "pods" and "deployments.apps".
var resourceName = regexp.MustCompile(`^[a-z][a-z0-9]*(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// faultField describes one field of a Fault: its name in a scenario, whether it is set, and what is wrong with it.
type faultField struct {
	name string
	set  bool
	// needed is the hint if the field is missing. wrong says what is wrong with the value; "" means that the value is
	// valid. allowed is the hint for a wrong value.
	needed, wrong, allowed string
}

func (f Fault) fields() []faultField {
	return []faultField{
		{name: "components", set: len(f.Components) > 0, needed: selectorHint},
		{name: "peers", set: len(f.Peers) > 0},
		{name: "for", set: f.For != 0, wrong: outside(f.For, 0, maxFaultFor), allowed: "at most 24h; without this field, the fault lasts until it is cleared"},
		{name: "delay", set: f.Delay != 0, needed: `for example "25ms"`, wrong: outside(f.Delay, 0, maxFaultDelay), allowed: "at most 1m"},
		{name: "jitter", set: f.Jitter != 0, wrong: outside(f.Jitter, 0, max(f.Delay, 0)), allowed: "at most the delay, because the jitter may be subtracted from the delay"},
		{name: "files", set: f.Files != "", wrong: unless(slices.Contains([]string{FaultFilesWAL, FaultFilesAll}, f.Files), "unknown value %q", f.Files), allowed: "wal or all"},
		{name: "limit", set: f.Limit != 0, needed: "a number of open files, for example 1024", wrong: outside(f.Limit, 0, maxFaultDescriptors), allowed: fmt.Sprintf("at most %d", maxFaultDescriptors)},
		{name: "writers", set: f.Writers != 0, wrong: outside(f.Writers, 1, maxFaultWriters), allowed: fmt.Sprintf("from 1 to %d", maxFaultWriters)},
		{name: "size", set: f.Size != 0, wrong: outside(size(f.Size), minFaultSize, maxFaultSize), allowed: "from 4KiB to 1GiB"},
		{name: "quota", set: f.Quota != 0, needed: `for example "16MiB"`, wrong: outside(size(f.Quota), minFaultQuota, maxFaultQuota), allowed: "from 1MiB to 8GiB"},
		{
			name: "resource", set: f.Resource != "", needed: `the resource whose creation calls the webhook, for example "pods" or "deployments.apps"`,
			wrong: unless(resourceName.MatchString(f.Resource), "%q is not a resource", f.Resource), allowed: `plural, for example "pods" or "deployments.apps"`,
		},
		{name: "fails", set: f.Fails},
		{name: "throttle", set: f.Throttle != 0, wrong: outside(f.Throttle, minThrottle, maxRate), allowed: throttleHint},
		{name: "ignore", set: f.Ignore},
		{name: "timeout", set: f.TimeoutSeconds != 0, wrong: outside(f.TimeoutSeconds, 1, maxWebhookTimeout), allowed: "from 1 to 30 seconds"},
		{name: "webhooks", set: f.Webhooks != 0, wrong: outside(f.Webhooks, 1, maxWebhooks), allowed: fmt.Sprintf("from 1 to %d", maxWebhooks)},
		{name: "mutates", set: f.Mutates},
		{name: "reinvoke", set: f.Reinvoke},
		{name: "to", set: f.To != "", needed: "a minor version, for example \"1.37\"", wrong: unless(isRelease(f.To), "unknown version %q", f.To), allowed: ReleaseHint(f.To)},
	}
}

type size int64

// String returns the number with its unit.
func (s size) String() string { return fmt.Sprintf("%d bytes", int64(s)) }

// outside returns a message if v is not between low and high, otherwise "".
func outside[T cmp.Ordered](v, low, high T) string {
	return unless(v >= low && v <= high, "%v is out of bounds", v)
}

// unless returns "" if right is true, otherwise the value formatted with format.
func unless(right bool, format string, value any) string {
	if right {
		return ""
	}
	return fmt.Sprintf(format, value)
}

// Problems returns the problems that can be found without a plane: fields that the kind does not have, missing fields,
// and values out of bounds. The path of a problem is the name of the field in a scenario: "components", "for", "delay",
// ...
func (f Fault) Problems() []Problem {
	kind, ok := FaultKindOf(f.Kind)
	if !ok || kind.OfNodes {
		return []Problem{{"kind", fmt.Sprintf("unknown kind of fault %q", f.Kind), strings.Join(FaultKinds(), ", ")}}
	}
	var all, bounds []Problem
	for _, field := range f.fields() {
		switch {
		case field.set && kind.Momentary && field.name == "for":
			all = append(all, Problem{"for", f.Kind + " does not have this field", "leave it out; to keep a component down for some time, use kill"})
		case field.set && !kind.Has(field.name):
			all = append(all, Problem{field.name, f.Kind + " does not have this field", takesHint(kind.Takes)})
		case !field.set && slices.Contains(kind.Needs, field.name):
			all = append(all, Problem{field.name, f.Kind + " requires this field", field.neededBy(kind)})
		}
		if field.set && field.wrong != "" {
			bounds = append(bounds, Problem{field.name, field.wrong, field.allowed})
		}
	}
	if kind.Check != nil {
		if p, wrong := kind.Check(f); wrong {
			bounds = append(bounds, p)
		}
	}
	return slices.Concat(all, f.componentProblems(kind), bounds)
}

func takesHint(fields []string) string {
	if len(fields) == 0 {
		return "leave it out; the fault affects all etcd members"
	}
	return "its fields are " + strings.Join(fields, ", ")
}

func (field faultField) neededBy(kind FaultKind) string {
	if field.name == "components" && kind.OfMembers() {
		return `for example "etcd-0", "etcd-leader", or "etcd" for all members`
	}
	return field.needed
}

const selectorHint = `a name such as "etcd-0", a kind such as "kube-apiserver" for all of its components, or "-leader" or "-follower" after etcd, kube-scheduler, kube-controller-manager or cloud-controller-manager`

func (f Fault) componentProblems(kind FaultKind) []Problem {
	var all []Problem
	check := func(path string, texts []string) {
		for i, text := range texts {
			s, ok := ParseSelector(text)
			switch {
			case slices.Contains(texts[:i], text):
				all = append(all, Problem{path, fmt.Sprintf("%q is listed twice", text), "name each component once; to affect two members, write for example etcd-1 and etcd-2"})
			case !ok && s.Role != "":
				all = append(all, Problem{path, fmt.Sprintf("%q: %s has no leader", text, s.Kind), fmt.Sprintf("name one component, for example %q", ComponentName(s.Kind, 0))})
			case !ok:
				all = append(all, Problem{path, fmt.Sprintf("unknown component %q", text), selectorHint})
			case len(kind.On) > 0 && !slices.Contains(kind.On, s.Kind):
				all = append(all, Problem{path, fmt.Sprintf("%s cannot be applied to %s", f.Kind, text), "for " + strings.Join(kind.On, " and ") + " only"})
			}
		}
	}
	check("components", f.Components)
	check("peers", f.Peers)
	return all
}

// ProblemsOn is like Problems. If Problems finds none, ProblemsOn checks whether a plane with config c has the fault's
// components and links.
func (f Fault) ProblemsOn(c Config) []Problem {
	all := f.Problems()
	if len(all) > 0 {
		return all
	}
	for path, texts := range map[string][]string{"components": f.Components, "peers": f.Peers} {
		for _, text := range texts {
			s, _ := ParseSelector(text)
			n := c.Count(s.Kind)
			switch {
			case n == 0:
				all = append(all, Problem{path, fmt.Sprintf("this control plane has no %s", s.Kind), "the setting " + KindOf(s.Kind).Field + " adds one"})
			case s.Name != "" && s.Index >= n:
				all = append(all, Problem{path, fmt.Sprintf("there is no %s", text), "there is " + names(s.Kind, n)})
			case s.Role == RoleFollower && n == 1:
				all = append(all, Problem{path, fmt.Sprintf("there is no %s", text), fmt.Sprintf("the only %s, %s, is the leader", s.Kind, ComponentName(s.Kind, 0))})
			}
		}
	}
	network := f.kind().Links
	switch {
	case network && !c.HasLinks():
		all = append(all, Problem{"kind", f.Kind + " requires links that can be delayed and cut, which this control plane does not have", "start it with networkFaults: on"})
	case network && len(all) == 0 && len(f.Peers) > 0 && !c.mayLink(f.Components, f.Peers):
		all = append(all, NoLink(f.Components, f.Peers))
	}
	slices.SortStableFunc(all, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return all
}

func (c Config) mayLink(components, peers []string) bool {
	return slices.ContainsFunc(components, func(component string) bool {
		a, _ := ParseSelector(component)
		return slices.ContainsFunc(peers, func(peer string) bool {
			b, _ := ParseSelector(peer)
			same := a.Name != "" && a.Name == b.Name || a.Role != "" && a.Role == b.Role
			if a.Kind == b.Kind {
				return a.Kind == KindEtcd && c.Count(KindEtcd) > 1 && !same
			}
			return a.Kind == KindAPIServer || b.Kind == KindAPIServer
		})
	})
}

// NoLink returns the problem of a fault whose components have no link to the peers, or no link at all if peers is
// empty.
func NoLink(components, peers []string) Problem {
	p := Problem{
		Path: "components", Msg: "there is no link from or to " + strings.Join(components, ", "),
		Hint: "API servers have links to etcd members and to metrics-server, and etcd members have links to each other",
	}
	if len(peers) > 0 {
		p.Path, p.Msg = "peers", fmt.Sprintf("there is no link between %s and %s", strings.Join(components, ", "), strings.Join(peers, ", "))
	}
	return p
}

func names(kind string, n int) string {
	if n == 1 {
		return ComponentName(kind, 0)
	}
	return ComponentName(kind, 0) + " to " + ComponentName(kind, n-1)
}

// InvalidFault is the error for a fault that is not possible on a plane.
type InvalidFault struct {
	Problems []Problem `json:"problems"`
}

// Error returns one line for each problem.
func (e *InvalidFault) Error() string {
	var lines []string
	for _, p := range e.Problems {
		lines = append(lines, fmt.Sprintf("%s: %s (%s)", p.Path, p.Msg, p.Hint))
	}
	return strings.Join(lines, "\n")
}
