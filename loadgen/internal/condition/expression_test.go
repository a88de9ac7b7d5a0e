package condition

import (
	"slices"
	"strings"
	"testing"
)

// pod returns a pod as the API server sends it.
func pod(phase string, labels ...string) Object {
	all := map[string]any{}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		all[key] = value
	}
	o := Object{"metadata": map[string]any{"name": "p", "labels": all}, "spec": map[string]any{"containers": []any{map[string]any{"name": "c"}}}}
	if phase != "" {
		o["status"] = map[string]any{
			"phase":      phase,
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
		}
	}
	return o
}

// tally returns the Tallies of a condition's counts if every set contains the given objects.
func tally(c *Condition, objects ...Object) []Tally {
	counter := NewCounter(c.Counts)
	for i, o := range objects {
		counter.Put(string(rune('a'+i)), o)
	}
	all := make([]Tally, len(c.Counts))
	for i := range all {
		all[i] = counter.Tally(i)
	}
	return all
}

func TestExpressions(t *testing.T) {
	objects := []Object{pod("Running", "app=web"), pod("Running"), pod("Pending"), pod("")}
	for text, want := range map[string]bool{
		`count(pods where status.phase == "Running") >= 2`:                                              true,
		`count(pods where status.phase == "Running") > 2`:                                               false,
		`pods.filter(p, p.status.phase == "Running").size() == 2`:                                       true,
		`size(pods.filter(p, p.status.phase == 'Running')) == 2`:                                        true,
		`pods.size() == 4 && size(pods) == 4 && count(pods) == 4`:                                       true,
		`pods.exists(p, p.status.phase == "Pending")`:                                                   true,
		`pods.exists_one(p, p.status.phase == "Running")`:                                               false,
		`pods.all(p, has(p.spec.containers))`:                                                           true,
		`all(pods where has(spec.containers))`:                                                          true,
		`all(pods where status.phase == "Running")`:                                                     false,
		`count(pods where has(status.phase)) == 3`:                                                      true,
		`count(pods where !has(status.phase)) == 1`:                                                     true,
		`count(pods where object.metadata.name == "p") == 4`:                                            true,
		`count(pods where status.conditions.exists(c, c.type == "Ready" && c.status == "True")) == 3`:   true,
		`count(pods where "app" in metadata.labels && metadata.labels.app == "web") == 1`:               true,
		`count(pods where status.phase in ["Running", "Pending"]) * 100 / count(pods) >= 75`:            true,
		`double(count(pods where status.phase == "Running")) / double(count(pods)) > 0.5`:               false,
		`count(pods where metadata.name.startsWith("(")) == 0`:                                          true,
		`count(pods where size(spec.containers) == 1 && spec.containers[0].name == "c") == 4`:           true,
		`count(pods where spec.containers.all(c, c.name.matches("^[a-c]$"))) == 4 || pods.size() == 99`: true,
		`!(pods.all(p, p.status.phase == "Running"))`:                                                   true,
		`deployments.apps.filter(d, d.status.phase == "Running").size() == nodes.size() - 2`:            true,
		`count(widgets.load.stormglass.dev where status.phase == "Running") == 2`:                       true,
		`count(pods where quantity("1Gi").isGreaterThan(quantity("1Mi"))) == 4`:                         true,
	} {
		c, err := Parse(text, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := c.Holds(tally(c, objects...)); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// Unlike CEL's own macro, all() is false for an empty set, because a scenario waits for objects that do not exist yet.
func TestAllOfNothingDoesNotHold(t *testing.T) {
	for text, want := range map[string]bool{`all(pods where true)`: false, `pods.all(p, true)`: true} {
		c, err := Parse(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Holds(tally(c)); got != want || err != nil {
			t.Errorf("Holds of %s without pods = %v, %v", text, got, err)
		}
	}
}

func TestSetsOfAnExpression(t *testing.T) {
	c, err := Parse(`count(pods where status.phase == "Running") >= 1 && deployments.apps.exists(d, d.metadata.name == "web") && pods.size() > 0`, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range c.Counts {
		got = append(got, n.Resource)
	}
	slices.Sort(got)
	if want := []string{"deployments.apps", "pods", "pods"}; !slices.Equal(got, want) {
		t.Errorf("the expression has the sets %v, want %v", got, want)
	}
}

func TestDescribe(t *testing.T) {
	c, err := Parse(`count(pods where status.phase == "Running") >= 950`, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := c.Describe(tally(c, pod("Running"), pod("")))
	if want := `1 of 2 pods where status.phase == "Running", 1 could not be evaluated: no such key: phase`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// podSchema is a Schema with only pods and their field status.phase.
type podSchema struct{}

func (podSchema) Resource(name string) error {
	if name == "pods" {
		return nil
	}
	return fail(`did you mean "pods"?`, "no resource %q", name)
}

func (podSchema) Field(_ string, path []string) error {
	if len(path) == 0 || strings.HasPrefix("metadata.labels", strings.Join(path, ".")) || strings.HasPrefix("status.phase", strings.Join(path, ".")) {
		return nil
	}
	return fail("", "pods have no field %s", strings.Join(path, "."))
}

func TestExpressionsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`count(podz where status.phase == "Running") >= 950`: `no resource "podz" (did you mean "pods"?)`,
		`podz.size() > 1`: `no resource "podz" (did you mean "pods"?)`,
		`podz > 1`:        `no resource "podz" (did you mean "pods"?)`,
		`count(pods where status.phse == "x") > 1`:   `pods have no field status.phse`,
		`count(pods where phase == "x") > 1`:         `pods have no field phase`,
		`pods.exists(p, p.status.phse == "x")`:       `pods have no field status.phse`,
		`pods.exists(p, has(p.sum))`:                 `pods have no field sum`,
		`count(pods where status.phase == "x" >= 1`:  `has no closing parenthesis (add a ) after the expression)`,
		`count(pods where status.phase) >= 1 `:       ``,
		`count(pods where status.phase ==) >= 1`:     `status.phase == is not valid CEL:  Syntax error`,
		`count(pods where status.phase == "x")`:      `count(pods where status.phase == "x") is of type int, but must be true or false (compare it, for example with == or >=)`,
		`count(pods where 1 + 1) >= 1`:               `1 + 1 is of type int, but must be true or false`,
		`pods.map(p, p.status.phase).size() > 1`:     `the expression names pods but does not count them (write count(pods`,
		`pods.filter(p, p.status.phase == "x") > 1`:  `the expression names pods but does not count them`,
		`pods.exists(p, q.status.phase == "x")`:      `undeclared reference to 'q'`,
		`1 > 2`:                                      `1 > 2 does not refer to any objects`,
		`count(pods) > "x"`:                          `found no matching overload for '_>_' applied to '(int, string)'`,
		`count(pods) > `:                             `is not valid CEL:  Syntax error`,
		`pods.all(1, true)`:                          `pods.all takes two arguments: a variable name and an expression`,
		`pods.exists(p, pods.exists(q, q == p))`:     `undeclared reference to 'pods'`,
		`count(pods where nope(status.phase)) > 0`:   `undeclared reference to 'nope'`,
		`count(pods where status.phase == "x") > nn`: `no resource "nn"`,
		strings.Repeat("(", maxText+1):               `the expression has 16385 bytes (at most 16384)`,
	} {
		_, err := Parse(text, podSchema{})
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", text, err, want)
		case err != nil && strings.ContainsAny(err.Error(), "\n\r"):
			t.Errorf("the error for %s has several lines: %q", text, err)
		}
	}
}

// An expensive expression fails, so that it does not delay events.
func TestCostIsBounded(t *testing.T) {
	c, err := Parse(`count(pods where spec.containers.all(a, spec.containers.all(b, spec.containers.all(c, a.name != b.name || b.name != c.name || true)))) > 0`, nil)
	if err != nil {
		t.Fatal(err)
	}
	many := make([]any, 300)
	for i := range many {
		many[i] = map[string]any{"name": "same"}
	}
	counts := tally(c, Object{"spec": map[string]any{"containers": many}})
	if holds, _ := c.Holds(counts); holds || counts[0].Failed != 1 || !strings.Contains(c.Describe(counts), "cost limit") {
		t.Errorf("the condition holds: %v; tallies %+v, want one failure", holds, counts)
	}
}
