package control

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

// flagTables holds a table of flags for each release. A test of package component compares the tables with the linked
// components. `make flags VERSION=1.36` writes a table.
//
//go:embed flags/*.txt
var flagTables embed.FS

// flagTypes returns the type of each flag of a component in a release, by flag name. The map also contains the
// component's feature gates as "feature-gates/NAME". Other lists of names, such as the scheduler's plugins, have keys
// such as "plugins/NAME". The type of a gate is "gate", or the only value that the gate accepts.
func flagTypes(r Release, kind string) map[string]string { return flagTypesOf()[r.Minor][kind] }

// flagTypesOf returns the flag types of all components in all releases, by minor version and kind.
var flagTypesOf = sync.OnceValue(func() map[string]map[string]map[string]string {
	all := map[string]map[string]map[string]string{}
	for _, r := range Releases() {
		table, err := flagTables.ReadFile("flags/" + r.Minor + ".txt")
		if err != nil {
			panic(err) // it is embedded
		}
		all[r.Minor] = flagTable(string(table))
	}
	return all
})

func flagTable(text string) map[string]map[string]string {
	all := map[string]map[string]string{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) != 3 {
			continue // a comment
		}
		if all[words[0]] == nil {
			all[words[0]] = map[string]string{}
		}
		all[words[0]][words[1]] = words[2]
	}
	return all
}

// SchedulerPlugins lists the plugins that are built into the scheduler.
func SchedulerPlugins() []string { return named(Newest(), KindScheduler, "plugins/") }

// named returns the names that start with prefix in a component's table of flags, without the prefix.
func named(r Release, kind, prefix string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(flagTypes(r, kind))) {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			all = append(all, rest)
		}
	}
	return all
}

// flagProblem returns the problem of a flag, if any: the component does not have the flag in the release, or does not
// accept the value.
func (s FlagSection) flagProblem(r Release, name, value string) (p Problem, wrong bool) {
	types := flagTypes(r, s.Kind)
	path := s.Path + "." + name
	if types[name] == "" {
		known := slices.DeleteFunc(slices.Sorted(maps.Keys(types)), func(k string) bool { return strings.Contains(k, "/") })
		plain := strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-")
		hint := strictyaml.Hint(plain, known, "to list its flags, run: "+s.Kind+" --help")
		return Problem{path, s.Kind + inRelease(r) + " has no such flag", hint}, true
	}
	if name == gatesFlag {
		if msg, hint := gatesProblem(r, s.Kind, value); msg != "" {
			return Problem{path, msg, hint}, true
		}
		return p, false
	}
	if what, hint := valueProblem(types[name], value); what != "" {
		return Problem{path, fmt.Sprintf("%q is not %s", value, what), hint}, true
	}
	return s.listProblem(r, name, value)
}

// inRelease returns a suffix for messages, such as " of 1.36", or "" for the newest release.
func inRelease(r Release) string {
	if r == Newest() {
		return ""
	}
	return " of " + r.Minor
}

// lists maps each flag whose value is a list of known names to the prefix of these names in the table of flags.
var lists = map[string]string{
	"controllers": "controllers/", "enable-admission-plugins": "admission-plugins/", "disable-admission-plugins": "admission-plugins/",
	"authorization-mode": "authorization-modes/",
}

func (s FlagSection) listProblem(r Release, flag, value string) (p Problem, wrong bool) {
	known := named(r, s.Kind, lists[flag])
	if lists[flag] == "" || len(known) == 0 {
		return p, false
	}
	for word := range strings.SplitSeq(value, ",") {
		name := strings.TrimSpace(word)
		if flag == "controllers" {
			if name = strings.TrimPrefix(name, "-"); name == "*" {
				continue
			}
		}
		if name == "" && value == "" || slices.Contains(known, name) {
			continue
		}
		what := strings.TrimSuffix(strings.ReplaceAll(lists[flag], "-", " "), "s/")
		otherwise := "to list " + what + "s, run: " + s.Kind + " --help"
		if name == "" {
			otherwise = "remove the extra comma"
		}
		hint := strictyaml.Hint(name, known, otherwise)
		return Problem{s.Path + "." + flag, fmt.Sprintf("%s has no %s %q", s.Kind, what, name), hint}, true
	}
	return p, false
}

// valueProblem checks the value of a flag of type typ. If the value is invalid, `what` describes the valid values, and
// `hint` says what to write. Any list, map or string is accepted, because only the component itself can check it.
//
// A type may end in a lower bound, as in "int>=0" or "duration>0".
func valueProblem(typ, value string) (what, hint string) {
	var err error
	base, least, bounded := strings.Cut(typ, ">")
	var number float64
	switch base {
	case "bool":
		what, hint = "true or false", "write true or false"
		_, err = strconv.ParseBool(value)
	case "int", "int32", "int64":
		what, hint = "a whole number", "for example 400"
		var n int64
		n, err = strconv.ParseInt(value, 0, 64)
		number = float64(n)
	case "uint", "uint32", "uint64":
		what, hint = "a whole number of 0 or more", "for example 400"
		_, err = strconv.ParseUint(value, 0, 64)
	case "float32", "float64":
		what, hint = "a number", "for example 0.5"
		number, err = strconv.ParseFloat(value, 64)
	case "duration":
		what, hint = "a duration", "for example 30s"
		var d time.Duration
		d, err = time.ParseDuration(value)
		number = d.Seconds()
	}
	switch {
	case err != nil:
	case bounded && least == "0" && number <= 0:
		what, hint = what+" over 0", "write more than 0"
	case bounded && least == "=0" && number < 0:
		what, hint = what+" of 0 or more", "write 0 or more"
	default:
		return "", ""
	}
	return what, hint
}

