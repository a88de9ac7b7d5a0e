// Envtest measures how long controller-runtime's envtest and a control plane of Stormglass take to start and to stop,
// and how much memory they use. It starts them alternately, both with the same program controlplane. The last argument
// is the number of starts:
//
//	go run . ../../bin/controlplane 5
//
// Memory is the proportional set size (PSS) three seconds after the start: pages shared by several processes count
// once. Envtest is a separate module because it depends on controller-runtime.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stormglass/stormglass/controlplane/control"
)

// settle is the time from the start of the processes until their memory is read.
const settle = 3 * time.Second

// sample holds the measurements of one start: the seconds until ready, the memory in MB, and the seconds to stop.
type sample struct{ start, memory, stop float64 }

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "envtest:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: go run . CONTROLPLANE TIMES")
	}
	binary, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	times, err := strconv.Atoi(args[1])
	if err != nil || times < 1 {
		return fmt.Errorf("TIMES is %q (write a number of 1 or more)", args[1])
	}
	log.SetLogger(logr.Discard())
	scratch, err := os.MkdirTemp("", "envtest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if err := os.Symlink(binary, filepath.Join(scratch, name)); err != nil {
			return err
		}
	}
	var theirs, ours, shared []sample
	for i := range times {
		t, err := startEnvtest(scratch)
		if err != nil {
			return fmt.Errorf("envtest: %w", err)
		}
		o, s, err := startPlane(binary, filepath.Join(scratch, strconv.Itoa(i)))
		if err != nil {
			return fmt.Errorf("control plane: %w", err)
		}
		theirs, ours, shared = append(theirs, t), append(ours, o), append(shared, s)
	}
	show("envtest", theirs)
	show("control plane", ours)
	show("its etcd and kube-apiserver", shared)
	return nil
}

// show prints the medians of the samples. For the start time and the memory, it also prints the smallest and largest
// values.
func show(what string, all []sample) {
	row := func(get func(sample) float64) (mid, low, high float64) {
		var values []float64
		for _, s := range all {
			values = append(values, get(s))
		}
		slices.Sort(values)
		return values[len(values)/2], values[0], values[len(values)-1]
	}
	start, least, most := row(func(s sample) float64 { return s.start })
	memory, small, large := row(func(s sample) float64 { return s.memory })
	stop, _, _ := row(func(s sample) float64 { return s.stop })
	fmt.Printf("%-28s ready %5.2f s (%.2f to %.2f)   memory %3.0f MB (%.0f to %.0f)   stop %.2f s\n", what, start, least, most, memory, small, large, stop)
}

func startEnvtest(assets string) (s sample, err error) {
	e := &envtest.Environment{BinaryAssetsDirectory: assets}
	began := time.Now()
	if _, err := e.Start(); err != nil {
		return s, err
	}
	s.start = time.Since(began).Seconds()
	time.Sleep(settle)
	s.memory = childMemory()
	began = time.Now()
	err = e.Stop()
	s.stop = time.Since(began).Seconds()
	return s, err
}

// startPlane starts and stops a plane. It returns a sample of the whole plane (all), and a sample of only its etcd and
// kube-apiserver (shared).
func startPlane(binary, dir string) (all, shared sample, err error) {
	began := time.Now()
	plane, err := control.Start(context.Background(), control.StartOptions{Binary: binary, Dir: dir, Config: &control.Config{}})
	if err != nil {
		return all, shared, err
	}
	all.start = time.Since(began).Seconds()
	time.Sleep(settle)
	all.memory = memory(plane.Cluster().SupervisorPID)
	for _, c := range plane.Cluster().Components {
		of := memory(c.PID)
		all.memory += of
		if c.Kind == "etcd" || c.Kind == "kube-apiserver" {
			shared.memory += of
			shared.start = max(shared.start, c.Started.Add(c.ReadyAfter).Sub(began).Seconds())
		}
	}
	began = time.Now()
	err = plane.Stop(context.Background())
	all.stop = time.Since(began).Seconds()
	shared.stop = all.stop
	return all, shared, err
}

func childMemory() float64 {
	sum := 0.0
	tasks, _ := filepath.Glob("/proc/self/task/*/children") // fails only for a bad pattern
	for _, file := range tasks {
		text, _ := os.ReadFile(file) // an error means that the thread has ended
		for _, pid := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(pid); err == nil {
				sum += memory(n)
			}
		}
	}
	return sum
}

// memory returns the proportional set size of a process in megabytes, or 0 if the process has ended.
func memory(pid int) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "Pss:"); ok {
			kib, _ := strconv.ParseFloat(strings.Fields(value)[0], 64)
			return kib * 1024 / 1e6
		}
	}
	return 0
}
