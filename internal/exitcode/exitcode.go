// Package exitcode defines the exit codes of the programs loadgen and controlplane.
package exitcode

import (
	"errors"
	"fmt"
)

const (
	// Pass means that every gate passed, or that the command succeeded.
	Pass = 0
	// Fail means that a gate failed.
	Fail = 1
	// Usage means bad usage: invalid arguments, an invalid scenario or configuration file, or an unusable path.
	Usage = 2
	// NoData means that a run could not be judged.
	NoData = 3
	// Environment means that the machine, the control plane or the cluster failed.
	Environment = 4
	// Partial means that an import omitted a whole job, phase, measurement or Stage (a resource of KWOK).
	Partial = 5
	// Crash means that the program has a bug. It is EX_SOFTWARE of sysexits.h.
	Crash = 70
)

type usageError struct{ error }

type environmentError struct{ error }

func (e usageError) Unwrap() error       { return e.error }
func (e environmentError) Unwrap() error { return e.error }

// UsageError marks err as an error that the user has to correct. It returns nil if err is nil.
func UsageError(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// Usagef returns an error that the user has to correct.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// EnvironmentError marks err as a failure of the machine or the cluster. It returns nil if err is nil.
func EnvironmentError(err error) error {
	if err == nil {
		return nil
	}
	return environmentError{err}
}

// Environmentf returns an error that is a failure of the machine or the cluster.
func Environmentf(format string, args ...any) error {
	return environmentError{fmt.Errorf(format, args...)}
}

// IsUsage reports whether err contains an error that the user has to correct.
func IsUsage(err error) bool {
	var e usageError
	return errors.As(err, &e)
}

// IsEnvironment reports whether err contains a failure of the machine or the cluster.
func IsEnvironment(err error) bool {
	var e environmentError
	return errors.As(err, &e)
}

// Of returns the exit code for err. If err has a method Unjudged that returns true, the exit code is NoData, unless err
// also contains a failure of the environment.
func Of(err error) int {
	var unjudged interface{ Unjudged() bool }
	switch {
	case err == nil:
		return Pass
	case errors.As(err, &unjudged) && unjudged.Unjudged() && !IsEnvironment(err):
		return NoData
	case IsUsage(err):
		return Usage
	}
	return Environment
}
