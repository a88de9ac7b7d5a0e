package scenario_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/goldenscript"
	"github.com/stormglass/stormglass/internal/schemadoc"
	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func updating() bool { return flag.Lookup("update").Value.String() == "true" }

// TestSchema keeps schema.json equal to the Go types, their comments, and the results of validation.
func TestSchema(t *testing.T) {
	s := schemaOf(t)
	plain, err := s.Build("Scenario") // samples of fields are based on it
	if err != nil {
		t.Fatal(err)
	}
	s.Types = shapes()
	for name, kinds := range kindsOf() {
		rules, _ := s.Types[name]["allOf"].([]any)
		if s.Types[name] == nil {
			s.Types[name] = schemadoc.Part{}
		}
		s.Types[name]["allOf"] = append(foreign(t, plain, name, kinds), rules...)
	}
	s.Check(t, "Scenario", updating())
}

func schemaOf(t *testing.T) *schemadoc.Schema {
	t.Helper()
	var plane struct {
		Defs map[string]any `json:"$defs"`
	}
	var config map[string]any
	if err := errors.Join(json.Unmarshal(control.Schema(), &plane), json.Unmarshal(control.Schema(), &config)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"$defs", "$schema", "title"} {
		delete(config, name)
	}
	plane.Defs["Config"] = config
	s := &schemadoc.Schema{File: "schema.json", Title: "Stormglass scenario", Tag: "yaml", Scalars: scalars(), Fields: forms(), Given: plane.Defs}
	if err := s.Read("."); err != nil {
		t.Fatal(err)
	}
	for name, q := range questions() {
		s.Fields[name] = schemadoc.Enum(append(allowed(t, q), q.besides...))
	}
	return s
}

const size = `\s*(B|kB|KB|MB|GB|KiB|MiB|GiB)?`

func scalars() map[string]schemadoc.Part {
	number := `[-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?`
	text, both := []string{"string"}, []string{"string", "number"}
	return map[string]schemadoc.Part{
		"Duration": schemadoc.Duration(),
		"Spread": {"type": []string{"string", "integer"}, "pattern": "^" + schemadoc.DurationForm + `(\.\.[0-9]+(\.[0-9]+)?` + schemadoc.DurationUnit + "([0-9]+(\\.[0-9]+)?" + schemadoc.DurationUnit + ")*)?$", "minimum": 0, "maximum": 0,
			"description": "A length of time that varies, such as 2s (always) or 2s..20s: median and 99th percentile of a log-normal distribution"},
		"Rate":  {"type": text, "pattern": `^\s*\+?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?\s*/\s*[smh]\s*$`, "description": "Events by time, such as 50/s, 300/m or 10/h"},
		"Bytes": {"type": both, "pattern": `^\s*\+?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?` + size + `\s*$`, "minimum": 0, "description": "A size, such as 512, 1KiB or 200MB"},
		"Bound": {"type": both, "pattern": "^([-+]?" + schemadoc.DurationForm + "|" + number + `(\s*(%|/h|/s)|` + size + "))$",
			"description": "A value in the unit of the bounded quantity, such as 1s, 5%, 200MB, 1/h, 50/s or a number"},
	}
}

// forms are schemas for the strings that validation checks with a pattern.
func forms() map[string]schemadoc.Part {
	all := map[string]schemadoc.Part{
		"Scenario.apiVersion": {"const": scenario.APIVersion}, "Scenario.kind": {"const": scenario.Kind},
		// A share of pods: a number or a percentage.
		"Action.maxSurge": {"pattern": "^[0-9]{1,7}%?$"}, "Action.maxUnavailable": {"pattern": "^[0-9]{1,7}%?$"},
		"Hook.run":                  {"minItems": 1},
		"Operation.resourceVersion": {"enum": []any{"", "0", "exact", 0}}, "Fault.files": {"enum": []any{"wal", "all"}},
	}
	minors := []string{}
	for _, r := range control.Releases() {
		minors = append(minors, r.Minor)
	}
	all["Nodes.version"] = schemadoc.Enum(minors)
	for _, name := range []string{"Scenario", "Phase", "Gate", "Load", "Action", "Tenant", "Variant", "Figure", "Signal"} {
		all[name+".name"] = schemadoc.Part{"pattern": "^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$"}
	}
	for _, name := range []string{"Action", "Nodes", "NodePool"} {
		quantity := schemadoc.Part{"pattern": `^\+?([0-9]+\.?[0-9]*|\.[0-9]+)(n|u|m|k|Ki|[MGTPE]i?|[eE][-+]?[0-9]+)?$`}
		all[name+".cpu"], all[name+".memory"] = quantity, quantity
	}
	return all
}

