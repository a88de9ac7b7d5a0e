// Originals runs a configuration with kube-burner or ClusterLoader2, imports it and runs it with loadgen, each on a new
// bundled control plane with simulated nodes. It compares the objects that appeared: kind, namespace, name, labels and
// count.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/lab/calibrate/runner"
)

func main() {
	var l lab
	flag.StringVar(&l.loadgen, "loadgen", "bin/loadgen", "the `binary`")
	flag.StringVar(&l.controlPlane, "controlplane", "bin/controlplane", "the `binary`")
	flag.StringVar(&l.kubeBurner, "kube-burner", "kube-burner", "the `binary` of kube-burner")
	flag.StringVar(&l.clusterLoader, "clusterloader2", "clusterloader", "the `binary` of ClusterLoader2")
	flag.IntVar(&l.nodes, "nodes", 10, "`number` of simulated nodes")
	flag.StringVar(&l.dir, "dir", "originals", "`directory` for planes, scenarios and logs")
	flag.BoolVar(&l.all, "all", false, "print each object that differs, not only the first ones")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: originals [flags] TOOL:CONFIG[,IMPORT-FLAG]...   (TOOL is kube-burner or clusterloader2)")
		flag.PrintDefaults()
	}
	flag.Parse()
	runner.Main("originals", func(ctx context.Context) error { return l.compareAll(ctx, os.Stdout, flag.Args()) })
}

type lab struct {
	loadgen, controlPlane, kubeBurner, clusterLoader string
	dir                                              string
	nodes                                            int
	all                                              bool
}

// A test is a configuration of a tool. flags are additional flags of `loadgen import`.
type test struct {
	tool, config string
	flags        []string
}

func (l *lab) compareAll(ctx context.Context, w io.Writer, args []string) error {
	same := 0
	for _, arg := range args {
		tool, rest, found := strings.Cut(arg, ":")
		if !found || tool != "kube-burner" && tool != "clusterloader2" {
			return fmt.Errorf("%s: write kube-burner:FILE or clusterloader2:FILE", arg)
		}
		parts := strings.Split(rest, ",")
		equal, err := l.compare(ctx, w, test{tool: tool, config: parts[0], flags: parts[1:]})
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
		if equal {
			same++
		}
	}
	fmt.Fprintf(w, "the same objects: %s\n", runner.Share(same, len(args)))
	return nil
}

func (l *lab) compare(ctx context.Context, w io.Writer, t test) (bool, error) {
	name := strings.TrimSuffix(filepath.Base(t.config), filepath.Ext(t.config))
	dir, err := filepath.Abs(filepath.Join(l.dir, t.tool+"-"+name))
	if err != nil {
		return false, err
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return false, err
	}
	scenario := filepath.Join(dir, "scenario.yaml")
	imported := append([]string{"import", t.tool, t.config, "--partial", "--out", scenario}, t.flags...)
	if err := l.command(ctx, dir, "import", l.loadgen, imported...); err != nil {
		return false, err
	}
	original, err := l.onPlane(ctx, dir, "original", t.tool, true, func(ctx context.Context, kubeconfig string) error { return l.original(ctx, t, dir, kubeconfig) })
	if err != nil {
		return false, err
	}
	ours, err := l.onPlane(ctx, dir, "imported", t.tool, false, func(ctx context.Context, kubeconfig string) error {
		// The gates of the run do not matter here.
		return runner.Verdict(l.command(ctx, dir, "run", l.loadgen, "run", scenario, "--kubeconfig", kubeconfig, "--yes", "--out", filepath.Join(dir, "run")))
	})
	if err != nil {
		return false, err
	}
	return report(w, t, original, ours, l.all), nil
}

// original runs the configuration with the tool for which it was written.
func (l *lab) original(ctx context.Context, t test, dir, kubeconfig string) error {
	if t.tool == "clusterloader2" {
		return l.command(ctx, dir, "original", l.clusterLoader, "--testconfig="+t.config, "--kubeconfig="+kubeconfig, "--provider=local",
			fmt.Sprintf("--nodes=%d", l.nodes), "--report-dir="+dir, "--v=2", "--enable-exec-service=false")
	}
	config, err := filepath.Abs(t.config)
	if err != nil {
		return err
	}
	binary, err := exec.LookPath(l.kubeBurner) // kube-burner runs in the directory of its configuration
	if err != nil {
		return err
	}
	if binary, err = filepath.Abs(binary); err != nil {
		return err
	}
	return runner.Run(ctx, filepath.Dir(config), filepath.Join(dir, "original.log"), binary, "init", "-c", filepath.Base(config), "--kubeconfig", kubeconfig, "--skip-log-file")
}

// onPlane calls `do` while it records the objects of a new control plane.
func (l *lab) onPlane(ctx context.Context, dir, name, tool string, nodes bool, do func(ctx context.Context, kubeconfig string) error) (_ map[object]int, err error) {
	at := filepath.Join(dir, name)
	if err := os.RemoveAll(at); err != nil {
		return nil, err
	}
	plane, err := control.Start(ctx, control.StartOptions{Binary: l.controlPlane, Dir: at, Config: &control.Config{ControllerManager: control.ControllerManager{QPS: 200, Burst: 400}}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plane.Stop(context.WithoutCancel(ctx))) }()
	kubeconfig := plane.Cluster().Kubeconfigs["admin"]
	config, client, err := runner.Client(plane)
	if err != nil {
		return nil, err
	}
	if nodes {
		stop, err := l.startNodes(ctx, dir, kubeconfig)
		if err != nil {
			return nil, err
		}
		defer stop()
		if err := awaitNodes(ctx, client, l.nodes); err != nil {
			return nil, err
		}
	}
	seen, err := record(ctx, config, tool)
	if err != nil {
		return nil, err
	}
	if err := do(ctx, kubeconfig); err != nil {
		return nil, err
	}
	return seen.stop(), nil
}

func (l *lab) startNodes(ctx context.Context, dir, kubeconfig string) (stop func(), err error) {
	log, err := os.Create(filepath.Join(dir, "nodes.log"))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, l.loadgen, "nodes", "--count", fmt.Sprint(l.nodes), "--kubeconfig", kubeconfig, "--yes")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		_ = cmd.Wait()                       // its exit code says nothing about the objects
		_ = log.Close()
	}, nil
}

// awaitNodes waits until the simulated nodes are Ready, and labels all nodes as workers, as OpenShift does.
func awaitNodes(ctx context.Context, client kubernetes.Interface, count int) error {
	if err := runner.AwaitNodes(ctx, client, count); err != nil {
		return err
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	patch := []byte(`{"metadata":{"labels":{"node-role.kubernetes.io/worker":""}}}`)
	for i := range list.Items {
		if _, err := client.CoreV1().Nodes().Patch(ctx, list.Items[i].Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) command(ctx context.Context, dir, name, binary string, args ...string) error {
	return runner.Run(ctx, "", filepath.Join(dir, name+".log"), binary, args...)
}