const (
	gatesFlag  = "feature-gates"
	gatePrefix = gatesFlag + "/"
)

// gatedKinds returns the kinds of component whose feature gates a Config can set.
func gatedKinds() []string {
	return []string{KindEtcd, KindAPIServer, KindScheduler, KindControllerManager}
}

// withGates returns a copy of flags, to which it adds the gates in FeatureGates that the component has in release r.
// Gates that are already in flags take precedence.
func (c Config) withGates(kind string, r Release, flags Flags) Flags {
	if !slices.Contains(gatedKinds(), kind) {
		return flags
	}
	known := named(c.behavesAs(kind, r), kind, gatePrefix)
	var gates []string
	for _, name := range slices.Sorted(maps.Keys(c.FeatureGates)) {
		if slices.Contains(known, name) {
			gates = append(gates, fmt.Sprintf("%s=%t", name, c.FeatureGates[name]))
		}
	}
	if len(gates) == 0 {
		return flags
	}
	all := Flags{}
	maps.Copy(all, flags)
	if own := flags[gatesFlag]; own != "" {
		gates = append(gates, own)
	}
	all[gatesFlag] = strings.Join(gates, ",")
	return all
}

// behavesAs returns the release whose feature gates a component of release r has. That is the emulated release if the
// config sets one for the kind, otherwise r.
func (c Config) behavesAs(kind string, r Release) Release {
	if emulated, ok := ReleaseOf(c.EmulatedVersion); ok && c.Emulates(kind) {
		return emulated
	}
	return r
}

// gateProblems checks each gate in FeatureGates: at least one component must have the gate, and no component may have
// the gate locked to another value.
func (c Config) gateProblems() (all []Problem) {
	for _, name := range slices.Sorted(maps.Keys(c.FeatureGates)) {
		if msg, hint := c.gateProblem(name, c.FeatureGates[name]); msg != "" {
			all = append(all, Problem{"featureGates." + name, msg, hint})
		}
	}
	return all
}

func (c Config) gateProblem(name string, on bool) (msg, hint string) {
	var known []string
	found := false
	for _, kind := range gatedKinds() {
		for _, r := range c.releasesOrNewest(kind) {
			r = c.behavesAs(kind, r)
			gates := named(r, kind, gatePrefix)
			if known = append(known, gates...); !slices.Contains(gates, name) {
				continue
			}
			found = true
			if msg, hint := gatesProblem(r, kind, fmt.Sprintf("%s=%t", name, on)); msg != "" {
				return msg, hint
			}
		}
	}
	if found {
		return "", ""
	}
	if r, kind, ok := elsewhere(name, gatedKinds()); ok {
		return fmt.Sprintf("no component of this control plane has the feature gate %q, but %s of Kubernetes %s has it", name, kind, r.Minor), "leave out the gate, or use that version"
	}
	return fmt.Sprintf("no component has a feature gate %q", name), strictyaml.Hint(name, known, "to list feature gates, run: kube-apiserver --help")
}

// elsewhere finds a feature gate in any release. It returns the newest release in which one of the kinds has the gate,
// and the first such kind. ok is false if no release has the gate.
func elsewhere(name string, kinds []string) (r Release, kind string, ok bool) {
	for _, r := range Releases() {
		for _, kind := range kinds {
			if flagTypes(r, kind)[gatePrefix+name] != "" {
				return r, kind, true
			}
		}
	}
	return r, kind, false
}

// gatesProblem checks the value of the flag feature-gates, such as NAME=true,NAME=false, for a kind of component in a
// release.
func gatesProblem(r Release, kind, value string) (msg, hint string) {
	known := named(r, kind, gatePrefix)
	for gate := range strings.SplitSeq(value, ",") {
		name, on, ok := strings.Cut(strings.TrimSpace(gate), "=")
		if name == "" && !ok {
			continue
		}
		name = strings.TrimPrefix(name, "kube:")
		wanted, err := strconv.ParseBool(strings.TrimSpace(on))
		if !ok || err != nil {
			return fmt.Sprintf("%q does not set a feature gate", gate), "for example NAME=true,OTHER=false"
		}
		if len(known) > 0 && !slices.Contains(known, name) {
			return unknownGate(r, kind, name, known)
		}
		if locked, err := strconv.ParseBool(flagTypes(r, kind)[gatePrefix+name]); err == nil && locked != wanted {
			return fmt.Sprintf("feature gate %q of %s%s is locked to %t", name, kind, inRelease(r), locked), "leave it out"
		}
	}
	return "", ""
}

// unknownGate returns the problem of a feature gate that a component does not have. The hint says whether another
// release or another component has the gate.
func unknownGate(r Release, kind, name string, known []string) (msg, hint string) {
	msg = fmt.Sprintf("%s%s has no feature gate %q", kind, inRelease(r), name)
	if in, _, ok := elsewhere(name, []string{kind}); ok {
		return msg, fmt.Sprintf("Kubernetes %s has it: leave out the gate, or use that version", in.Minor)
	}
	if _, other, ok := elsewhere(name, gatedKinds()); ok {
		return msg, other + " has this gate: set it in the flags of that component, or as featureGates." + name
	}
	return msg, strictyaml.Hint(name, known, "to list its feature gates, run: "+kind+" --help")
}