// shapes returns the conditional requirements of types.
func shapes() map[string]schemadoc.Part {
	needs := func(names ...string) schemadoc.Part { return schemadoc.Part{"required": names} }
	oneBound := schemadoc.Part{"oneOf": []any{needs("max"), needs("min")}}
	all := map[string]schemadoc.Part{
		"Phase": {"oneOf": []any{needs("for"), needs("until", "within")}, "dependentRequired": schemadoc.Part{"until": []string{"within"}, "within": []string{"until"}}},
		"Gate": {"oneOf": []any{
			schemadoc.Part{"required": []string{"alert", "fires"}, "properties": schemadoc.Part{"max": false, "min": false, "load": false, "signal": false}},
			schemadoc.Part{"required": []string{"objective"}, "allOf": []any{oneBound}},
			schemadoc.Part{"required": []string{"expr"}, "allOf": []any{oneBound}},
		}, "dependentRequired": schemadoc.Part{"alert": []string{"fires"}, "fires": []string{"alert"}}},
		"Figure":   {"oneOf": []any{needs("objective"), needs("expr")}},
		"NodePool": {"not": needs("count", "weight")},
		"Until":    {"type": []string{"object", "string"}}, // a name or an expression
		"Abort": {"oneOf": []any{
			schemadoc.Part{"required": []string{"gate"}, "properties": schemadoc.Part{"max": false, "min": false, "over": false}},
			schemadoc.Part{"required": []string{"alert"}, "properties": schemadoc.Part{"max": false, "min": false}},
			schemadoc.Part{"required": []string{"expr"}, "allOf": []any{oneBound}},
			schemadoc.Part{"required": []string{"limit", "max"}, "properties": schemadoc.Part{"min": false}},
		}},
	}
	var rules []any
	for _, k := range control.FaultTable() {
		var required []any
		for _, field := range k.Needs {
			switch {
			case field != "components":
				required = append(required, needs(field))
			case !k.OfMembers():
				required = append(required, schemadoc.Part{"anyOf": []any{needs("component"), needs("components")}})
			}
		}
		if len(required) > 0 {
			rules = append(rules, schemadoc.Part{"if": isKind(k.Name), "then": schemadoc.Part{"allOf": required}})
		}
	}
	all["Fault"] = schemadoc.Part{"allOf": rules}
	return all
}

func isKind(kind string) schemadoc.Part {
	return schemadoc.Part{"properties": schemadoc.Part{"kind": schemadoc.Part{"const": kind}}, "required": []string{"kind"}}
}

// question is a scenario with an invalid value in a field. The error of validation lists the allowed values.
type question struct {
	text string
	// besides are values that validation accepts but does not name.
	besides []string
}

const nonsense = "nonsense-of-a-value"

func inScenario(rest string) string {
	return "apiVersion: " + scenario.APIVersion + "\nkind: " + scenario.Kind + "\nname: x\n" + strings.ReplaceAll(rest, "?", nonsense)
}

