// Package condition compiles and evaluates a scenario's statements about Kubernetes objects. A Test holds or does not
// hold of one object. A Condition holds or does not hold of the numbers of objects for which Tests hold. A Counter
// updates these numbers with each change of an object, at a cost that does not depend on the number of objects.
//
// It has no clock and no I/O. It learns the existing resources from a Schema.
package condition

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Error describes what is wrong with the text of a condition.
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

// Schema knows the resources of a control plane. Its errors are *Error.
type Schema interface {
	// Resource returns an error if there is no resource of that name, as "pods" or "deployments.apps".
	Resource(name string) error
	// Field returns an error if objects of a resource cannot have the field at a path.
	Field(resource string, path []string) error
}

// Set names the objects that a watch delivers.
type Set struct {
	Resource string
	// Namespace of the objects. Empty means the run's namespace.
	Namespace string
}

// Count counts the objects of a set that are selected and for which a test holds.
type Count struct {
	Set
	Name     string          // of the only object; empty: any
	Selector labels.Selector // nil: any
	Test     Test            // the zero Test holds for each object

	noun string // of the objects, for a person
}

// Tally is the state of a Count.
type Tally struct {
	Selected int // existing objects
	Holds    int // of these, objects for which the test holds
	Failed   int // of these, objects for which the test could not be evaluated; it does not hold
	// Err is one of the errors of Failed. Its object may be gone already.
	Err error
}

// Condition holds or does not hold of the Tallies of its Counts.
type Condition struct {
	Text   string
	Counts []Count

	holds func([]Tally) (bool, error)
}

// Holds evaluates the condition. It takes one Tally per Count, in the order of Counts.
func (c *Condition) Holds(tallies []Tally) (bool, error) { return c.holds(tallies) }

// Describe reports the condition's progress, such as "913 of 1000 pods", and why a test could not be evaluated.
func (c *Condition) Describe(tallies []Tally) string {
	var parts []string
	for i, t := range tallies {
		part := fmt.Sprintf("%d of %d %s", t.Holds, t.Selected, c.Counts[i].noun)
		if t.Failed > 0 && t.Err != nil {
			part += fmt.Sprintf(", %d without an answer: %v", t.Failed, t.Err)
		}
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}

// All stands for all objects. At least one must exist.
const All = -1

// OfObjects returns the condition that a test holds for at least enough of a Count's objects, or for All of them.
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
