package cli

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/planetest"
	"github.com/stormglass/stormglass/internal/scrapeconfig"
	"github.com/stormglass/stormglass/loadgen/result"
)

// loadgenProcess is a separate `loadgen` process, for tests of signals.
type loadgenProcess struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr *bufio.Scanner
	said   []string
}

// startLoadgen starts this test binary as `loadgen`.
func startLoadgen(t *testing.T, args ...string) *loadgenProcess {
	t.Helper()
	p := newLoadgen(t, args...)
	p.start()
	return p
}

// newLoadgen returns a loadgenProcess that is not started yet.
func newLoadgen(t *testing.T, args ...string) *loadgenProcess {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// testscript.Main selects the command by the name of the program.
	program := filepath.Join(t.TempDir(), "loadgen")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	return &loadgenProcess{t: t, cmd: exec.Command(program, args...)}
}

func (p *loadgenProcess) start() {
	p.t.Helper()
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	p.stderr = bufio.NewScanner(stderr)
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
}

// startRun waits for its turn and starts a run on its own bundled plane.
func startRun(t *testing.T, args ...string) *loadgenProcess {
	t.Helper()
	runTurns.take(t)
	return startLoadgen(t, append([]string{"run", "--controlplane", plane.Binary}, args...)...)
}

// awaitLine waits until a line with the given words is printed.
func (p *loadgenProcess) awaitLine(words string) {
	p.t.Helper()
	for p.stderr.Scan() {
		p.said = append(p.said, p.stderr.Text())
		if strings.Contains(p.stderr.Text(), words) {
			return
		}
	}
	p.t.Fatalf("the run never printed %q, but:\n%s", words, strings.Join(p.said, "\n"))
}

// wait waits for the end and returns the exit code.
func (p *loadgenProcess) wait() int {
	for p.stderr.Scan() {
		p.said = append(p.said, p.stderr.Text())
	}
	_ = p.cmd.Wait() // the exit code is checked below
	return p.cmd.ProcessState.ExitCode()
}

// wantExit waits for the end, which must be with the given code.
func (p *loadgenProcess) wantExit(want int) {
	p.t.Helper()
	if code := p.wait(); code != want {
		p.t.Errorf("exit code %d, want %d\n%s", code, want, strings.Join(p.said, "\n"))
	}
}

// awaitNoProcess waits until no process has the directory on its command line.
func awaitNoProcess(t *testing.T, dir string) {
	t.Helper()
	const within = 30 * time.Second
	began := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for last := false; ; <-tick.C {
		left := processesOf(t, dir)
		if len(left) == 0 {
			return
		}
		if last {
			t.Fatalf("%s after its end, the run still has processes:\n%s", within, strings.Join(left, "\n"))
		}
		last = time.Since(began) > within // on a busy machine the test may not have looked for this long
	}
}

