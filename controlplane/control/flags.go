package control

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

// flagTable is written and kept true by a test of package component, which
// links the components.
//
//go:embed flags.txt
var flagTable string

// flagTypes gives the type of each component's flags by name. Its feature gates
// are there as "feature-gates/NAME" with the type gate, or the only value that they
// take; the scheduler's plugins as "plugins/NAME".
var flagTypes = sync.OnceValue(func() map[string]map[string]string {
	all := map[string]map[string]string{}
	for line := range strings.Lines(flagTable) {
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
})

// SchedulerPlugins lists the plugins that are built into the scheduler.
func SchedulerPlugins() []string { return named(KindScheduler, "plugins/") }

// named lists what the table has of a component with a prefix, without it.
func named(kind, prefix string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(flagTypes()[kind])) {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			all = append(all, rest)
		}
	}
	return all
}

// flagProblem describes the mistake in a flag: that the component has none of
// that name, or does not take the value.
func (s FlagSection) flagProblem(name, value string) (p Problem, wrong bool) {
	types := flagTypes()[s.Kind]
	path := s.Path + "." + name
	if types[name] == "" {
		known := slices.DeleteFunc(slices.Sorted(maps.Keys(types)), func(k string) bool { return strings.Contains(k, "/") })
		plain := strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-")
		hint := strictyaml.Hint(plain, known, "its flags are listed by: "+s.Kind+" --help")
		return Problem{path, s.Kind + " has no such flag", hint}, true
	}
	if name == gatesFlag {
		if msg, hint := gatesProblem(s.Kind, value); msg != "" {
			return Problem{path, msg, hint}, true
		}
		return p, false
	}
	if what, hint := valueProblem(types[name], value); what != "" {
		return Problem{path, fmt.Sprintf("%q is not %s", value, what), hint}, true
	}
	return s.listProblem(name, value)
}

// lists are the flags whose values are names that the table has, by the prefix there.
var lists = map[string]string{
	"controllers": "controllers/", "enable-admission-plugins": "admission-plugins/", "disable-admission-plugins": "admission-plugins/",
	"authorization-mode": "authorization-modes/",
}

func (s FlagSection) listProblem(flag, value string) (p Problem, wrong bool) {
	known := named(s.Kind, lists[flag])
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
			otherwise = "leave out the comma too many"
		}
		hint := strictyaml.Hint(name, known, otherwise)
		return Problem{s.Path + "." + flag, fmt.Sprintf("%s has no %s %q", s.Kind, what, name), hint}, true
	}
	return p, false
}

// valueProblem returns what a value of that type should be and is not. Types of
// lists, maps and text take anything here; the component has the last word.
//
// A type may end in what the component's validation takes at least, as "int>=0" or
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

// gatedKinds are those with feature gates that a Config can set.
func gatedKinds() []string {
	return []string{KindEtcd, KindAPIServer, KindScheduler, KindControllerManager}
}

// withGates adds the feature gates that a kind of component has to its flags. Gates in the flags have the last word.
func (c Config) withGates(kind string, flags Flags) Flags {
	if !slices.Contains(gatedKinds(), kind) {
		return flags
	}
	known := named(kind, gatePrefix)
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

// gateProblems checks FeatureGates: that some component has each gate, and that none has it locked to the other value.
func (c Config) gateProblems() (all []Problem) {
	for _, name := range slices.Sorted(maps.Keys(c.FeatureGates)) {
		var known []string
		for _, kind := range gatedKinds() {
			gates := named(kind, gatePrefix)
			if known = append(known, gates...); !slices.Contains(gates, name) {
				continue
			}
			if msg, hint := gatesProblem(kind, fmt.Sprintf("%s=%t", name, c.FeatureGates[name])); msg != "" {
				all = append(all, Problem{"featureGates." + name, msg, hint})
				break
			}
		}
		if !slices.Contains(known, name) {
			hint := strictyaml.Hint(name, known, "they are listed by: kube-apiserver --help")
			all = append(all, Problem{"featureGates." + name, fmt.Sprintf("no component has a feature gate %q", name), hint})
		}
	}
	return all
}

// gatesProblem checks the value of the flag feature-gates: NAME=true,NAME=false.
func gatesProblem(kind, value string) (msg, hint string) {
	known := named(kind, gatePrefix)
	for gate := range strings.SplitSeq(value, ",") {
		name, on, ok := strings.Cut(strings.TrimSpace(gate), "=")
		if name == "" && !ok {
			continue
		}
		name = strings.TrimPrefix(name, "kube:")
		wanted, err := strconv.ParseBool(strings.TrimSpace(on))
		if !ok || err != nil {
			return fmt.Sprintf("%q is no setting of a feature gate", gate), "as NAME=true,OTHER=false"
		}
		if len(known) > 0 && !slices.Contains(known, name) {
			hint := strictyaml.Hint(name, known, "its feature gates are listed by: "+kind+" --help")
			return fmt.Sprintf("%s has no feature gate %q", kind, name), hint
		}
		if locked, err := strconv.ParseBool(flagTypes()[kind][gatePrefix+name]); err == nil && locked != wanted {
			return fmt.Sprintf("feature gate %q of %s is locked to %t", name, kind, locked), "leave it out"
		}
	}
	return "", ""
}
