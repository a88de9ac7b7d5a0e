//go:build !linux

package fault

import (
	"errors"
	"fmt"
	"runtime"
)

// SetLimit returns an error, because it is implemented only for Linux.
func SetLimit(int, Rlimit, uint64) (was uint64, err error) { return 0, limitsAvailable() }

// limitsAvailable returns an error if SetLimit does not work on this system.
func limitsAvailable() error {
	return fmt.Errorf("a limit of another process can be set on Linux only, this is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