func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && strings.Contains(string(data), dir) {
			found = append(found, f+": "+strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	return found
}

func readResult(t *testing.T, dir string) result.Result {
	t.Helper()
	return readJSON[result.Result](t, filepath.Join(dir, result.ResultFile))
}

func readJSON[T any](t *testing.T, file string) (value T) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// wantPass waits for the end of a run, whose gates must pass. On a machine that was too busy
// to measure, gates may have no data.
func wantPass(t *testing.T, p *loadgenProcess, dir string) result.Result {
	t.Helper()
	code := p.wait()
	wantFiles(t, dir)
	r := readResult(t, dir)
	unjudged := planetest.Starved(r)
	for _, g := range r.Gates {
		unjudged = unjudged || planetest.Unjudged(r, g)
		if g.Verdict != result.Pass && !planetest.Unjudged(r, g) {
			t.Errorf("gate %s: %s (%s)", g.Name, g.Verdict, g.Detail)
		}
	}
	if code != 0 && !(unjudged && code == 3) {
		t.Errorf("exit code %d: %v\n%s", code, r.Reasons, strings.Join(p.said, "\n"))
	}
	return r
}

func wantFiles(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{
		result.RunFile, result.ScenarioFile, result.MeasurementsFile, result.TimelineFile,
		result.TSDBDir, result.ResultFile, result.JUnitFile, result.HTMLFile,
	} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestRunOnABundledPlane: a run starts its plane, can be queried while it is active, measures the scenario, leaves no
// processes, and can be reported again.
func TestRunOnABundledPlane(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(planetest.Dir(t), "run")
	p := startRun(t, "testdata/mini.yaml", "--out", dir, "--observe")
	queryWhileUnderWay(t, p)
	r := wantPass(t, p, dir)
	awaitNoProcess(t, dir)
	if _, err := os.Stat(filepath.Join(dir, "controlplane", scrapeconfig.Dir)); !os.IsNotExist(err) {
		t.Errorf("the scrape configuration of a plane that is gone: %v", err)
	}
	if names := phaseNames(r); !slices.Equal(names, []string{"rollout", "fan-out", "update"}) {
		t.Errorf("phases %v", names)
	}
	if w := r.Measurements.Phases[0].Workload; w == nil || w.PodsReady != 10 {
		t.Errorf("the rollout's pods: %+v", w)
	}
	// The API server may end watches of clients that are late.
	if w := r.Measurements.Phases[1].Watches; len(w) != 1 || w[0].Expected == 0 || (w[0].Delivered != w[0].Expected || w[0].Open != 10) && !planetest.Starved(r) {
		t.Errorf("the fan-out's watches: %+v", w)
	}
	if all := r.Measurements.Phases[1].Requests; !slices.ContainsFunc(all, func(q result.Requests) bool {
		return q.Verb == "apply" && q.Resource == "widgets.load.stormglass.dev" && q.Tenant == "blue" && q.Succeeded > 0
	}) {
		t.Errorf("no apply of a custom resource by a tenant: %+v", all)
	}
	if !slices.ContainsFunc(r.Breakdown, func(b result.Breakdown) bool { return b.ServerSource == "audit" && *b.ServerMean > 0 }) {
		t.Errorf("the audit log tells no time of the server's: %+v", r.Breakdown)
	}
	for _, k := range r.Key {
		if len(k.Rows) == 0 {
			t.Errorf("key metric %s has no value: %s", k.Name, k.Missing)
		}
	}
	checkPanels(t, dir)
	before, err := os.ReadFile(filepath.Join(dir, result.ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	// The report is rebuilt from the directory alone, and is the same.
	for _, name := range []string{result.ResultFile, result.JUnitFile, result.HTMLFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	startLoadgen(t, "report", dir).wantExit(r.ExitCode)
	wantFiles(t, dir)
	after, err := os.ReadFile(filepath.Join(dir, result.ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	if was, is := firstDifference(string(before), string(after)); was != is {
		t.Errorf("the rebuilt result.json differs: before\n%s\nafter\n%s", was, is)
	}
}

// firstDifference returns the lines from the one before the first difference to the one after it.
func firstDifference(a, b string) (ofA, ofB string) {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(as), len(bs)) {
		if i >= len(as) || i >= len(bs) || as[i] != bs[i] {
			context := func(all []string) string {
				return strings.Join(all[min(max(i-1, 0), len(all)):min(i+2, len(all))], "\n")
			}
			return context(as), context(bs)
		}
	}
	return "", ""
}

func phaseNames(r result.Result) (names []string) {
	for _, p := range r.Measurements.Phases {
		names = append(names, p.Name)
	}
	return names
}

// TestVerdicts: a tighter gate fails a run, a removed metric makes it
// impossible to judge.
func TestVerdicts(t *testing.T) {
	useSharedPlane(t)
	for name, c := range map[string]struct {
		set  string
		code int
	}{
		"tighter gate":        {"gates.mutating-latency.max=1ms", 1},
		"metric not recorded": {"record.drop=[apiserver_request_sli_duration_seconds]", 3},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(planetest.Dir(t), "run")
			p := startLoadgen(t, "run", "testdata/short.yaml", "--out", dir, "--set", c.set, "--kubeconfig", plane.Cluster().Kubeconfigs["admin"], "--yes")
			p.wantExit(c.code)
			wantFiles(t, dir)
		})
	}
}

// TestKill: if loadgen is killed at any time, the processes that it started end, and its recording can still be reported, but
// never passes.
func TestKill(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"run directory", "etcd-0", "phase only"} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(planetest.Dir(t), "run")
			p := startRun(t, "testdata/short.yaml", "--out", dir, "--set", "phases.only.for=10m")
			p.awaitLine(moment)
			if err := p.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			p.wait()
			awaitNoProcess(t, dir)
			startLoadgen(t, "report", dir).wantExit(3)
		})
	}
}

// killedIn starts a run, kills the supervisor or a component of its control plane in the phase, and waits for the end.
func killedIn(t *testing.T, victim, length string, code int) (dir string, r result.Result) {
	t.Helper()
	dir = filepath.Join(planetest.Dir(t), "run")
	p := startRun(t, "testdata/short.yaml", "--out", dir, "--set", "phases.only.for="+length)
	p.awaitLine("phase only")
	c, err := control.Load(filepath.Join(dir, "controlplane"))
	if err != nil {
		t.Fatal(err)
	}
	pid := c.SupervisorPID
	for _, component := range c.Components {
		if component.Kind == victim {
			pid = component.PID
		}
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.wantExit(code)
	awaitNoProcess(t, dir)
	return dir, readResult(t, dir)
}

// If the control plane ends during a run, the environment has failed, and the first reason in the report names the cause.
func TestPlaneDies(t *testing.T) {
	t.Parallel()
	dir, r := killedIn(t, "supervisor", "10m", 4)
	if want := "the environment failed: the control plane ended during the run: its supervisor process was killed by SIGKILL"; !strings.HasPrefix(r.Reasons[0], want) {
		t.Errorf("the first reason is %q, want %q", r.Reasons[0], want)
	}
	if _, err := os.Stat(filepath.Join(dir, "controlplane", "pki")); !os.IsNotExist(err) {
		t.Errorf("keys are left: %v", err)
	}
}

// A component that crashes is started again. The run continues, and cannot be judged.
func TestComponentCrashesInARun(t *testing.T) {
	t.Parallel()
	_, r := killedIn(t, "kube-scheduler", "10s", 3)
	if len(r.Run.UnexpectedExits) != 1 || !strings.HasPrefix(r.Run.UnexpectedExits[0], "kube-scheduler-0 at ") || !strings.Contains(r.Run.UnexpectedExits[0], "SIGKILL") {
		t.Errorf("unexpected exits: %q, reasons %q", r.Run.UnexpectedExits, r.Reasons)
	}
}

// A run that another program started ends in order when that program ends, if the program requested this.
func TestRunEndsWithItsParent(t *testing.T) {
	t.Parallel()
	parent, alive, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer parent.Close()
	runTurns.take(t)
	dir := filepath.Join(planetest.Dir(t), "run")
	p := newLoadgen(t, "run", "--controlplane", plane.Binary, "testdata/short.yaml", "--out", dir, "--set", "phases.only.for=10m")
	p.cmd.ExtraFiles, p.cmd.Env = []*os.File{parent}, append(os.Environ(), control.ParentPipeEnv+"=3")
	p.start()
	p.awaitLine("phase only")
	alive.Close()
	p.wantExit(3)
	awaitNoProcess(t, dir)
	wantFiles(t, dir)
}
