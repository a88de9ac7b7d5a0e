package run

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// hooked returns a run of a scenario whose phase has hooks, and the lines that the run shows.
func hooked(t *testing.T, hooks string) (*run, *lines) {
	t.Helper()
	said := &lines{}
	s := parse(t, "phases: [{name: storm, for: 1s, "+hooks+"}]")
	s.Phases[0].For = scenario.Duration(time.Millisecond) // too short for a real run, but long enough for this test
	return underwayOf(t, s, console{Progress: said}), said
}

func TestHooksRunBeforeAndAfterThePhase(t *testing.T) {
	r, _ := hooked(t, `before: [{run: [sh, -c, 'echo $STORMGLASS_PHASE $STORMGLASS_RUN_DIR; cp "$KUBECONFIG" "$STORMGLASS_RUN_DIR/copy"']}], after: [{run: [echo, one]}, {run: [echo, two]}]`)
	r.phases.hooks.namespace = "stormglass-x"
	if err := r.phases.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"storm-before-1.log": "storm " + r.dir.Path + "\n", "storm-after-1.log": "one\n", "storm-after-2.log": "two\n",
	} {
		if got, err := os.ReadFile(filepath.Join(r.dir.Path, "hooks", file)); err != nil || string(got) != want {
			t.Errorf("%s contains %q (%v), want %q", file, got, err, want)
		}
	}
	kubeconfig, err := clientcmd.LoadFromFile(filepath.Join(r.dir.Path, "copy"))
	if err != nil {
		t.Fatal(err)
	}
	if got := kubeconfig.Clusters[kubeconfig.Contexts[kubeconfig.CurrentContext].Cluster].Server; got != nowhere().Host {
		t.Errorf("the kubeconfig names the server %s", got)
	}
	all := r.phases.hooks.ran
	if len(all) != 3 || all[0].When != "before" || all[2].Command != "echo two" || all[2].Output != "hooks/storm-after-2.log" || all[1].Failed != "" {
		t.Errorf("%+v", all)
	}
	if stamp := r.phases.stamps[0]; stamp.Start.Before(all[0].Began) || stamp.End.After(all[1].Began) {
		t.Errorf("phase from %s to %s, but hooks began at %s and %s", stamp.Start, stamp.End, all[0].Began, all[1].Began)
	}
}

func TestFailedHookEndsTheRun(t *testing.T) {
	r, _ := hooked(t, `before: [{run: [sh, -c, "echo first; printf 'no \\033[1mquota\\n\\n' >&2; exit 3"]}, {run: [echo, never]}]`)
	err := r.phases.run(t.Context())
	want := `hook before storm: sh -c 'echo first; printf '\''no \033[1mquota\n\n'\'' >&2; exit 3': exit code 3: no [1mquota (full output: hooks/storm-before-1.log)`
	if exitcode.Of(err) != exitcode.Environment || err.Error() != want {
		t.Errorf("exit code %d, error %v\nwant %s", exitcode.Of(err), err, want)
	}
	if len(r.phases.stamps) != 0 || len(r.phases.hooks.ran) != 1 {
		t.Errorf("%d phases and %d hooks ran, want 0 and 1", len(r.phases.stamps), len(r.phases.hooks.ran))
	}
}

func TestHookThatIsNotRequiredIsNoted(t *testing.T) {
	r, said := hooked(t, `after: [{run: [no-such-program-anywhere], required: false}, {run: [sh, -c, "kill -9 $$"], required: false}]`)
	if err := r.o.checkHooks(r.plan); err != nil {
		t.Error(err)
	}
	if err := r.phases.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := r.phases.hooks.ran
	if len(all) != 2 || !strings.Contains(all[0].Failed, "executable file not found") || all[1].Failed != "signal: killed" || all[0].Required {
		t.Errorf("%+v", all)
	}
	if text := strings.Join(said.steps, "\n"); !strings.Contains(text, "note: hook after storm: no-such-program-anywhere: ") {
		t.Errorf("said %s", text)
	}
}

func TestMissingProgramOfAHookIsToldBeforeTheRun(t *testing.T) {
	r, _ := hooked(t, `before: [{run: [no-such-program-anywhere]}]`)
	want := "mine.yaml:4: phases.storm.before[0].run: no-such-program-anywhere cannot be run here: executable file not found in $PATH (install it, or leave out hooks with --no-hooks)"
	if err := r.o.checkHooks(r.plan); exitcode.Of(err) != exitcode.Environment || err.Error() != want {
		t.Errorf("exit code %d, error %v\nwant %s", exitcode.Of(err), err, want)
	}
	r.o.Scenario.DropHooks()
	r.plan = plan.Of(r.o.Scenario)
	if err := r.o.checkHooks(r.plan); err != nil {
		t.Error(err)
	}
}

func TestHookEndsAfterItsTime(t *testing.T) {
	r, _ := hooked(t, `before: [{run: [sleep, "600"], within: 10ms}]`)
	if err := r.phases.run(t.Context()); err == nil || !strings.Contains(err.Error(), "the command did not end within 10ms") {
		t.Errorf("%v", err)
	}
}

func TestInterruptEndsHooks(t *testing.T) {
	interrupt := errors.New("the user's signal")
	ctx, cancel := context.WithCancelCause(t.Context())
	r, _ := hooked(t, `before: [{run: [sleep, "600"]}]`)
	began := r.phases.hooks.kubeconfig
	r.phases.hooks.kubeconfig = func() (string, func() error, error) {
		cancel(interrupt)
		return began()
	}
	if err := r.phases.run(ctx); !errors.Is(err, interrupt) {
		t.Error(err)
	}
}

// When a hook has ended, its background processes are ended too.
func TestHookLeavesNoProcess(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		f, err := os.Open(fifo) // returns when the hook opens it too
		if err == nil {
			_, err = io.ReadAll(f) // returns when all processes have closed it
		}
		ended <- err
	}()
	t.Setenv("FIFO", fifo)
	r, _ := hooked(t, `before: [{run: [sh, -c, 'exec 3>"$FIFO"; sleep 600 &']}]`)
	if err := r.phases.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// An unmet condition is not a failure, but a failed hook after it is.
func TestHookAfterAConditionThatWasNotMet(t *testing.T) {
	r, _ := hooked(t, "after: [{run: [sh, -c, exit 1]}]")
	p := &r.o.Scenario.Phases[0]
	p.Until, p.Within, p.For = scenario.Until{Text: "podsReady"}, p.For, 0
	if err := r.phases.run(t.Context()); exitcode.Of(err) != exitcode.Environment || errors.Is(err, errConditionNotMet) {
		t.Error(err)
	}
}
