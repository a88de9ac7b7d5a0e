package process

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/stormglass/stormglass/controlplane/control"
)

// DieWithParent makes this process kill itself by SIGKILL as soon as its
// parent is gone, if the parent asked for that through control.ParentPipeEnv.
// Call it once, first thing in main.
//
// SIGKILL and no clean-up: the parent's death is never orderly, and its children
// must not race with those of the next parent.
func DieWithParent() error {
	text, ok := os.LookupEnv(control.ParentPipeEnv)
	if !ok {
		return nil
	}
	fd, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("%s=%q is not a descriptor", control.ParentPipeEnv, text)
	}
	if err := os.Unsetenv(control.ParentPipeEnv); err != nil {
		return err
	}
	// What was inherited stops here: neither the pipe nor the directory's lock
	// (see Spec.Hold) may pass on to a child of ours.
	unix.CloseOnExec(fd)
	if _, err := unix.FcntlInt(holdFD, unix.F_GETFD, 0); err == nil {
		unix.CloseOnExec(holdFD)
	}
	pipe := os.NewFile(uintptr(fd), "parent pipe")
	go func() {
		// The parent never writes, so the read returns when the last write end closes.
		_, _ = pipe.Read(make([]byte, 1))
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	}()
	return nil
}
