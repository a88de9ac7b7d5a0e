// Package exitcode holds the exit codes of both programs, loadgen and
// controlplane.
package exitcode

import (
	"errors"
	"fmt"
)

const (
	// Pass: every gate passed, or the command succeeded.
	Pass = 0
	// Fail: a gate failed.
	Fail = 1
	// Usage: bad usage, a bad scenario or config file, or a path that was named
	// and cannot be used.
	Usage = 2
	// NoData: a run could not be judged.
	NoData = 3
	// Environment: the machine, the control plane or the cluster failed.
	Environment = 4
	// Crash: the program has a bug. EX_SOFTWARE of sysexits.h.
	Crash = 70
)

type usageError struct{ error }

type environmentError struct{ error }

func (e usageError) Unwrap() error       { return e.error }
func (e environmentError) Unwrap() error { return e.error }

// UsageError marks an error as the user's to mend. Nil stays nil.
func UsageError(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// Usagef returns an error that the user has to correct.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// EnvironmentError marks an error as the machine's or the cluster's. Nil stays nil.
func EnvironmentError(err error) error {
	if err == nil {
		return nil
	}
	return environmentError{err}
}

// Environmentf is an error of the machine or the cluster.
func Environmentf(format string, args ...any) error {
	return environmentError{fmt.Errorf(format, args...)}
}

// IsUsage reports whether err contains an error that the user has to correct.
func IsUsage(err error) bool {
	var e usageError
	return errors.As(err, &e)
}

// IsEnvironment reports whether err contains an error of the machine or the
// cluster.
func IsEnvironment(err error) bool {
	var e environmentError
	return errors.As(err, &e)
}

// Of returns the exit code of an error. An error that says that nothing is left to
// judge (Unjudged) gives NoData, unless the environment failed too.
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
