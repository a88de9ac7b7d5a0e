package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/stormglass/stormglass/loadgen/internal/condition"
)

// untilNames are the conditions that are known by name.
var untilNames = []string{"nodesReady", "nodesNotReady", "podsReady", "watchesOpen", "resourcesServed", "objectsMade"}

// Until is a condition: a name, as podsReady, or CEL over sets of objects, as count(pods where
// status.phase == "Running") >= 950, in place of the fields; else that one test, of Condition, JSONPath and
// CEL, holds for objects of a resource (docs/reference/conditions.md).
type Until struct {
	// Text is the name or the expression; empty: the fields.
	Text string `yaml:"-"`

	Resource  string `yaml:"resource,omitempty"`  // as "deployments.apps"
	Name      string `yaml:"name,omitempty"`      // of the only object, default any
	Namespace string `yaml:"namespace,omitempty"` // one that is not the run's, default the run's
	Selector  string `yaml:"selector,omitempty"`  // of labels, as "app=web", default any
	// Condition: type of a condition of the status, as "Available" or "Available=False"
	Condition string `yaml:"condition,omitempty"`
	// JSONPath: of one value, as "{.status.phase}=Running", or of any value, "{.status.phase}"
	JSONPath string `yaml:"jsonpath,omitempty"`
	CEL      string `yaml:"cel,omitempty"` // as "object.status.readyReplicas > 3"
	// Count: so many objects at least, or "all" (the default: all there are, at least one)
	Count string `yaml:"count,omitempty"`
}

// UnmarshalText reads a name or an expression.
func (u *Until) UnmarshalText(text []byte) error {
	u.Text = string(text)
	return nil
}

// MarshalYAML writes the form that was read.
func (u Until) MarshalYAML() (any, error) {
	if u.Text != "" {
		return u.Text, nil
	}
	type fields Until
	return fields(u), nil
}

// IsZero reports whether there is no condition.
func (u Until) IsZero() bool { return u == Until{} }

// Is reports whether it is the condition of that name.
func (u Until) Is(name string) bool { return u.Text == name }

// OfObjects reports whether it is a condition over sets of objects and has no name.
func (u Until) OfObjects() bool { return !u.IsZero() && !slices.Contains(untilNames, u.Text) }

// String is the name, the expression, or the fields in a few words.
func (u Until) String() string {
	if u.Text != "" || u.IsZero() {
		return u.Text
	}
	parts := []string{u.Resource}
	for _, part := range []string{u.Name, u.Selector} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if u.Namespace != "" {
		parts = append(parts, "in "+u.Namespace)
	}
	if u.Count != "" && u.Count != countAll {
		parts = append(parts, "count "+u.Count)
	}
	return strings.Join(append(parts, u.test()), " ")
}

// countAll is the Count of all objects that there are.
const countAll = "all"

// test is the one test of the fields, in its form.
func (u Until) test() string {
	switch {
	case u.Condition != "":
		return "condition=" + u.Condition
	case u.JSONPath != "":
		return "jsonpath=" + u.JSONPath
	}
	return "cel=" + u.CEL
}

// Compile is the condition over sets of objects.
func (u Until) Compile() (*condition.Condition, error) { return u.compile(nil) }

func (u Until) compile(schema condition.Schema) (*condition.Condition, error) {
	if u.Text != "" {
		return condition.Parse(u.Text, schema)
	}
	c := condition.Count{Set: condition.Set{Resource: u.Resource, Namespace: u.Namespace}, Name: u.Name}
	var err, failed error
	if c.Test, err = condition.ParseTest(u.Resource, u.test(), schema); err != nil {
		return nil, err
	}
	if c.Selector, failed = labels.Parse(u.Selector); failed != nil {
		return nil, failed
	}
	enough := condition.All
	if u.Count != "" && u.Count != countAll {
		if enough, err = strconv.Atoi(u.Count); err != nil {
			return nil, err
		}
	}
	return condition.OfObjects(u.String(), c, enough), nil
}

// Conditions are the conditions over sets of objects, by the phases that end with them.
func (s *Scenario) Conditions() (map[string]*condition.Condition, error) {
	all := map[string]*condition.Condition{}
	for i := range s.Phases {
		p := &s.Phases[i]
		if !p.Until.OfObjects() {
			continue
		}
		c, err := p.Until.Compile()
		if err != nil {
			return nil, s.Errorf(fmt.Sprintf("phases[%d].until", i), "", "%v", err)
		}
		all[p.Name] = c
	}
	return all, nil
}

// oneWord is the form of a condition's name.
var oneWord = regexp.MustCompile(`^[A-Za-z]*$`)

// until checks a phase's condition; false if it is refused.
func (v *validator) until(path string, p *Phase) bool {
	u := &p.Until
	switch {
	case v.s.recorded && u.OfObjects(): // by another version, perhaps
		return true
	case u.Text == "":
		return v.untilFields(path, u)
	case oneWord.MatchString(u.Text):
		return v.oneOf(path, u.Text, untilNames...)
	}
	_, err := u.compile(schemaOf{v.s})
	if err != nil {
		v.failCondition(path, err)
	}
	return err == nil
}

func (v *validator) failCondition(path string, err error) {
	if e := new(condition.Error); errors.As(err, &e) {
		v.fail(path, e.Hint, "%s", e.Msg)
		return
	}
	v.fail(path, "", "%v", err)
}

var objectCount = regexp.MustCompile(`^[1-9][0-9]{0,6}$`)

// untilFields checks a condition that is written as fields.
func (v *validator) untilFields(path string, u *Until) bool {
	before := len(v.errs)
	v.followed(path, u.Resource, u.Namespace, u.Selector)
	if u.Name != "" && u.Selector != "" {
		v.fail(path+".selector", "keep one of them", "the one object is named already")
	}
	switch {
	case u.Count == "" || u.Count == countAll:
	case !objectCount.MatchString(u.Count):
		v.fail(path+".count", "write all, or a number of objects", "%q is no number of objects", u.Count)
	case u.Name != "" && u.Count != "1":
		v.fail(path+".count", "leave it out", "there is one object of a name")
	}
	var tests []string
	for _, f := range [][2]string{{"condition", u.Condition}, {"jsonpath", u.JSONPath}, {"cel", u.CEL}} {
		if f[1] != "" {
			tests = append(tests, f[0])
		}
	}
	switch {
	case len(tests) == 0:
		v.fail(path, "add condition: Ready, jsonpath: '{.status.phase}=Running' or cel: object.status.replicas > 3", "nothing is asked of the objects")
	case len(tests) > 1:
		v.fail(path+"."+tests[1], "keep one of them; cel may hold both", "%s and %s at once", tests[0], tests[1])
	case len(v.errs) == before:
		if _, err := condition.ParseTest(u.Resource, u.test(), schemaOf{v.s}); err != nil {
			v.failCondition(path+"."+tests[0], err)
		}
	}
	return len(v.errs) == before
}

// followed checks which objects a condition or transition is about.
func (v *validator) followed(path, resource, namespace, selector string) {
	if resource == "" {
		v.fail(path+".resource", "as pods or deployments.apps", "is missing")
	} else if err := (schemaOf{v.s}).Resource(resource); err != nil {
		v.failCondition(path+".resource", err)
	}
	if namespace != "" && !dnsLabel.MatchString(namespace) {
		v.fail(path+".namespace", "as kube-system", "%q is no namespace", namespace)
	}
	if _, err := labels.Parse(selector); err != nil {
		v.fail(path+".selector", "as app=web,tier!=cache", "%q is no label selector", selector)
	}
}
