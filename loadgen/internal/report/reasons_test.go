package report

import (
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// The cause of a failed environment is reported in full, with the log of its component.
func TestCauseOfFailedEnvironmentIsReported(t *testing.T) {
	var r result.Result
	r.ExitCode = 4
	r.Reasons = []string{"the environment failed: kube-controller-manager-0 died after 3m: it exited with code 1; from its log, " +
		"runs/20261121-101500-rollout-500/controlplane/logs/kube-controller-manager-0.log:\n  E1121 10:18:01 leaderelection.go:429] lost the lease\n  F1121 10:18:02 leader election lost"}
	term := newTerminal(TerminalOptions{Width: 100})
	term.reasons(r)
	if told := strings.Join(term.out, "\n"); !strings.Contains(told, "leader election lost") {
		t.Errorf("told:\n%s", told)
	}
}
