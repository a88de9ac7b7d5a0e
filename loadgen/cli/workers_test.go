package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/planetest"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
)

const dividedLoad = `apiVersion: stormglass/v1alpha1
kind: Scenario
name: divided
phases:
- name: flood
  for: 10s # a busy machine sends fewer in the first seconds
  load:
  - {kind: watches, name: crowd, count: 20, rate: 100/s, objects: 4}
  - {kind: changes, name: writes, watches: crowd, rate: 20/s}
  - {kind: requests, name: reads, verb: get, rate: 50/s, objects: 8}
  - {kind: requests, name: updates, verb: update, resource: leases.coordination.k8s.io, rate: 20/s, objects: 8}
gates:
- {name: lost, objective: watch-lost, load: crowd, max: 0}
- {name: errors, objective: request-errors, max: 0}
- {name: sent, expr: 'sum(increase(stormglass_requests_total{load="reads"}[$window]))', min: 150}
`

func dividedScenario(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "divided.yaml")
	if err := os.WriteFile(file, []byte(dividedLoad), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A run whose loads are divided between two processes of this machine passes like a run of one generator, reports the
// share of each, and leaves neither processes nor credentials.
func TestRunWithWorkers(t *testing.T) {
	useSharedPlane(t)
	kubeconfig := plane.Cluster().Kubeconfigs["admin"]
	dir := filepath.Join(planetest.Dir(t), "run")
	p := startLoadgen(t, "run", dividedScenario(t), "--out", dir, "--kubeconfig", kubeconfig, "--yes", "--workers", "2", "--workers-local")
	r := wantPass(t, p, dir)
	m := r.Measurements
	if len(m.Workers) != 2 {
		t.Fatalf("workers %+v", m.Workers)
	}
	for _, w := range m.Workers {
		if w.Sent < 100 || w.Watches != 10 || w.Delivered == 0 || w.Generator.CPUSeconds == 0 || w.Lost != "" {
			t.Errorf("worker %+v", w)
		}
	}
	// Watches need not deliver writes from before they were opened.
	// The API server may end watches of clients that are late.
	if watches := m.Phases[0].Watches[0]; watches.Delivered < 20*30 || (watches.Open != 20 || watches.Delivered != watches.Expected) && !planetest.Starved(r) {
		t.Errorf("watches %+v of %+v", watches, m.Phases[0].Changes)
	}
	awaitNoProcess(t, dir)
	for _, name := range []string{"token", "ca.pem"} {
		if _, err := os.Stat(filepath.Join(dir, "workers", name)); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	wantNothingLeft(t, kubeconfig)
}

const dividedNodes = `apiVersion: stormglass/v1alpha1
kind: Scenario
name: divided-nodes
nodes: {count: 9, fidelity: kubelet, leaseRenew: 6s} # a busy machine may stand still for 5 s
phases:
- name: rollout
  actions: [{kind: deploy, name: web, replicas: 40}]
  until: podsReady
  within: 2m
- name: beat
  for: 14s
- name: storm
  faults: [{kind: nodeFailure, fraction: 0.4}]
  for: 2s
- name: return
  faults: [{kind: nodeRecovery}]
  until: nodesReady
  within: 1m
gates:
- {name: missed, objective: missed-heartbeats, max: 0}
- {name: beats, expr: 'sum(increase(stormglass_node_heartbeats_total[$window]))', min: 9, over: [beat]}
`

// Simulated nodes of two workers run the pods of a rollout, miss no heartbeat, fail and recover like the nodes of one
// generator; with certificates that the cluster signs, with tokens, and with the identity of the load.
func TestRunWithNodesOfWorkers(t *testing.T) {
	useSharedPlane(t)
	kubeconfig := plane.Cluster().Kubeconfigs["admin"]
	for name, set := range map[string][]string{
		"certificates": nil, "tokens": {"--set", "nodes.identity=token"}, "shared": {"--set", "nodes.fidelity=shared"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "nodes.yaml")
			if err := os.WriteFile(file, []byte(dividedNodes), 0o600); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(planetest.Dir(t), "run")
			p := startLoadgen(t, append([]string{"run", file, "--out", dir, "--kubeconfig", kubeconfig, "--yes", "--workers", "2", "--workers-local"}, set...)...)
			r := wantPass(t, p, dir)
			m := r.Measurements
			if len(m.Workers) != 2 || m.Workers[0].Nodes != 5 || m.Workers[1].Nodes != 4 {
				t.Fatalf("workers %+v", m.Workers)
			}
			n := m.Nodes
			if n == nil || n.Count != 9 || n.PodsStarted < 40 || n.Heartbeats < 18 || n.Heartbeat.Count != n.Heartbeats+n.MissedByGenerator+n.MissedByServer {
				t.Fatalf("nodes %+v", n)
			}
			if n.MissedByGenerator+n.MissedByServer > 0 && !planetest.Starved(r) {
				t.Errorf("missed renewals of nodes %+v", n)
			}
			if w := m.Phases[0].Workload; w == nil || w.PodsReady < 40 {
				t.Errorf("workload %+v", w)
			}
			if said := strings.Join(p.said, "\n"); !strings.Contains(said, "fault: 4 of 9 nodes stop") || !strings.Contains(said, "9 nodes Ready") {
				t.Errorf("said\n%s", said)
			}
			awaitNoProcess(t, dir)
			wantNothingLeft(t, kubeconfig)
		})
	}
}

