package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/judge"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scratch"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/internal/workload"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

type silent struct{}

func (silent) Step(string)   {}
func (silent) Live(Snapshot) {}

// nowhere is an API server that refuses every connection.
func nowhere() *rest.Config { return &rest.Config{Host: "https://127.0.0.1:1"} }

func parse(t *testing.T, body string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("mine.yaml", []byte("apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: mine\n"+body), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// underway returns a run with real stages, but without a reachable cluster.
func underway(t *testing.T, s *scenario.Scenario) *run {
	return underwayOf(t, s, console{Progress: silent{}})
}

func underwayOf(t *testing.T, s *scenario.Scenario, c console, collectors ...prometheus.Collector) *run {
	t.Helper()
	dir, err := MakeDirectory(t.TempDir(), "mine", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	theirs := cluster.Kubeconfig{Files: "theirs.kubeconfig", ConfigOverrides: clientcmd.ConfigOverrides{CurrentContext: "their's"}}
	gone := &cluster.Target{Admin: nowhere(), Labels: cluster.Labels("0123456789"), Requests: &apiclient.Counter{}}
	at := &site{
		compiled: compiled{o: Options{Scenario: s}, plan: plan.Of(s), aborts: &aborts{}}, dir: dir, journal: journal{console: c},
		target: newTarget(gone, &userCluster{console: c, cluster: gone, cleanup: cleanupCommand(Options{Kubeconfig: theirs}, "0123456789")}, nil),
	}
	at.info.ID, at.info.Started = "0123456789", time.Now().UTC()
	registry, err := Options{Collectors: collectors}.registry()
	if err != nil {
		t.Fatal(err)
	}
	if at.timeline, err = timeline.Open(dir.Path); err != nil {
		t.Fatal(err)
	}
	in, err := at.openInstruments(ports{registry: registry}, &undo{})
	if err != nil {
		t.Fatal(err)
	}
	d := drivers{loads: &loads{}, nodes: &nodes{spec: s.Nodes}, pause: load.NewPause()}
	if d.workload, err = workload.New(nowhere(), workload.Options{Namespace: "ns", Labels: map[string]string{"a": "b"}}); err != nil {
		t.Fatal(err)
	}
	return newRun(at, in, d)
}

// judged ends a run after its phases, and judges it.
func judged(t *testing.T, r *run) result.Result {
	t.Helper()
	r.info.Ended = time.Now().UTC()
	err := errors.Join(r.archiver.close(), r.samples.Close(), r.timeline.Close(), r.save())
	digests, digestErr := result.Digest(r.dir.Path)
	r.info.Files = digests
	if err = errors.Join(err, digestErr, rundir.WriteInfo(r.dir.Path, r.info)); err != nil {
		t.Fatal(err)
	}
	res, err := judge.Judge(t.Context(), r.dir.Path)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// addNodes adds simulated nodes to a run, and does not register them.
func addNodes(t *testing.T, r *run) {
	t.Helper()
	n, err := newNodes(node.Config{Spec: r.o.Scenario.Nodes, Identities: node.NewShared(nowhere()), NamePrefix: "n-", Seed: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	*r.nodes = *n
}

// impatient is a user who stops waiting when a step contains `words`.
type impatient struct {
	words string
	hurry chan struct{}
}

func (i impatient) Live(Snapshot) {}

func (i impatient) Step(line string) {
	if strings.Contains(line, i.words) {
		close(i.hurry)
	}
}

// A run reports the objects that it left in a user's cluster, even after another failure.
func TestWindUpReportsLeftObjects(t *testing.T) {
	for name, want := range map[string]string{
		"some objects could not be removed yet": "the cluster cannot be reached: connection refused",
		"removing the objects of the run":       "a second signal ended the clean-up: not tried",
	} {
		t.Run(name, func(t *testing.T) {
			user := impatient{name, make(chan struct{})}
			r := underwayOf(t, parse(t, "phases: [{name: p, for: 1s}]"), console{user, user.hurry})
			r.info.Failure = "load get: refused"
			if err := r.close(); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{want, "`loadgen cleanup --kubeconfig theirs.kubeconfig --context 'their'\\''s' --run 0123456789`"} {
				if !strings.Contains(r.info.Left, want) {
					t.Errorf("Left does not contain %q: %q", want, r.info.Left)
				}
			}
			if r.info.Failure != "load get: refused; "+r.info.Left {
				t.Errorf("failure %q", r.info.Failure)
			}
		})
	}
}

// Gates do not treat a phase as complete if an error ended it.
func TestFailedPhaseIsCutShort(t *testing.T) {
	r := underway(t, parse(t, "phases: [{name: p, for: 1h, actions: [{kind: deploy, name: web, replicas: 1}]}]"))
	err := r.phases.run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "patch deployment ns/web") {
		t.Fatalf("error %v", err)
	}
	if p := r.phases.stamps[0]; !p.Interrupted || p.Seconds() > 60 {
		t.Errorf("%+v", p)
	}
	if err := errors.Join(r.archiver.close(), r.timeline.Close()); err != nil {
		t.Error(err)
	}
}

// When a run is killed, the measurements of its nodes and of the phases that have ended are already in its directory.
func TestMeasurementsAreWrittenAsPhasesEnd(t *testing.T) {
	r := underway(t, parse(t, "nodes: {count: 2, fidelity: shared}\nphases: [{name: p, for: 1s}]"))
	addNodes(t, r)
	if err := r.phases.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := rundir.WriteInfo(r.dir.Path, r.info); err != nil {
		t.Fatal(err)
	}
	rec, err := rundir.Open(r.dir.Path)
	if err != nil || rec.Run.ID != r.info.ID || !rec.Run.Ended.IsZero() {
		t.Fatalf("%+v, %v", rec, err)
	}
	defer rec.Close()
	m := rec.Measurements
	if m.Nodes == nil || m.Nodes.Count != 2 || len(m.Phases) != 1 || m.Phases[0].Workload == nil {
		t.Errorf("the directory contains the measurements %+v", m)
	}
	r.nodes.stop(t.Context())
	if err := errors.Join(r.archiver.close(), r.timeline.Close()); err != nil {
		t.Error(err)
	}
}

// A run removes the credentials of a killed run's control plane from the directory next to its own. It keeps the
// credentials of a live run.
func TestKeysOfKilledRunsAreSwept(t *testing.T) {
	for name, lives := range map[string]bool{"killed": false, "alive": true} {
		t.Run(name, func(t *testing.T) {
			runs := t.TempDir()
			theirs := filepath.Join(runs, "theirs")
			keys := filepath.Join(theirs, planeDir, "pki")
			if err := errors.Join(os.MkdirAll(keys, 0o700), rundir.WriteJSON(theirs, result.RunFile, result.Run{ID: "0123456789"})); err != nil {
				t.Fatal(err)
			}
			if lives {
				lock, err := scratch.LockDir(theirs)
				if err != nil || lock == nil {
					t.Fatal(lock, err)
				}
				defer lock.Close()
			}
			console{Progress: silent{}}.sweep(filepath.Join(runs, "ours"))
			if _, err := os.Stat(keys); os.IsNotExist(err) == lives {
				t.Errorf("alive %v, stat of the credentials: %v", lives, err)
			}
		})
	}
}

// A run that fails to start removes its directory, but keeps the record of objects that it left in a cluster.
func TestRecordOutlastsFailedStart(t *testing.T) {
	for text, stays := range map[string]bool{"": false, "{}\n": true} {
		dir, err := MakeDirectory(filepath.Join(t.TempDir(), "run"), "mine", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		record := filepath.Join(dir.Path, result.CreatedFile)
		err = errors.Join(os.WriteFile(record, []byte(text), 0o600), os.WriteFile(filepath.Join(dir.Path, result.RunFile), nil, 0o600), dir.discard())
		if err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir.Path)
		if stays != (err == nil) || stays && (len(entries) != 1 || entries[0].Name() != result.CreatedFile) {
			t.Errorf("with the record %q, the directory contains %v (%v)", text, entries, err)
		}
	}
}

// A run ends even if its nodes never become Ready.
func TestUnreadyNodesEndRun(t *testing.T) {
	r := underway(t, parse(t, "nodes: {count: 2, fidelity: shared}\nphases: [{name: p, for: 1s}]"))
	addNodes(t, r)
	err := r.nodes.register(t.Context(), 100*time.Millisecond, r.journal, r.workload, r.self.Stalls())
	if exitcode.Of(err) != exitcode.Environment || !strings.Contains(err.Error(), "0 of 2 nodes are Ready: timed out after 100ms") {
		t.Errorf("exit code %d, error %v", exitcode.Of(err), err)
	}
	r.nodes.stop(t.Context())
	if got := registerWithin(scenario.Nodes{Count: 500, RegisterRate: 50}); got != 10*time.Minute+10*time.Second {
		t.Errorf("the time limit for 500 nodes at 50/s is %s", got)
	}
	if err := errors.Join(r.archiver.close(), r.timeline.Close()); err != nil {
		t.Error(err)
	}
}

// A run without an archive never passes, even if all its gates pass.
func TestNoPassWithoutAnArchive(t *testing.T) {
	dir := t.TempDir()
	s := parse(t, "phases: [{name: p, for: 1s}]\ngates: [{name: length, objective: phase-duration, max: 1m}]")
	text, err := s.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_800_000_000_000).UTC()
	if err := errors.Join(
		rundir.WriteFile(filepath.Join(dir, result.ScenarioFile), text),
		rundir.WriteJSON(dir, result.RunFile, result.Run{Started: now, Ended: now.Add(time.Second)}),
		rundir.WriteJSON(dir, result.MeasurementsFile, result.Measurements{Phases: []result.Phase{{Name: "p", Start: now, End: now.Add(time.Second)}}}),
	); err != nil {
		t.Fatal(err)
	}
	res, err := judge.Judge(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if res.Gates[0].Verdict != result.Pass || res.Verdict != result.NoData || res.ExitCode != exitcode.NoData {
		t.Errorf("gate %s, run %s, exit code %d; want pass, no data, 3", res.Gates[0].Verdict, res.Verdict, res.ExitCode)
	}
}

// The supervisor's errors about its configuration name the line of the scenario.
func TestControlPlaneErrorsNameScenarioLine(t *testing.T) {
	s := parse(t, "controlPlane:\n  apiServer:\n    flags:\n      max-requests-inflight: \"5\"\nphases: [{name: p, for: 1s}]")
	got := inScenario(plan.Of(s), `stdin:1: apiServer.flags.max-requests-inflight: too few (for example 400)`+"\nsomething else\n").Error()
	want := `mine.yaml:7: controlPlane.apiServer.flags.max-requests-inflight: too few (for example 400)` +
		"\nthe scenario's section controlPlane: something else"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestInterruptBeforeStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, Options{Scenario: parse(t, "phases: [{name: p, for: 1s}]"), Kubeconfig: cluster.Kubeconfig{Files: "none.kubeconfig"}, Progress: silent{}})
	if exitcode.Of(err) != exitcode.NoData || !strings.Contains(err.Error(), "nothing is left behind") {
		t.Errorf("exit code %d, error %v", exitcode.Of(err), err)
	}
	err = interruptedError{errors.New("delete namespaces: refused")}
	if exitcode.Of(err) != exitcode.Environment || strings.Contains(err.Error(), "nothing is left") || !strings.Contains(err.Error(), "delete namespaces") {
		t.Errorf("exit code %d, error %v", exitcode.Of(err), err)
	}
}

func TestNodesRequiresCount(t *testing.T) {
	_, err := Nodes(t.Context(), Options{Scenario: parse(t, "phases: [{name: p, for: 1s}]"), Progress: silent{}})
	if exitcode.Of(err) != exitcode.Usage {
		t.Errorf("exit code %d, error %v", exitcode.Of(err), err)
	}
}

// If another process stops the supervisor in the normal way, the run still gets an error.
func TestPlaneStoppedByAnotherProcess(t *testing.T) {
	if err := planeEnded(new(control.Supervisor)); err == nil {
		t.Error("no reason")
	}
}

func TestRunDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	now := time.Now()
	dir, made, err := rundir.Make("", "mine", now)
	if err != nil || len(made) != 2 {
		t.Fatalf("created %v, want two directories: %v", made, err)
	}
	second, _, err := rundir.Make("", "mine", now)
	if err != nil || second != dir+"-2" {
		t.Errorf("the second run in the same second has directory %s (%v), want the suffix -2", second, err)
	}
	if err := os.Remove(second); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := rundir.Remove(dir, made); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) != 0 {
		t.Errorf("the run left %v, %v", left, err)
	}

	if err := os.Mkdir("theirs", 0o700); err != nil {
		t.Fatal(err)
	}
	dir, made, err = rundir.Make("theirs", "mine", now)
	if err != nil || len(made) != 0 {
		t.Fatalf("created %v, want none: %v", made, err)
	}
	if err := rundir.Remove(dir, made); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("theirs"); err != nil {
		t.Errorf("the run removed the user's directory: %v", err)
	}
}
