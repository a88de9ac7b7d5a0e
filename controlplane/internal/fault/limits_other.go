//go:build !linux

package fault

import (
	"errors"
	"fmt"
	"runtime"
)

// LimitDescriptors needs Linux.
func LimitDescriptors(int, uint64) (was uint64, err error) { return 0, descriptorsAvailable() }

// descriptorsAvailable reports whether LimitDescriptors works here.
func descriptorsAvailable() error {
	return fmt.Errorf("the limit of another process can be set on Linux only, this is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
