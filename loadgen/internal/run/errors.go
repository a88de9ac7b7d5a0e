package run

import (
	"errors"
	"fmt"
)

// leftError names what is left in a user's cluster and how to remove it.
type leftError string

func (e leftError) Error() string { return string(e) }

// Left returns what an error says is left in a user's cluster, and how to remove it; or
// "".
func Left(err error) string {
	var left leftError
	errors.As(err, &left)
	return string(left)
}

// interruptedError ends a run that was stopped before there was anything to
// report: exit 3, or 4 if not all that was made could be undone.
type interruptedError struct{ left error }

func (e interruptedError) Error() string {
	if e.left != nil {
		return fmt.Sprintf("interrupted before there was anything to report, and not all was undone: %v", e.left)
	}
	return "interrupted before there was anything to report; nothing is left behind"
}

func (e interruptedError) Unwrap() error { return e.left }

// Unjudged: nothing was recorded, and nothing is left.
func (e interruptedError) Unjudged() bool { return e.left == nil }

// Interrupted is the error of a run that was stopped before there was anything to
// report; left, which may be nil, says what could not be undone.
func Interrupted(left error) error { return interruptedError{left} }
