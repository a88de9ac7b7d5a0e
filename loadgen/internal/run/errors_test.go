package run

import (
	"errors"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
)

func TestAnInterruptDoesNotHideAFailure(t *testing.T) {
	failed := exitcode.Environmentf("variant slow: no space left on device")
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"interrupted":                 {interruptedError{}, ExitNoData},
		"interrupted after a failure": {errors.Join(failed, interruptedError{}), ExitEnvironment},
		"something is left":           {interruptedError{left: errors.New("busy")}, ExitEnvironment},
		"misused":                     {errors.Join(exitcode.Usagef("no such gate"), failed), ExitUsage},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%s: exit code %d, want %d", name, got, c.want)
		}
	}
}
