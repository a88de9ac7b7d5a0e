package run

import (
	"errors"
	"fmt"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Exit codes of `loadgen`: those of a judged run, and one of a run that never
// began.
const (
	ExitPass        = gate.ExitPass
	ExitNoData      = gate.ExitNoData
	ExitEnvironment = gate.ExitEnvironment
	ExitUsage       = exitcode.Usage
)

// leftError tells what is left in a user's cluster and how to remove it.
type leftError string

func (e leftError) Error() string { return string(e) }

// Left is what an error says is left in a user's cluster, and how to remove it; or
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

// Interrupted is the error of a run that was stopped before there was anything to
// report; left, which may be nil, says what could not be undone.
func Interrupted(left error) error { return interruptedError{left} }

// Usage marks err as the user's to mend.
func Usage(err error) error { return exitcode.UsageError(err) }

// ExitCode is the exit code an error deserves.
func ExitCode(err error) int {
	var interrupted interruptedError
	var damaged *result.Damaged
	switch {
	case err == nil:
		return ExitPass
	// Of several variants one may have failed before another was interrupted.
	case errors.As(err, &interrupted) && interrupted.left == nil && !exitcode.IsEnvironment(err):
		return ExitNoData
	case exitcode.IsUsage(err):
		return ExitUsage
	case errors.As(err, &damaged) && !exitcode.IsEnvironment(err):
		return ExitNoData
	}
	return ExitEnvironment
}
