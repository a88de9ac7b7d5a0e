// Package condition compiles and evaluates a scenario's conditions on Kubernetes objects. A Test is true or false for
// one object. A Condition depends on how many objects pass its Tests. A Counter updates these numbers at each change of
// an object, at a cost that does not depend on the number of objects.
//
// The package has no clock and does no I/O. A Schema tells it which resources exist.
package condition

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Error is an error in the text of a condition, with a hint on how to correct it.
type Error struct {
	Msg, Hint string
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Msg
	}
	return e.Msg + " (" + e.Hint + ")"
}

func fail(hint, format string, args ...any) *Error {
	return &Error{Msg: fmt.Sprintf(format, args...), Hint: hint}
}

// AsError returns the Error in err, or a new Error with the text of err.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Msg: err.Error()}
}

// Schema describes the resources of a control plane. The errors of its methods are of type *Error.
type Schema interface {
	// Resource returns an error if there is no resource with that name, such as "pods" or "deployments.apps".
	Resource(name string) error
	// Field returns an error if objects of the resource cannot have a field with the given path.
	Field(resource string, path []string) error
}

// Set identifies the objects that a watch delivers.
type Set struct {
	Resource string
	// Namespace is the namespace of the objects. Empty means the run's namespaces.
	Namespace string
}

// Count says which objects to count: the selected objects of a Set that satisfy a Test.
type Count struct {
	Set
	Name     string          // name of the only object to count; empty means any name
	Selector labels.Selector // label selector of the objects; nil means any labels
	Test     Test            // the zero Test is true for each object

	noun string // describes the objects to the user
}

// Tally is the result of a Count at one time.
type Tally struct {
	Selected int // selected objects that exist
	Holds    int // selected objects for which the test is true
	Failed   int // selected objects for which the test could not be evaluated; they do not count in Holds
	// Err is the error for one of the Failed objects. That object may be deleted by now.
	Err error
}

// Condition is a condition on the results of its Counts.
type Condition struct {
	Text   string
	Counts []Count

	holds func([]Tally) (bool, error)
}

// Holds reports whether the condition is true. tallies holds the Tally of each Count, in the order of Counts.
func (c *Condition) Holds(tallies []Tally) (bool, error) { return c.holds(tallies) }

// Describe describes the progress of the condition, such as "913 of 1000 pods". If a test could not be evaluated,
// Describe adds the reason.
func (c *Condition) Describe(tallies []Tally) string {
	var parts []string
	for i, t := range tallies {
		part := fmt.Sprintf("%d of %d %s", t.Holds, t.Selected, c.Counts[i].noun)
		if t.Failed > 0 && t.Err != nil {
			part += fmt.Sprintf(", %d could not be evaluated: %v", t.Failed, t.Err)
		}
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}

// All is the value of the parameter `enough` of OfObjects that requires the test to be true for all objects, and at
// least one object to exist.
const All = -1

// OfObjects returns the condition that a test is true for at least a given number of objects of a Count. The parameter
// `enough` is that number; All means all objects.
func OfObjects(text string, c Count, enough int) *Condition {
	c.noun = c.Resource
	if c.Name != "" {
		c.noun += " " + c.Name
	}
	return &Condition{Text: text, Counts: []Count{c}, holds: func(t []Tally) (bool, error) {
		if enough == All {
			return t[0].Selected > 0 && t[0].Holds == t[0].Selected, nil
		}
		return t[0].Holds >= enough, nil
	}}
}