// questions maps "Type.field" to the question about the field.
func questions() map[string]question {
	load := func(item string) question {
		return question{text: inScenario("phases: [{name: a, for: 30s, load: [{" + item + "}]}]\n")}
	}
	action := func(item string) question {
		return question{text: inScenario("nodes: {count: 9}\nphases: [{name: a, for: 30s, actions: [{name: web, " + item + "}]}]\n")}
	}
	whole := func(rest string) question {
		return question{text: inScenario("phases: [{name: a, for: 30s}]\n" + rest)}
	}
	reads := "kind: requests, rate: 1/s, verb: list, "
	return map[string]question{
		"Action.kind":                action("kind: ?"),
		"Action.workload":            action("kind: deploy, replicas: 1, workload: ?"),
		"Action.antiAffinity":        action("kind: deploy, replicas: 1, antiAffinity: ?"),
		"Action.podManagementPolicy": action("kind: deploy, replicas: 1, workload: StatefulSet, podManagementPolicy: ?"),
		"Action.concurrencyPolicy":   action("kind: deploy, replicas: 1, workload: CronJob, runFor: 1s, concurrencyPolicy: ?"),
		"Action.propagation":         action("kind: delete, target: {resource: pods}, propagation: ?"),
		"Action.patchType":           action("kind: patch, target: {resource: pods}, patch: {a: b}, patchType: ?"),
		"Batch.placement":            action("kind: create, templates: [{text: x}], placement: ?"),
		"Load.placement":             load("kind: objects, rate: 1/s, templates: [{text: x}], placement: ?"),
		"Selection.order":            action("kind: delete, target: {resource: pods, share: 10%, order: ?}"),
		"Operation.patchType":        load("kind: requests, rate: 1/s, verb: patch, patchType: ?"),
		"Eviction.condition":         whole("nodes: {count: 1, podLives: [{name: l, evict: {after: 1s, condition: ?}}]}\n"),
		"Fault.kind":                 {text: inScenario("phases: [{name: a, for: 30s, faults: [{kind: ?}]}]\n")},
		"Profile.kind":               {text: inScenario("phases: [{name: a, for: 30s, profiles: [{component: loadgen, kind: ?}]}]\n")},
		"Load.kind":                  load("kind: ?"),
		"Load.arrival":               load(reads + "arrival: ?"),
		"Load.spread":                load(reads + "spread: ?"),
		"Load.connect":               load("kind: watches, count: 1, rate: 1/s, connect: ?"),
		"Load.start":                 load("kind: watches, count: 1, rate: 1/s, start: ?"),
		"Load.stream":                load("kind: streams, rate: 1/s, stream: ?"),
		"Operation.verb":             load("kind: requests, rate: 1/s, verb: ?"),
		"Operation.form":             load(reads + "form: ?"),
		"Operation.encoding":         load(reads + "encoding: ?"),
		"Operation.scope":            load(reads + "scope: ?"),
		"Shape.kind":                 load(reads + "shape: {kind: ?}"),
		"Nodes.fidelity":             whole("nodes: {count: 1, fidelity: ?}\n"),
		"Nodes.identity":             whole("nodes: {count: 1, identity: ?}\n"),
		"NodeTaint.effect":           whole("nodes: {count: 1, pools: [{name: p, taints: [{key: a, effect: ?}]}]}\n"),
		"Gate.objective":             whole("gates: [{name: g, objective: ?, max: 1}]\n"),
		"Figure.objective":           whole("compare: [{name: f, objective: ?}]\n"),
		"Figure.better":              whole("compare: [{name: f, expr: vector(1), better: ?}]\n"),
		"Figure.unit":                whole("compare: [{name: f, expr: vector(1), unit: ?}]\n"),
		"Signal.unit":                whole("signals: [{name: s, expr: vector(1), unit: ?, steady: [a], under: [a]}]\n"),
	}
}

// said returns the errors of validation for a scenario and its gates.
func said(text string) []*strictyaml.Error {
	s, err := scenario.Parse("x.yaml", []byte(text), nil)
	if err == nil {
		err = gate.Check(s)
	}
	return strictyaml.Errors(err)
}

// allowed returns the values that the error for a question lists.
func allowed(t *testing.T, q question) []string {
	t.Helper()
	for _, e := range said(q.text) {
		for _, head := range []string{"one of ", "objectives: "} {
			if list, ok := strings.CutPrefix(e.Hint, head); ok && strings.Contains(e.Msg, nonsense) {
				return strings.Split(list, ", ")
			}
		}
	}
	t.Errorf("validation does not name the allowed values:\n%s%v", q.text, said(q.text))
	return nil
}

// kindsOf returns, for each type with kinds, the places in a scenario where an item can be written. A field counts as
// having no effect only if it has no effect in all these places.
func kindsOf() map[string][]func(item map[string]any) map[string]any {
	phase := func(field string) func(map[string]any) map[string]any {
		return func(item map[string]any) map[string]any {
			return map[string]any{
				"apiVersion": scenario.APIVersion, "kind": scenario.Kind, "name": "x", "nodes": map[string]any{"count": 10},
				"phases": []any{map[string]any{"name": "a", "for": "30s", field: []any{item}}},
			}
		}
	}
	// with adds a field that makes the action an action on objects.
	with := func(field string, value any) func(map[string]any) map[string]any {
		return func(item map[string]any) map[string]any {
			item = maps.Clone(item)
			if _, has := item[field]; !has {
				item[field] = value
			}
			return phase("actions")(item)
		}
	}
	one := func(place func(map[string]any) map[string]any) []func(map[string]any) map[string]any {
		return []func(map[string]any) map[string]any{place}
	}
	return map[string][]func(map[string]any) map[string]any{
		"Action": {
			phase("actions"), with("target", map[string]any{"resource": "pods"}), with("templates", []any{map[string]any{"text": "x"}}),
		},
		"Fault": one(phase("faults")), "Load": one(phase("load")), "Profile": one(phase("profiles")),
		"Shape": one(func(shape map[string]any) map[string]any {
			return phase("load")(map[string]any{"kind": "requests", "verb": "list", "rate": "1/s", "shape": shape})
		}),
	}
}

