// Nodepair compares the cost of the simulated nodes of Stormglass with the cost of KWOK's nodes, for the same work:
//
//	git clone https://github.com/kubernetes-sigs/kwok && go build -C kwok ./cmd/kwok
//	go run ./loadgen/lab/bench/nodepair --kwok kwok/kwok --stages kwok/kustomize/stage
//
// Each side is a way to simulate the nodes. Each side has a new bundled control plane, whose controllers may send
// 1,000 requests per second. Nodepair measures the program that simulates the nodes: its CPU use while the nodes are idle, its CPU time
// from the creation of a Deployment until all pods are Ready, how long that takes, and its resident memory afterwards.
// The sides run in a random order, whose seed is printed.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/prometheus/procfs"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/lab/calibrate/runner"
)

type options struct {
	loadgen, controlplane, kwok, stages, only string
	nodes, pods, pairs                        int
	idle                                      time.Duration
	seed                                      uint64
}

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	var o options
	flags := flag.NewFlagSet("nodepair", flag.ContinueOnError)
	flags.StringVar(&o.loadgen, "loadgen", "bin/loadgen", "the loadgen `program`")
	flags.StringVar(&o.controlplane, "controlplane", "bin/controlplane", "the controlplane `program`")
	flags.StringVar(&o.kwok, "kwok", "", "the kwok `program`; empty leaves it out")
	flags.StringVar(&o.stages, "stages", "", "KWOK's kustomize/stage `directory`")
	flags.StringVar(&o.only, "only", "", "measure the one `side` of this name")
	flags.IntVar(&o.nodes, "nodes", 500, "number of nodes")
	flags.IntVar(&o.pods, "pods", 5000, "number of pods")
	flags.IntVar(&o.pairs, "pairs", 1, "how often each way to simulate nodes is measured")
	flags.DurationVar(&o.idle, "idle", 30*time.Second, "`time` for which idle nodes are measured")
	flags.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "seed of the order")
	if err := flags.Parse(args); err != nil {
		return exitcode.Usage
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	if err := measureAll(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "nodepair:", err)
		return exitcode.Environment
	}
	return exitcode.Pass
}

// side is a way to simulate nodes, such as KWOK. `start` starts the program that simulates them.
type side struct {
	name  string
	start func(ctx context.Context, o options, dir, kubeconfig string, client kubernetes.Interface) (*exec.Cmd, error)
}

func sides(o options) []side {
	all := []side{{"kubelet", stormglass("kubelet")}, {"lean", stormglass("lean")}, {"shared", stormglass("shared")}}
	if o.kwok != "" {
		all = append(all, side{"KWOK", startKWOK})
	}
	return slices.DeleteFunc(all, func(s side) bool { return o.only != "" && s.name != o.only })
}

func measureAll(ctx context.Context, o options) error {
	fmt.Printf("%d nodes, %d pods, seed %d\n\n", o.nodes, o.pods, o.seed)
	order := rand.New(rand.NewPCG(o.seed, 0))
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "turn\tside\tidle, % of a core\tpods, CPU-s\tpods, time\tmemory")
	for turn := range o.pairs {
		all := sides(o)
		order.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, s := range all {
			f, err := measure(ctx, o, s)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			fmt.Fprintf(table, "%d\t%s\t%.2f\t%.1f\t%s\t%.0f MB\n", turn+1, s.name, 100*f.idle, f.pods, f.took.Round(time.Second), f.memory/1e6)
			fmt.Fprintln(os.Stderr, turn+1, s.name, f)
		}
	}
	return table.Flush()
}

// figures holds the measurements of one side: `idle` in cores, `pods` in CPU seconds, `memory` in bytes.
type figures struct {
	idle, pods, memory float64
	took               time.Duration
}

