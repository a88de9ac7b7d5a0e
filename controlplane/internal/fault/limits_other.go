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
	return fmt.Errorf("limits of another process can be set only on Linux; this system is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
