package run

import (
	"errors"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
)

func TestInterruptDoesNotHideFailure(t *testing.T) {
	failed := exitcode.Environmentf("variant slow: no space left on device")
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"interrupted":                 {interruptedError{}, exitcode.NoData},
		"interrupted after a failure": {errors.Join(failed, interruptedError{}), exitcode.Environment},
		"something is left":           {interruptedError{left: errors.New("busy")}, exitcode.Environment},
		"misused":                     {errors.Join(exitcode.Usagef("no such gate"), failed), exitcode.Usage},
	} {
		if got := exitcode.Of(c.err); got != c.want {
			t.Errorf("%s: exit code %d, want %d", name, got, c.want)
		}
	}
}