func measure(ctx context.Context, o options, s side) (f figures, err error) {
	dir, err := os.MkdirTemp("", "nodepair-")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir)
	plane, err := control.Start(ctx, control.StartOptions{Binary: o.controlplane, Dir: filepath.Join(dir, "plane"), Config: &control.Config{
		ControllerManager: control.ControllerManager{QPS: 1000, Burst: 1000},
		Scheduler:         control.Scheduler{QPS: 1000, Burst: 1000},
	}})
	if err != nil {
		return f, err
	}
	defer func() { _ = plane.Stop(context.Background()) }()
	_, client, err := runner.Client(plane)
	if err != nil {
		return f, err
	}
	program, err := s.start(ctx, o, dir, plane.Cluster().Kubeconfigs["admin"], client)
	if err != nil {
		return f, err
	}
	defer stop(program)
	if err := runner.AwaitNodes(ctx, client, o.nodes); err != nil {
		return f, err
	}
	if !apiclient.Pause(ctx, 20*time.Second) { // wait until the first lease renewals are over
		return f, context.Cause(ctx)
	}
	before, err := stat(program)
	if err != nil {
		return f, err
	}
	if !apiclient.Pause(ctx, o.idle) {
		return f, context.Cause(ctx)
	}
	after, err := stat(program)
	if err != nil {
		return f, err
	}
	f.idle = (after.CPUTime() - before.CPUTime()) / o.idle.Seconds()

	start := time.Now()
	if err := startPods(ctx, client, o.pods); err != nil {
		return f, err
	}
	f.took = time.Since(start)
	last, err := stat(program)
	f.pods = last.CPUTime() - after.CPUTime()
	f.memory = float64(last.ResidentMemory())
	return f, err
}

// stop ends a program. It sends a second signal to loadgen, so that loadgen does not remove its nodes: the control
// plane is stopped anyway.
func stop(program *exec.Cmd) {
	_ = program.Process.Signal(os.Interrupt)
	again := time.AfterFunc(2*time.Second, func() { _ = program.Process.Signal(os.Interrupt) })
	late := time.AfterFunc(time.Minute, func() { _ = program.Process.Kill() })
	defer again.Stop()
	defer late.Stop()
	_ = program.Wait() // its exit code after the signal does not matter
}

func stat(program *exec.Cmd) (procfs.ProcStat, error) {
	p, err := procfs.NewProc(program.Process.Pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return p.Stat()
}

// startPods creates a Deployment and returns when all its pods are Ready.
func startPods(ctx context.Context, client kubernetes.Interface, pods int) error {
	n, labels := int32(pods), map[string]string{"app": "web"}
	deployments := client.AppsV1().Deployments("default")
	_, err := deployments.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, time.Second, 15*time.Minute, false, func(ctx context.Context) (bool, error) {
		d, err := deployments.Get(ctx, "web", metav1.GetOptions{})
		return err == nil && d.Status.ReadyReplicas >= n, err
	})
}

type starter = func(context.Context, options, string, string, kubernetes.Interface) (*exec.Cmd, error)

func stormglass(fidelity string) starter {
	return func(_ context.Context, o options, dir, kubeconfig string, _ kubernetes.Interface) (*exec.Cmd, error) {
		return start(dir, o.loadgen, "nodes", "--count", strconv.Itoa(o.nodes), "--fidelity", fidelity, "--kubeconfig", kubeconfig, "--yes")
	}
}

// startKWOK creates the Nodes, which KWOK does not create, and starts KWOK with its "fast" stages for nodes and pods.
func startKWOK(ctx context.Context, o options, dir, kubeconfig string, client kubernetes.Interface) (*exec.Cmd, error) {
	args := []string{"--kubeconfig", kubeconfig, "--manage-all-nodes", "--node-lease-duration-seconds", "40", "--cidr", "10.0.0.0/16"}
	for _, pattern := range []string{"node/fast/node-*.yaml", "node/heartbeat-with-lease/node-*.yaml", "pod/fast/pod-*.yaml"} {
		stages, err := filepath.Glob(filepath.Join(o.stages, pattern))
		if err != nil || len(stages) == 0 {
			return nil, fmt.Errorf("there are no stages %s in %s", pattern, o.stages)
		}
		for _, stage := range stages {
			args = append(args, "--config", stage)
		}
	}
	for i := range o.nodes {
		size := corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110"),
		}
		_, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("kwok-%d", i)},
			Status:     corev1.NodeStatus{Allocatable: size, Capacity: size},
		}, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
	}
	return start(dir, o.kwok, args...)
}

// start starts a program that is killed when this program ends. Its output goes to the file log in dir.
func start(dir, name string, args ...string) (*exec.Cmd, error) {
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, cmd.Start()
}