// foreign finds, for each kind of a type, the fields that validation refuses because they have no effect in that kind.
// It returns the rules that forbid these fields.
func foreign(t *testing.T, schema schemadoc.Part, name string, places []func(map[string]any) map[string]any) (rules []any) {
	t.Helper()
	defs := schema["$defs"].(map[string]any)
	properties := defs[name].(schemadoc.Part)["properties"].(map[string]any)
	for _, kind := range properties["kind"].(schemadoc.Part)["enum"].([]any) {
		forbidden := map[string]any{}
		for field, p := range properties {
			if field == "kind" {
				continue
			}
			idle := func(value any) bool {
				return !slices.ContainsFunc(places, func(place func(map[string]any) map[string]any) bool {
					text, err := json.Marshal(place(map[string]any{"kind": kind, field: value}))
					if err != nil {
						t.Fatal(err)
					}
					return !slices.ContainsFunc(said(string(text)), func(e *strictyaml.Error) bool { // an error of the field or of the place
						return (strings.HasSuffix(e.Field, "."+field) || strings.HasSuffix(e.Field, ".target") || strings.HasSuffix(e.Field, ".templates")) &&
							e.Msg == "this field has no effect in "+kind.(string)
					})
				})
			}
			if !idle(sample(defs, p.(schemadoc.Part))) {
				continue
			}
			forbidden[field] = false
			// Defaults that are set for all kinds may also be written.
			for _, value := range []any{p.(schemadoc.Part)["default"], 1} {
				if value != nil && !idle(value) {
					forbidden[field] = schemadoc.Part{"const": value}
					break
				}
			}
		}
		if len(forbidden) > 0 {
			rules = append(rules, schemadoc.Part{"if": isKind(kind.(string)), "then": schemadoc.Part{"properties": forbidden}})
		}
	}
	return rules
}

// sample returns a value that a field accepts and that is not its default.
func sample(defs map[string]any, p schemadoc.Part) any {
	if all, ok := p["enum"].([]any); ok {
		return all[len(all)-1]
	}
	if ref, ok := p["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/$defs/")
		if text, ok := map[string]any{"Duration": "7s", "Spread": "7s", "Rate": "7/s", "Bytes": "7KiB", "Bound": 7}[name]; ok {
			return text
		}
		properties := defs[name].(schemadoc.Part)["properties"].(map[string]any)
		all := map[string]any{}
		for _, field := range slices.Sorted(maps.Keys(properties)) {
			all[field] = sample(defs, properties[field].(schemadoc.Part))
		}
		return all
	}
	switch p["type"] {
	case "array":
		return []any{sample(defs, p["items"].(schemadoc.Part))}
	case "integer", "number":
		return 7
	case "boolean":
		return true
	case nil:
		return map[string]any{"kind": "x"}
	}
	return "x"
}

