package condition

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// Test is a test of one object. The zero Test is true for every object.
type Test struct {
	Text  string
	holds func(Object) (bool, error)
}

// Holds evaluates the test. It returns an error if the test cannot be evaluated, for example because a field is missing.
// Holds is not safe for concurrent use.
func (t Test) Holds(o Object) (bool, error) {
	if t.holds == nil {
		return true, nil
	}
	return t.holds(o)
}

// A test starts with one of these prefixes.
const (
	conditionForm = "condition="
	jsonPathForm  = "jsonpath="
	celForm       = "cel="
)

// Forms shows an example of each way to write a test, for hints.
const Forms = "condition=Ready, jsonpath={.status.phase}=Running or cel=object.status.replicas > 3"

// maxText is the maximum length of an expression or a test in bytes. The time to parse grows with the square of the
// length.
const maxText = 16 << 10

func tooLong(text string) *Error {
	return fail(fmt.Sprintf("at most %d", maxText), "the expression has %d bytes", len(text))
}

// ParseTest parses a test for the objects of a resource. Forms shows how a test is written. If schema is nil, the
// fields in a test are not checked.
func ParseTest(resource, text string, schema Schema) (Test, error) {
	if len(text) > maxText {
		return Test{}, tooLong(text)
	}
	of := func(t Test, err error) (Test, error) {
		t.Text = text
		return t, err
	}
	if rest, ok := strings.CutPrefix(text, conditionForm); ok {
		return of(StatusCondition(rest))
	}
	if rest, ok := strings.CutPrefix(text, jsonPathForm); ok {
		return of(JSONPath(rest))
	}
	if rest, ok := strings.CutPrefix(text, celForm); ok {
		return of(CEL(resource, rest, schema))
	}
	return Test{}, fail("write "+Forms, "%q is not a valid condition of an object", text)
}

var statusCondition = regexp.MustCompile(`^([A-Za-z][-A-Za-z0-9_./]*)(?:=(.+))?$`)

// StatusCondition returns the test for a condition in an object's status, written as "Available" or "Available=False".
// As with `kubectl wait --for=condition`, case does not matter. The test is false if the condition was observed for an
// older generation of the object.
func StatusCondition(text string) (Test, error) {
	m := statusCondition.FindStringSubmatch(text)
	if m == nil {
		return Test{}, fail("write the type of the condition, for example Available or Available=False", "%q is not a condition of an object", text)
	}
	kind, want := m[1], m[2]
	if want == "" {
		want = "True"
	}
	return Test{Text: conditionForm + text, holds: func(o Object) (bool, error) {
		status, _ := o["status"].(map[string]any)
		all, _ := status["conditions"].([]any)
		for _, item := range all {
			c, _ := item.(map[string]any)
			name, _ := c["type"].(string)
			is, _ := c["status"].(string)
			if strings.EqualFold(name, kind) {
				return strings.EqualFold(is, want) && !outdated(o, status, c), nil
			}
		}
		return false, nil
	}}, nil
}

// outdated reports whether the condition c was observed for an older generation of its object.
func outdated(o Object, status, c map[string]any) bool {
	meta, _ := o["metadata"].(map[string]any)
	generation, _ := meta["generation"].(int64)
	observed, known := c["observedGeneration"].(int64)
	if !known {
		observed, known = status["observedGeneration"].(int64)
	}
	return known && observed < generation
}

// JSONPath returns the test for a value at a path, written as "{.status.phase}=Running". A path without "=" tests for
// any value. As with `kubectl wait --for=jsonpath`, the path must select exactly one value, and the braces are
// optional.
func JSONPath(text string) (Test, error) {
	const hint = "write {.status.phase}=Running"
	path, want, equal := strings.TrimSpace(text), "", false
	if strings.HasPrefix(path, "{") {
		end := strings.LastIndex(path, "}=")
		switch {
		case end >= 0:
			path, want, equal = path[:end+1], path[end+2:], true
		case !strings.HasSuffix(path, "}"):
			return Test{}, fail(hint, "%q is not a valid JSONPath", text)
		}
	} else {
		if strings.Contains(path, "?(") {
			return Test{}, fail("write braces around the path, for example {.status.phase}=Running", "%q is not a valid JSONPath", text)
		}
		path, want, equal = strings.Cut(path, "=")
		path = "{." + strings.TrimPrefix(path, ".") + "}"
	}
	if equal && strings.TrimSpace(want) == "" {
		return Test{}, fail(hint+", or the path alone for any value", "%q does not name a value", text)
	}
	parsed := jsonpath.New("path").AllowMissingKeys(true)
	if err := parsed.Parse(path); err != nil {
		return Test{}, fail(hint, "%q is not a valid JSONPath: %v", path, err)
	}
	want = strings.TrimSpace(want)
	return Test{Text: jsonPathForm + text, holds: func(o Object) (bool, error) {
		found, err := parsed.FindResults(map[string]any(o))
		switch {
		case err != nil:
			return false, err
		case len(found) == 0 || len(found[0]) == 0:
			return false, nil
		case len(found) > 1 || len(found[0]) > 1:
			return false, errors.New("the path selects several values")
		case !equal:
			return true, nil
		}
		switch value := found[0][0].Interface().(type) {
		case map[string]any, []any:
			return false, errors.New("the path selects fields or a list, not one value")
		default:
			return strings.TrimSpace(fmt.Sprint(value)) == want, nil
		}
	}}, nil
}
