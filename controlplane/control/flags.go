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

// flagTables has a table for each release. A test of package component, which links the components, writes and
// verifies it: `make flags VERSION=1.36`.
//
//go:embed flags/*.txt
var flagTables embed.FS

// flagTypes returns the type of each flag of a component in a release, by name. It also contains the
// component's feature gates as "feature-gates/NAME", with the type gate or the only value that they
// take, and the scheduler's plugins as "plugins/NAME".
func flagTypes(r Release, kind string) map[string]string { return flagTypesOf()[r.Minor][kind] }

// HasFlag reports whether a kind of component has a flag in a release.
func HasFlag(r Release, kind, flag string) bool { return flagTypes(r, kind)[flag] != "" }

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

// named returns the names with a prefix in a component's table, without the prefix.
func named(r Release, kind, prefix string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(flagTypes(r, kind))) {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			all = append(all, rest)
		}
	}
	return all
}

// flagProblem returns the problem of a flag: the component does not have it in a
// release, or does not accept the value.
func (s FlagSection) flagProblem(r Release, name, value string) (p Problem, wrong bool) {
	types := flagTypes(r, s.Kind)
	path := s.Path + "." + name
	if types[name] == "" {
		known := slices.DeleteFunc(slices.Sorted(maps.Keys(types)), func(k string) bool { return strings.Contains(k, "/") })
		plain := strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-")
		hint := strictyaml.Hint(plain, known, "its flags are listed by: "+s.Kind+" --help")
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

// inRelease returns the name of a release, as " of 1.36", or "" for the newest.
func inRelease(r Release) string {
	if r == Newest() {
		return ""
	}
	return " of " + r.Minor
}

// lists maps flags whose values are names in the table to the names' prefix.
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
		otherwise := what + "s are listed by: " + s.Kind + " --help"
		if name == "" {
			otherwise = "remove the extra comma"
		}
		hint := strictyaml.Hint(name, known, otherwise)
		return Problem{s.Path + "." + flag, fmt.Sprintf("%s has no %s %q", s.Kind, what, name), hint}, true
	}
	return p, false
}

// valueProblem returns what a value of a type should be, and a hint, if the value is invalid. It accepts
// any value of lists, maps and text, which only the component itself checks.
//
// A type may end in the lower bound of the component's validation, as "int>=0" or
// "duration>0".
func valueProblem(typ, value string) (what, hint string) {
	var err error
	base, least, bounded := strings.Cut(typ, ">")
	var number float64
	switch base {
	case "bool":
		what, hint = "true or false", "write true or false"
		_, err = strconv.ParseBool(value)
	case "int", "int32", "int64":
		what, hint = "a whole number", "as 400"
		var n int64
		n, err = strconv.ParseInt(value, 0, 64)
		number = float64(n)
	case "uint", "uint32", "uint64":
		what, hint = "a whole number of 0 or more", "as 400"
		_, err = strconv.ParseUint(value, 0, 64)
	case "float32", "float64":
		what, hint = "a number", "as 0.5"
		number, err = strconv.ParseFloat(value, 64)
	case "duration":
		what, hint = "a duration", "as 30s"
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

// gatedKinds returns the kinds with feature gates that a Config can set.
func gatedKinds() []string {
	return []string{KindEtcd, KindAPIServer, KindScheduler, KindControllerManager}
}

// withGates adds to flags the configured feature gates that a kind of component has in a release. Gates in flags take
// precedence.
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

// behavesAs returns the release whose feature gates a kind of component of release r has: the emulated release, or r.
func (c Config) behavesAs(kind string, r Release) Release {
	if emulated, ok := ReleaseOf(c.EmulatedVersion); ok && c.Emulates(kind) {
		return emulated
	}
	return r
}

// gateProblems checks that at least one component has each gate in FeatureGates, and that no component has it locked to
// another value.
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
		return fmt.Sprintf("no component of this plane has the feature gate %q: %s of %s has it", name, kind, r.Minor), "leave it out, or take that version"
	}
	return fmt.Sprintf("no component has a feature gate %q", name), strictyaml.Hint(name, known, "they are listed by: kube-apiserver --help")
}

// elsewhere returns a release, and one of kinds, in which a feature gate exists. ok is false if none exists.
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

// gatesProblem checks the value of the flag feature-gates of a release: NAME=true,NAME=false.
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
			return fmt.Sprintf("%q does not set a feature gate", gate), "as NAME=true,OTHER=false"
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

// unknownGate returns the problem of a gate that a component does not have. The hint says whether another version or
// another component has it.
func unknownGate(r Release, kind, name string, known []string) (msg, hint string) {
	msg = fmt.Sprintf("%s%s has no feature gate %q", kind, inRelease(r), name)
	if in, _, ok := elsewhere(name, []string{kind}); ok {
		return msg, fmt.Sprintf("%s has it: leave it out, or take that version", in.Minor)
	}
	if _, other, ok := elsewhere(name, gatedKinds()); ok {
		return msg, other + " has it: write it in its flags, or as featureGates." + name
	}
	return msg, strictyaml.Hint(name, known, "its feature gates are listed by: "+kind+" --help")
}