// TestSchemaTakesTheCatalogue checks that the schema accepts the built-in scenarios.
func TestSchemaTakesTheCatalogue(t *testing.T) {
	check := schemadoc.Validator(t, scenario.Schema())
	for _, name := range scenario.Names() {
		text, err := scenario.Source(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s, err := scenario.Read(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, err = s.Resolved(); err != nil {
			t.Fatal(err)
		}
		if err := check(text); err != nil {
			t.Errorf("%s with its defaults: %v", name, err)
		}
	}
	ar, err := txtar.ParseFile("../cli/testdata/valid/accepted.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range ar.Files {
		if err := check(f.Data); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
}

// ofShape matches errors that a schema must also find.
var ofShape = regexp.MustCompile(`: (unknown field|unknown value|expected |the field appears twice|".*" (is not a (duration|rate|size|bound|whole|finite|spread)|has no unit|is neither)|` +
	`\S+ would mean the default|this field has no effect in |the item is empty)`)

// freeForm matches fields whose content a schema leaves open: manifests, flags, and fields that depend on other fields.
var freeForm = regexp.MustCompile(`\.object\.|\.flags\.|scheduler\.config|namespaceLabels|variants\.|fieldSelector|this field has no effect in a document`)

// wrongInShape returns the errors that a schema must also find.
func wrongInShape(errors string) (all string) {
	for line := range strings.Lines(errors) {
		if ofShape.MatchString(line) && !freeForm.MatchString(line) {
			all += line
		}
	}
	return all
}

// TestSchemaRefusesWhatIsWrongInShape validates all bad scenarios; testdata/valid-by-schema.txt lists the scenarios that only
// loading refuses.
func TestSchemaRefusesWhatIsWrongInShape(t *testing.T) {
	check := schemadoc.Validator(t, scenario.Schema())
	var list bytes.Buffer
	list.WriteString("# Bad scenarios that the JSON Schema takes: only loading finds what is wrong with them.\n" +
		"# go test ./loadgen/scenario -run Schema -update\n")
	for _, dir := range []string{"../cli/testdata/invalid", "testdata/bad"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no scenarios: %v", dir, err)
		}
		for _, file := range files {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(strings.TrimSpace(string(ar.Comment))) > 0 && dir == "testdata/bad" {
				continue // its overrides are wrong
			}
			if check(ar.Files[0].Data) != nil {
				continue
			}
			errors := string(ar.Files[1].Data)
			if wrong := wrongInShape(errors); wrong != "" {
				t.Errorf("%s: the schema accepts it, but Load returns\n%s", file, wrong)
			}
			first, _, _ := strings.Cut(errors, "\n")
			fmt.Fprintf(&list, "%s: %s\n", strings.TrimSuffix(filepath.Base(file), ".txtar"), first)
		}
	}
	const golden = "testdata/valid-by-schema.txt"
	if updating() {
		if err := os.WriteFile(golden, list.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(golden); err != nil || !bytes.Equal(have, list.Bytes()) {
		t.Errorf("%s differs from the invalid scenarios that the schema accepts (%v):\n%s", golden, err, list.Bytes())
	}
}

// TestSchemaOfScalars compares the patterns of scalars with their parsers.
func TestSchemaOfScalars(t *testing.T) {
	check := schemadoc.Validator(t, scenario.Schema())
	values := []string{
		"0", "1", "7", "-1", "1.5", ".5", "1e3", `"7"`, "0s", "1s", "250ms", "1h30m", "1m1.5s", "1 s", "30", "1d", "1S", "-1s", "2s..20s", "2s...20s", "2s..",
		"50/s", "300/m", "10/h", "1/d", "50 / s", "-1/s", "50", "512", "1KiB", "1 KiB", "200MB", "1kib", "-1KiB", "5%", "5 %", "%", "1/h", "x", "''", "true",
	}
	for field, read := range map[string]func(text string) error{
		"nodes: {leaseRenew: ?}":                             func(text string) error { return new(scenario.Duration).UnmarshalText([]byte(text)) },
		"nodes: {podStart: ?}":                               func(text string) error { return new(scenario.Spread).UnmarshalText([]byte(text)) },
		"background: [{kind: custom, rate: ?}]":              func(text string) error { return new(scenario.Rate).UnmarshalText([]byte(text)) },
		"background: [{kind: requests, verb: get, size: ?}]": func(text string) error { return new(scenario.Bytes).UnmarshalText([]byte(text)) },
		"gates: [{name: g, expr: vector(1), max: ?}]":        func(text string) error { return new(scenario.Bound).UnmarshalText([]byte(text)) },
	} {
		for _, value := range values {
			text := strings.ReplaceAll(inScenario("phases: [{name: a, for: 1s}]\n"), nonsense, "") + strings.Replace(field, "?", value, 1) + "\n"
			bare := strings.Trim(value, `"'`)
			bySchema, byLoading := check([]byte(text)), read(bare)
			if bySchema == nil && byLoading != nil || bySchema != nil && byLoading == nil && !zeroForm.MatchString(bare) {
				t.Errorf("%s with %s: the schema returns %v, the parser %v", field, value, bySchema, byLoading)
			}
		}
	}
}

// zeroForm matches a zero, which some fields refuse because it would mean their default.
var zeroForm = regexp.MustCompile(`^[-+]?0*\.?0*([a-zA-Z%]*|/[smh])$`)

// TestBadScenarios compares, for each script in testdata, the errors of a scenario
// with the exact text that a user reads.
func TestBadScenarios(t *testing.T) {
	goldenscript.Each(t, "testdata/bad/*.txtar", updating(), func(t *testing.T, script *txtar.Archive) string {
		s, err := scenario.Parse("bad.yaml", script.Files[0].Data, strings.Fields(string(script.Comment)))
		if err == nil {
			err = gate.Check(s)
		}
		if err == nil {
			t.Fatal("accepted")
		}
		got := err.Error() + "\n"
		if len(strictyaml.Errors(err)) != strings.Count(got, "\n") {
			t.Errorf("some error has more than one line:\n%s", got)
		}
		return got
	})
}