// A killed worker ends the run immediately with exit code 3 and the worker's name; all objects are removed.
func TestKilledWorkerEndsTheRun(t *testing.T) {
	useSharedPlane(t)
	kubeconfig := plane.Cluster().Kubeconfigs["admin"]
	dir := filepath.Join(planetest.Dir(t), "run")
	p := startLoadgen(t, "run", dividedScenario(t), "--out", dir, "--kubeconfig", kubeconfig, "--yes", "--workers", "2", "--workers-local",
		"--set", "phases.flood.for=10m")
	p.awaitLine("phase flood")
	killed := false
	for _, process := range processesOf(t, dir) {
		file, line, _ := strings.Cut(process, ": ")
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && strings.Contains(line, "--index 1") {
			killed = syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	}
	if !killed {
		t.Fatalf("no process is worker 1: %q", processesOf(t, dir))
	}
	p.wantExit(exitcode.NoData)
	if said := strings.Join(p.said, "\n"); !strings.Contains(said, "worker 1 (") || !strings.Contains(said, "was lost") {
		t.Errorf("said\n%s", said)
	}
	if res := readResult(t, dir); len(res.Run.LostWorkers) != 1 || res.Run.Failure != "" || !strings.Contains(strings.Join(res.Reasons, "\n"), "worker 1 (") {
		t.Errorf("lost %q, failure %q, reasons %q", res.Run.LostWorkers, res.Run.Failure, res.Reasons)
	}
	awaitNoProcess(t, dir)
	wantNothingLeft(t, kubeconfig)
}

func TestWorkerFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--workers=2":                            "--workers-local",
		"--workers=0 --workers-local":            "at least 1",
		"--workers-local":                        "--workers-local needs --workers N",
		"--workers=2 --workers-within=0s":        "greater than 0",
		"--workers=2 --workers-local":            "",
		"--workers=2 --workers-listen=[::]:7443": "",
		"":                                       "",

		"--workers=2 --workers-local --workers-namespace=x":                                     "--workers-namespace needs --image",
		"--workers=2 --image=loadgen:v1":                                                        "add --kubeconfig",
		"--workers=2 --image=loadgen:v1 --workers-kubeconfig=f":                                 "",
		"--workers=2 --image=loadgen:v1 --workers-kubeconfig=f --workers-advertise=a:1":         "needs --workers-listen",
		"--workers=2 --image=loadgen:v1 --workers-context=c":                                    "needs --workers-kubeconfig",
		"--workers=2 --image=-x --workers-kubeconfig=f":                                         "not an image name",
		"--workers=2 --image=loadgen:v1 --workers-kubeconfig=f --workers-resources=disk=1":      "not an amount of cpu or memory",
		"--workers=2 --image=loadgen:v1 --workers-kubeconfig=f --workers-node-selector=zone":    "is not a label",
		"--workers=2 --image=loadgen:v1 --workers-kubeconfig=f --image-pull-secret=registry":    "requires --workers-namespace",
		"--workers=2 --image=loadgen:v1 --workers-kubeconfig=f --workers-namespace=Not_A_Label": "not a namespace name",
	} {
		var f workerFlags
		flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
		f.add(flags)
		if err := flags.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		_, err := f.options(flags, cluster.Kubeconfig{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestWorkerTakesTheEnvironmentForFlags(t *testing.T) {
	all := map[string]string{coordinatorEnv: "10.0.0.1:7443", caEnv: "ca.pem", tokenEnv: "token", indexEnv: "3"}
	for name, c := range map[string]struct{ without, with, want string }{
		"all":            {},
		"no coordinator": {without: coordinatorEnv, want: "set --coordinator or --listen (or STORMGLASS_COORDINATOR"},
		"no index":       {without: indexEnv, want: "set --index (or JOB_COMPLETION_INDEX"},
		"no number":      {with: "many", want: "is not a number"},
	} {
		cmd := newWorker()
		var w workers.Worker
		err := workerEnvironment(cmd.Flags(), &w, func(name string) string {
			switch {
			case name == c.without:
				return ""
			case name == indexEnv && c.with != "":
				return c.with
			}
			return all[name]
		})
		if c.want == "" {
			if err != nil || w.Coordinator != "10.0.0.1:7443" || w.CAFile != "ca.pem" || w.TokenFile != "token" || w.Index != 3 {
				t.Errorf("%s: %+v, %v", name, w, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
