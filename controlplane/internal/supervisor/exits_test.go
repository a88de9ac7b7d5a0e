package supervisor

import (
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/internal/process"
)

func TestBackoffMatchesKubelet(t *testing.T) {
	for crashes, want := range map[int]time.Duration{
		1: 0, 2: 10 * time.Second, 3: 20 * time.Second, 4: 40 * time.Second, 7: 5 * time.Minute, 100: 5 * time.Minute,
	} {
		if got := backoff(crashes); got != want {
			t.Errorf("after %d ends in a row it waits %v, want %v", crashes, got, want)
		}
	}
}

// An exit that the kernel's OOM killer may have caused says so.
func TestExitOutOfMemory(t *testing.T) {
	for _, c := range []struct {
		exit     process.Exit
		oomKills uint64
		want     string
	}{
		{process.Exit{Code: -1, Signal: "SIGKILL"}, 0, "ended by SIGKILL"},
		{process.Exit{Code: -1, Signal: "SIGKILL"}, 2, "ended by SIGKILL (perhaps for lack of memory: the kernel has killed 2 processes since this process started)"},
		{process.Exit{Code: -1, Signal: "SIGTERM"}, 2, "ended by SIGTERM"},
		{process.Exit{Code: 2}, 2, "exited with code 2"},
	} {
		if got := ending(c.exit, c.oomKills); got != c.want {
			t.Errorf("%+v, %d: %s", c.exit, c.oomKills, got)
		}
	}
}
