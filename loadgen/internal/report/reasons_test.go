package report

import (
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// The cause of a failed environment or an unexpected exit is reported in full, once, with each line of the log on a
// separate line.
func TestCauseOfExitIsReported(t *testing.T) {
	const log = "runs/20261121-101500-rollout-500/controlplane/logs/kube-controller-manager-0.log"
	first := `E1121 10:18:01 leaderelection.go:429] "Failed to update lease" err="` + strings.Repeat("x", 400) + ` lost the lease"`
	quoted := "exited with code 1; from its log, " + log + ":\n  " + first + "\n  E1121 10:18:02 \x1b[2J\u202ea\n  E1121 10:18:03 b\n  I1121 c\n  I1121 d\n  F1121 10:18:04 leader election lost"
	for reason, event := range map[string]result.Event{
		"the environment failed: kube-controller-manager-0 died after 3m: it " + quoted: {Kind: result.EventNote, Name: "failed", Detail: quoted},
		"unexpected exit: kube-controller-manager-0 at 10:18:04.1 in storm: " + quoted:  {Kind: result.EventExit, Name: "kube-controller-manager-0", Detail: quoted},
	} {
		r := stormRun()
		event.Time = r.Measurements.Phases[0].Start
		r.Reasons, r.Gates = []string{reason}, nil
		term := newTerminal(TerminalOptions{Width: 100})
		term.reasons(r)
		dir := t.TempDir()
		if err := Write(t.Context(), dir, r, []result.Event{event}, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(filepath.Join(dir, result.HTMLFile))
		if err != nil {
			t.Fatal(err)
		}
		told := strings.Join(term.out, "\n")
		for what, text := range map[string]string{"terminal": told, "page": html.UnescapeString(string(page))} {
			for _, want := range []string{".log:\n", "E1121 10:18:02 [2Ja\n", "E1121 10:18:03 b\n", "leader election lost"} {
				if strings.Count(text, want) != 1 {
					t.Errorf("%s has %q %d times:\n%.3000s", what, want, strings.Count(text, want), text)
				}
			}
			if got := strings.Join(strings.Fields(text), ""); !strings.Contains(got, strings.Join(strings.Fields(first), "")) {
				t.Errorf("%s cuts the first error:\n%.3000s", what, text)
			}
		}
	}
}
