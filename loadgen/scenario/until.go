package scenario

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/condition"
)

var untilNames = []string{"nodesReady", "nodesNotReady", "podsReady", "watchesOpen", "resourcesServed", "objectsMade"}

// Until is a condition in one of three forms (docs/reference/conditions.md): a name such as podsReady; a CEL expression
// over sets of objects, such as count(pods where status.phase == "Running") >= 950; or fields with one test
// (`condition`, `jsonpath` or `cel`) that objects of a resource must pass.
type Until struct {
	// Text is the name or the expression; empty if the condition is written as fields.
	Text string `yaml:"-"`

	Resource  string `yaml:"resource,omitempty"`  // resource of the objects, such as "deployments.apps" or a custom resource
	Name      string `yaml:"name,omitempty"`      // name of the object, if only one must pass
	Namespace string `yaml:"namespace,omitempty"` // namespace of the objects, default the run's namespace
	Selector  string `yaml:"selector,omitempty"`  // label selector of the objects, such as "app=web"
	// Condition: condition type in the status, such as "Available" or "Available=False"
	Condition string `yaml:"condition,omitempty"`
	// JSONPath: path and value, such as "{.status.phase}=Running", or only a path, which may have any value
	JSONPath string `yaml:"jsonpath,omitempty"`
	CEL      string `yaml:"cel,omitempty"` // CEL expression, such as "object.status.readyReplicas > 3"
	// Count: minimum number of objects that must pass, or "all" (default: every existing object, at least one)
	Count string `yaml:"count,omitempty"`
}

// UnmarshalText stores a name or an expression.
func (u *Until) UnmarshalText(text []byte) error {
	u.Text = string(text)
	return nil
}

// MarshalYAML encodes the condition in its original form: as text or as fields.
func (u Until) MarshalYAML() (any, error) {
	if u.Text != "" {
		return u.Text, nil
	}
	type fields Until
	return fields(u), nil
}

// IsZero reports whether there is no condition.
func (u Until) IsZero() bool { return u == Until{} }

// Is reports whether the condition has the given name.
func (u Until) Is(name string) bool { return u.Text == name }

// OfObjects reports whether the condition is an expression or a test on objects, not a named condition.
func (u Until) OfObjects() bool { return !u.IsZero() && !slices.Contains(untilNames, u.Text) }

// String returns the name, the expression, or a short text that describes the fields.
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

const countAll = "all"

// test returns the test of the condition as text: Condition, JSONPath or CEL, whichever is set.
func (u Until) test() string {
	switch {
	case u.Condition != "":
		return "condition=" + u.Condition
	case u.JSONPath != "":
		return "jsonpath=" + u.JSONPath
	}
	return "cel=" + u.CEL
}

// Compile compiles the condition. It must be a condition on objects (see OfObjects).
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

// oneWord matches text that is one word, and so may be a misspelled name of a condition.
var oneWord = regexp.MustCompile(`^[A-Za-z]*$`)

// until checks the condition of a phase. It returns false if the condition is invalid.
func (v *validator) until(path string, p *Phase) bool {
	u := &p.Until
	switch {
	case v.s.recorded && u.OfObjects(): // another version of Stormglass may have recorded the run
		return true
	case u.Text == "":
		return v.untilFields(path, u)
	case oneWord.MatchString(u.Text):
		return v.oneOf(path, u.Text, untilNames...)
	}
	_, err := u.compile(builtin.Schema{})
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

func (v *validator) untilFields(path string, u *Until) bool {
	before := len(v.errs)
	v.followed(path, u.Resource, u.Namespace, u.Selector)
	if u.Name != "" && u.Selector != "" {
		v.fail(path+".selector", "keep one of them", "this field has no effect, because name already selects the object")
	}
	switch {
	case u.Count == "" || u.Count == countAll:
	case !objectCount.MatchString(u.Count):
		v.fail(path+".count", "write all, or a number of objects", "%q is not a number of objects", u.Count)
	case u.Name != "" && u.Count != "1":
		v.fail(path+".count", "leave it out", "with name, count can be only 1")
	}
	var tests []string
	for _, f := range [][2]string{{"condition", u.Condition}, {"jsonpath", u.JSONPath}, {"cel", u.CEL}} {
		if f[1] != "" {
			tests = append(tests, f[0])
		}
	}
	switch {
	case len(tests) == 0:
		v.fail(path, "add condition: Ready, jsonpath: '{.status.phase}=Running' or cel: object.status.replicas > 3", "the condition is missing")
	case len(tests) > 1:
		v.fail(path+"."+tests[1], "keep one of them, or test both with cel", "%s and %s cannot be used together", tests[0], tests[1])
	case len(v.errs) == before:
		if _, err := condition.ParseTest(u.Resource, u.test(), builtin.Schema{}); err != nil {
			v.failCondition(path+"."+tests[0], err)
		}
	}
	return len(v.errs) == before
}

// followed checks the resource, namespace and selector of a condition or transition.
func (v *validator) followed(path, resource, namespace, selector string) {
	if resource == "" {
		v.fail(path+".resource", "for example pods or deployments.apps", "is missing")
	} else if err := (builtin.Schema{}).Resource(resource); err != nil {
		v.failCondition(path+".resource", err)
	}
	if namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
		v.fail(path+".namespace", "for example kube-system", "%q is not a namespace name", namespace)
	}
	if _, err := labels.Parse(selector); err != nil {
		v.fail(path+".selector", "for example app=web,tier!=cache", "%q is not a label selector", selector)
	}
}
