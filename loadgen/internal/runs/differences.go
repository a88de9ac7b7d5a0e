package runs

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Difference is a version, setting or property of the host that differs between runs.
type Difference = report.Difference

// maxDifferences is the maximum number of differences that Differences returns.
const maxDifferences = 50

// Differences returns what differs between runs: versions, host, variant, labels, and fields of the scenarios. It reads
// the scenario files unless all runs are known to have the same scenario.
func Differences(all []*Entry) []Difference {
	facts := make([]map[string]string, len(all))
	for i, e := range all {
		facts[i] = e.facts()
	}
	if !sameScenario(all) {
		for i, e := range all {
			maps.Copy(facts[i], e.fields())
		}
	}
	names := map[string]bool{}
	for _, f := range facts {
		for name := range f {
			names[name] = true
		}
	}
	var out []Difference
	for _, name := range slices.SortedFunc(maps.Keys(names), byKind) {
		d := Difference{Name: name}
		for _, f := range facts {
			d.Values = append(d.Values, f[name])
		}
		if slices.ContainsFunc(d.Values, func(v string) bool { return v != d.Values[0] }) {
			out = append(out, d)
		}
	}
	if n := len(out) - maxDifferences; n > 0 {
		out = append(out[:maxDifferences], Difference{Name: fmt.Sprintf("and %d more", n), Values: make([]string, len(all))})
	}
	return out
}

// byKind compares names of facts for sorting. Versions and other facts come before fields of scenarios.
func byKind(a, b string) int {
	field := func(name string) int { return len(name) - len(strings.TrimPrefix(name, FieldPrefix)) }
	return cmp.Or(cmp.Compare(field(a), field(b)), cmp.Compare(a, b))
}

// FieldPrefix is the prefix of the names of differences between scenarios.
const FieldPrefix = "scenario: "

func sameScenario(all []*Entry) bool {
	return !slices.ContainsFunc(all, func(e *Entry) bool { return e.Digest == "" || e.Digest != all[0].Digest })
}

// facts returns the versions, the host, the variant and the labels of a run, by the name of the fact.
func (e *Entry) facts() map[string]string {
	facts := result.Facts(e.Versions, e.Host)
	if e.Host.CPUs == 0 {
		delete(facts, "host")
	}
	facts["variant"] = e.Variant
	facts["--set"] = strings.Join(e.Settings, " ")
	for name, v := range e.Labels {
		facts["label "+name] = v
	}
	return facts
}

// fields returns the fields of the run's scenario, by path. It returns nil if the scenario cannot be read.
func (e *Entry) fields() map[string]string {
	f, err := e.OpenFile(result.ScenarioFile) // a link could lead to any file of this machine
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, userfile.Text+1))
	var node any
	if err != nil || len(text) > userfile.Text || yaml.Unmarshal(text, &node) != nil {
		return nil
	}
	into := map[string]string{}
	Flatten(into, FieldPrefix, node)
	for _, name := range []string{"description", "seed", "variant"} {
		delete(into, FieldPrefix+name)
	}
	return into
}

// Bounds of Flatten: the maximum number of fields that it adds, and the maximum length of their paths.
const (
	maxFields = 10_000
	maxPath   = 1000
)

// Flatten adds each leaf of the YAML value v to `into`. The key of a leaf is `path` and the names of the fields above the
// leaf, joined by dots. An item of a list is named by its field `name` or, without this field, by its number. If path
// ends with a space, no dot follows it.
func Flatten(into map[string]string, path string, v any) {
	if len(into) >= maxFields || len(path) > maxPath {
		return
	}
	at := func(name string) string {
		if strings.HasSuffix(path, " ") {
			return path + name
		}
		return path + "." + name
	}
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			Flatten(into, at(terminal.Clean(name)), x)
		}
	case []any:
		for i, x := range v {
			name := fmt.Sprint(i)
			if m, ok := x.(map[string]any); ok && m["name"] != nil {
				name = short(fmt.Sprint(m["name"]))
			}
			Flatten(into, at(name), x)
		}
	default:
		into[path] = short(fmt.Sprint(v))
	}
}
