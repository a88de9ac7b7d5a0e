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
			t.Errorf("back-off after %d crashes = %v, want %v", crashes, got, want)
		}
	}
}

// The description of an exit says that the kernel may have killed the process for lack of memory.
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
			t.Errorf("ending(%+v, %d) = %s, want %v", c.exit, c.oomKills, got, c.want)
		}
	}
}
