package report

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// element is a plain XML element, to check against the schema that CI systems
// share (Jenkins' junit-10.xsd).
type element struct {
	name     string
	attrs    map[string]string
	children []*element
}

func parseXML(t *testing.T, text string) *element {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(text))
	root := &element{}
	stack := []*element{root}
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return root.children[0]
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			e := &element{name: tok.Name.Local, attrs: map[string]string{}}
			for _, a := range tok.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			top := stack[len(stack)-1]
			top.children = append(top.children, e)
			stack = append(stack, e)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		}
	}
}

// checkJUnit checks elements, their order, attributes and counts.
func checkJUnit(t *testing.T, text string) *element {
	t.Helper()
	type rule struct{ required, optional, children []string }
	rules := map[string]rule{
		"testsuites": {[]string{"name", "tests", "failures", "errors", "time"}, nil, []string{"testsuite"}},
		"testsuite":  {[]string{"name", "tests", "failures", "errors", "skipped", "time", "timestamp"}, nil, []string{"properties", "testcase"}},
		"properties": {nil, nil, []string{"property"}},
		"property":   {[]string{"name", "value"}, nil, nil},
		"testcase":   {[]string{"name", "classname", "time"}, nil, []string{"skipped", "error", "failure", "system-out"}},
		"error":      {[]string{"message", "type"}, nil, nil},
		"skipped":    {[]string{"message"}, nil, nil},
		"failure":    {[]string{"message", "type"}, nil, nil},
		"system-out": {},
	}
	counts := map[string]int{}
	var walk func(*element)
	walk = func(e *element) {
		counts[e.name]++
		r, ok := rules[e.name]
		if !ok {
			t.Errorf("the schema has no element <%s>", e.name)
			return
		}
		for _, a := range r.required {
			if _, ok := e.attrs[a]; !ok {
				t.Errorf("<%s> has no %s", e.name, a)
			}
		}
		for a, v := range e.attrs {
			if !slices.Contains(r.required, a) {
				t.Errorf("<%s> has an unknown attribute %s", e.name, a)
			}
			if a == "time" {
				if s, err := strconv.ParseFloat(v, 64); err != nil || s < 0 {
					t.Errorf("time=%q", v)
				}
			}
		}
		at := 0
		for _, c := range e.children {
			i := slices.Index(r.children, c.name)
			if i < at {
				t.Errorf("<%s> out of place in <%s>", c.name, e.name)
			}
			at = max(i, at)
			walk(c)
		}
	}
	root := parseXML(t, text)
	walk(root)
	for attr, name := range map[string]string{"tests": "testcase", "failures": "failure", "errors": "error"} {
		for _, e := range []*element{root, root.children[0]} {
			if e.attrs[attr] != strconv.Itoa(counts[name]) {
				t.Errorf("<%s %s=%s>, but there are %d", e.name, attr, e.attrs[attr], counts[name])
			}
		}
	}
	return root
}

func TestJUnit(t *testing.T) {
	broken := stormRun()
	broken.Run.Failure, broken.ExitCode = "etcd-0 ended: exit status 1", 4
	unmet := floodRun()
	unmet.Verdict, unmet.ExitCode, unmet.Reasons = result.Fail, 1, []string{"phase flood: watchesOpen was not met in 2m"}
	for _, c := range []struct {
		name             string
		run              result.Result
		failures, errors string
		runCase          string // the run's own problem
	}{
		{"pass", floodRun(), "0", "0", ""},
		{"fail", stormRun(), "2", "1", ""},
		{"no data", blindRun(), "0", "7", "generator saturated"},
		{"interrupted", cutRun(), "0", "10", "interrupted"},
		{"environment", broken, "2", "2", "environment"},
		{"condition not met", unmet, "1", "0", "failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			if err := JUnit(&out, c.run); err != nil {
				t.Fatal(err)
			}
			root := checkJUnit(t, out.String())
			if f, e := root.attrs["failures"], root.attrs["errors"]; f != c.failures || e != c.errors {
				t.Errorf("%s failures and %s errors, want %s and %s", f, e, c.failures, c.errors)
			}
			if green := root.attrs["failures"] == "0" && root.attrs["errors"] == "0"; green != (c.run.Verdict == result.Pass) {
				t.Errorf("green: %v, verdict %s", green, c.run.Verdict)
			}
			own := root.children[0].children[1]
			kind := ""
			if p := own.children[0]; p.name != "system-out" {
				kind = p.attrs["type"]
			}
			if own.attrs["name"] != "run" || kind != c.runCase {
				t.Errorf("the run's own case has %q, want %q", kind, c.runCase)
			}
			if strings.Contains(out.String(), "<skipped") {
				t.Error("a CI system counts skipped as success")
			}
		})
	}
}

// The page and junit.xml show the labels of a run.
func TestLabelsAreShown(t *testing.T) {
	r := stormRun()
	r.Run.Labels = map[string]string{"team": "core", "build": "7"}
	var text strings.Builder
	if err := JUnit(&text, r); err != nil {
		t.Fatal(err)
	}
	checkJUnit(t, text.String())
	for _, want := range []string{`<property name="label" value="build=7"></property>`, `<property name="label" value="team=core"></property>`} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("junit.xml lacks %s", want)
		}
	}
	if page := render(t, r, nil); !strings.Contains(page, "build=7, team=core") {
		t.Error("the page lacks the labels")
	}
}
