package control

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The bounds of a fault's fields. They keep typing errors out rather than
// extremes: a day for a length, a minute for a delay.
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
)

// The values of Fault.Files.
const (
	FaultFilesWAL = "wal"
	FaultFilesAll = "all"
)

// resourceName is "pods" or "deployments.apps".
var resourceName = regexp.MustCompile(`^[a-z][a-z0-9]*(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// faultField is one field of a Fault, by the name that a scenario gives it.
type faultField struct {
	name string
	set  func(Fault) bool
}

func faultFields() []faultField {
	return []faultField{
		{"components", func(f Fault) bool { return len(f.Components) > 0 }},
		{"peers", func(f Fault) bool { return len(f.Peers) > 0 }},
		{"for", func(f Fault) bool { return f.For != 0 }},
		{"delay", func(f Fault) bool { return f.Delay != 0 }},
		{"jitter", func(f Fault) bool { return f.Jitter != 0 }},
		{"files", func(f Fault) bool { return f.Files != "" }},
		{"limit", func(f Fault) bool { return f.Limit != 0 }},
		{"writers", func(f Fault) bool { return f.Writers != 0 }},
		{"size", func(f Fault) bool { return f.Size != 0 }},
		{"quota", func(f Fault) bool { return f.Quota != 0 }},
		{"resource", func(f Fault) bool { return f.Resource != "" }},
		{"fails", func(f Fault) bool { return f.Fails }},
		{"ignore", func(f Fault) bool { return f.Ignore }},
		{"timeout", func(f Fault) bool { return f.TimeoutSeconds != 0 }},
	}
}

// faultTakes lists the fields that a kind takes and those that it needs, and the
// kinds of component that it can be on: none means all.
type faultTakes struct {
	takes, needs []string
	kinds        []string
}

func takesOf(kind string) (faultTakes, bool) {
	linked := []string{KindEtcd, KindAPIServer}
	switch kind {
	case FaultSlowFsync:
		return faultTakes{[]string{"components", "for", "delay", "jitter", "files"}, []string{"components", "delay"}, []string{KindEtcd}}, true
	case FaultDiskContention:
		return faultTakes{[]string{"for", "writers", "size"}, nil, nil}, true
	case FaultNetworkDelay:
		return faultTakes{[]string{"components", "peers", "for", "delay", "jitter"}, []string{"components", "delay"}, linked}, true
	case FaultPartition:
		return faultTakes{[]string{"components", "peers", "for"}, []string{"components"}, linked}, true
	case FaultPause, FaultKill:
		return faultTakes{[]string{"components", "for"}, []string{"components"}, nil}, true
	case FaultRestart:
		return faultTakes{[]string{"components"}, []string{"components"}, nil}, true
	case FaultRestore:
		return faultTakes{}, true
	case FaultDescriptors:
		return faultTakes{[]string{"components", "for", "limit"}, []string{"components", "limit"}, nil}, true
	case FaultWebhook:
		return faultTakes{[]string{"for", "delay", "jitter", "resource", "fails", "ignore", "timeout"}, []string{"resource"}, nil}, true
	case FaultQuota:
		return faultTakes{[]string{"for", "quota"}, []string{"quota"}, nil}, true
	}
	return faultTakes{}, false
}

// Problems checks what can be checked without a plane: the fields that the kind
// takes and needs, and their bounds. A problem's path is the field's name in a
// scenario: "components", "for", "delay", ...
func (f Fault) Problems() []Problem {
	rule, ok := takesOf(f.Kind)
	if !ok {
		return []Problem{{"kind", fmt.Sprintf("%q is no kind of fault", f.Kind), strings.Join(FaultKinds(), ", ")}}
	}
	var all []Problem
	for _, field := range faultFields() {
		switch set := field.set(f); {
		case set && f.Momentary() && field.name == "for":
			all = append(all, Problem{"for", f.Kind + " has no length", "kill keeps a component down for a time"})
		case set && !slices.Contains(rule.takes, field.name):
			all = append(all, Problem{field.name, f.Kind + " does not take it", takesHint(rule.takes)})
		case !set && slices.Contains(rule.needs, field.name):
			all = append(all, Problem{field.name, f.Kind + " needs it", neededHint(f.Kind, field.name)})
		}
	}
	all = append(all, f.componentProblems(rule)...)
	return append(all, f.boundProblems()...)
}

func takesHint(fields []string) string {
	if len(fields) == 0 {
		return "leave it out: it is of all of etcd"
	}
	return "it takes " + strings.Join(fields, ", ")
}

func neededHint(kind, field string) string {
	switch field {
	case "components":
		if kind == FaultSlowFsync {
			return `as "etcd-0", "etcd-leader", or "etcd" for all members`
		}
		return selectorHint
	case "delay":
		return `as "25ms"`
	case "limit":
		return "open files, as 1024"
	case "resource":
		return `whose creation it is asked about, as "pods" or "deployments.apps"`
	case "quota":
		return `as "16MiB"`
	}
	return ""
}

const selectorHint = `a name as "etcd-0", a kind as "kube-apiserver" for all of it, or "-leader" or "-follower" after etcd, kube-scheduler or kube-controller-manager`

func (f Fault) componentProblems(rule faultTakes) []Problem {
	var all []Problem
	check := func(path string, texts []string) {
		for i, text := range texts {
			s, ok := ParseSelector(text)
			switch {
			case slices.Contains(texts[:i], text):
				all = append(all, Problem{path, fmt.Sprintf("%q is there twice", text), "it means the same component each time; name two, as etcd-1 and etcd-2"})
			case !ok && s.Role != "":
				all = append(all, Problem{path, fmt.Sprintf("%q: API servers are equals", text), `take one by name, as "kube-apiserver-0"`})
			case !ok:
				all = append(all, Problem{path, fmt.Sprintf("%q is no component", text), selectorHint})
			case len(rule.kinds) > 0 && !slices.Contains(rule.kinds, s.Kind):
				all = append(all, Problem{path, fmt.Sprintf("%s is not for %s", f.Kind, text), "for " + strings.Join(rule.kinds, " and ") + " only"})
			}
		}
	}
	check("components", f.Components)
	check("peers", f.Peers)
	return all
}

func (f Fault) boundProblems() []Problem {
	var all []Problem
	wrong := func(bad bool, path, hint, format string, args ...any) {
		if bad {
			all = append(all, Problem{path, fmt.Sprintf(format, args...), hint})
		}
	}
	wrong(f.For < 0 || f.For > maxFaultFor, "for", "to 24h; none: until it is cleared", "%s is out of bounds", f.For)
	wrong(f.Delay < 0 || f.Delay > maxFaultDelay, "delay", "to 1m", "%s is out of bounds", f.Delay)
	wrong(f.Jitter < 0 || f.Jitter > max(f.Delay, 0), "jitter", "at most the delay, from which it may be taken", "%s is out of bounds", f.Jitter)
	wrong(f.Files != "" && f.Files != FaultFilesWAL && f.Files != FaultFilesAll, "files", "wal or all", "%q is not known", f.Files)
	wrong(f.Limit > maxFaultDescriptors, "limit", fmt.Sprintf("to %d", maxFaultDescriptors), "%d is out of bounds", f.Limit)
	wrong(f.Writers < 0 || f.Writers > maxFaultWriters, "writers", fmt.Sprintf("from 1 to %d", maxFaultWriters), "%d is out of bounds", f.Writers)
	wrong(f.Size != 0 && (f.Size < minFaultSize || f.Size > maxFaultSize), "size", "from 4KiB to 1GiB", "%d bytes is out of bounds", f.Size)
	wrong(f.Quota != 0 && (f.Quota < minFaultQuota || f.Quota > maxFaultQuota), "quota", "from 1MiB to 8GiB", "%d bytes is out of bounds", f.Quota)
	wrong(f.Resource != "" && !resourceName.MatchString(f.Resource), "resource", `plural, as "pods" or "deployments.apps"`, "%q is no resource", f.Resource)
	wrong(f.TimeoutSeconds < 0 || f.TimeoutSeconds > maxWebhookTimeout, "timeout", "from 1 to 30 seconds", "%d is out of bounds", f.TimeoutSeconds)
	wrong(f.Kind == FaultWebhook && f.Delay == 0 && !f.Fails, "delay", "give a delay, or fails", "a webhook that neither waits nor fails breaks nothing")
	return all
}

// ProblemsOn checks the fault against the plane that it is meant for: whether
// there are such components and links. It begins with Problems.
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
			case s.Name != "" && s.Index >= n:
				all = append(all, Problem{path, fmt.Sprintf("there is no %s", text), "there is " + names(s.Kind, n)})
			case s.Role == RoleFollower && n == 1:
				all = append(all, Problem{path, fmt.Sprintf("there is no %s", text), fmt.Sprintf("there is one %s, %s, and it leads", s.Kind, ComponentName(s.Kind, 0))})
			}
		}
	}
	network := f.Kind == FaultNetworkDelay || f.Kind == FaultPartition
	switch {
	case network && !c.HasLinks():
		all = append(all, Problem{"kind", f.Kind + " needs links that can be delayed and cut, and this plane has none", "start the plane with networkFaults: on"})
	case network && len(all) == 0 && len(f.Peers) > 0 && !c.mayLink(f.Components, f.Peers):
		all = append(all, NoLink(f.Components, f.Peers))
	}
	slices.SortStableFunc(all, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// mayLink tells whether a link may join some of the components with some of the peers.
func (c Config) mayLink(components, peers []string) bool {
	return slices.ContainsFunc(components, func(component string) bool {
		a, _ := ParseSelector(component)
		return slices.ContainsFunc(peers, func(peer string) bool {
			b, _ := ParseSelector(peer)
			same := a.Name != "" && a.Name == b.Name || a.Role != "" && a.Role == b.Role
			return a.Kind != b.Kind || a.Kind == KindEtcd && c.Count(KindEtcd) > 1 && !same
		})
	})
}

// NoLink is the problem of components between which there is no link.
func NoLink(components, peers []string) Problem {
	p := Problem{
		Path: "components", Msg: "no link begins or ends at " + strings.Join(components, ", "),
		Hint: "links lead from API servers to etcd members, and between those",
	}
	if len(peers) > 0 {
		p.Path, p.Msg = "peers", fmt.Sprintf("no link joins %s and %s", strings.Join(components, ", "), strings.Join(peers, ", "))
	}
	return p
}

// names is "etcd-0", or "etcd-0 to etcd-2".
func names(kind string, n int) string {
	if n == 1 {
		return ComponentName(kind, 0)
	}
	return ComponentName(kind, 0) + " to " + ComponentName(kind, n-1)
}

// InvalidFault is the error of a fault that a plane cannot be asked for.
type InvalidFault struct {
	Problems []Problem `json:"problems"`
}

// Error is one line for each problem.
func (e *InvalidFault) Error() string {
	var lines []string
	for _, p := range e.Problems {
		lines = append(lines, fmt.Sprintf("%s: %s (%s)", p.Path, p.Msg, p.Hint))
	}
	return strings.Join(lines, "\n")
}
