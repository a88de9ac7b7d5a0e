//go:build !linux

package fault

import (
	"errors"
	"fmt"
	"runtime"
)

// SetLimit needs Linux.
func SetLimit(int, Rlimit, uint64) (was uint64, err error) { return 0, limitsAvailable() }

// limitsAvailable reports whether SetLimit works here.
func limitsAvailable() error {
	return fmt.Errorf("a limit of another process can be set on Linux only, this is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
