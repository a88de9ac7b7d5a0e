package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/workers/job"
)

// renderFlags are the flags of `loadgen run --render`. With --render, loadgen prints manifests that run the scenario
// inside the cluster, instead of running it here.
type renderFlags struct {
	on    bool
	claim string
	asked cluster.Kubeconfig // cluster in which to look up resources; empty means no cluster
}

func (f *renderFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.on, "render", false, "print manifests for kubectl apply that run the scenario inside the cluster, and do not run it here; needs --image")
	flags.StringVar(&f.claim, "results-claim", "", "with --render, `name` of a PersistentVolumeClaim in --workers-namespace for the run's directory (default: the results are deleted with the pod)")
}

// renderedFlags lists the flags of run that also work with --render, because the manifests contain their values. The
// kubeconfig flags name the cluster in which loadgen looks up resources. Flags that are neither here nor in passedFlags
// apply only to runs on this machine.
func renderedFlags() []string {
	return []string{"render", "results-claim", "filename", "set", "without-gate", "no-hooks", "variant", "yes", "no-color", "kubeconfig", "current-cluster",
		"workers", "image", "image-pull-secret", "workers-namespace", "workers-resources", "workers-node-selector", "workers-tolerations"}
}

func passedFlags() []string {
	return []string{"abort-on", "max-rate", "no-lock", "remote-write", "prometheus", "prometheus-job", "prometheus-match", "workers-within", "label", "quiet", "log-level"}
}

// into moves o.Kubeconfig, which the flags have set, to f.asked, because the run in the pod uses the pod's own cluster.
// It returns an error if a flag would have no effect.
func (f *renderFlags) into(flags *pflag.FlagSet, k kubeconfigFlags, image string, o *run.Options) (err error) {
	switch {
	case !f.on && f.claim != "":
		return exitcode.Usagef("--results-claim needs --render")
	case !f.on:
		return nil
	case image == "":
		return exitcode.Usagef("--render: --image is missing (name an image that has loadgen as its entry point)")
	}
	f.asked, o.Kubeconfig = o.Kubeconfig, cluster.Kubeconfig{Files: cluster.InCluster}
	known := slices.Concat(renderedFlags(), passedFlags(), k.names)
	flags.Visit(func(flag *pflag.Flag) {
		if err == nil && !slices.Contains(known, flag.Name) {
			err = exitcode.Usagef("--%s applies only to a run on this machine (leave it out with --render)", flag.Name)
		}
	})
	return err
}

// takes returns the names of the flags that apply both to the workers' Job and to the Job of a rendered run. Without
// --render, it returns no names.
func (f renderFlags) takes(w workerFlags) []string {
	if f.on {
		return w.jobNames()
	}
	return nil
}

func (f *renderFlags) write(cmd *cobra.Command, o run.Options, w job.Options) error {
	m := job.Coordinator{Options: w, Workers: o.Workers.Count, Scenario: o.Scenario, Claim: f.claim, Args: passed(cmd.Flags())}
	if !cmd.Flags().Changed("workers-resources") {
		m.Resources = "" // loadgen in the image then uses its own default
	}
	if err := m.Check(); err != nil {
		return exitcode.UsageError(err)
	}
	o.Kubeconfig = f.asked
	rules, notes, err := run.InCluster(cmd.Context(), o)
	if err != nil {
		return err
	}
	m.Rules = rules
	text, err := m.YAML()
	if err != nil {
		return exitcode.UsageError(err)
	}
	for _, n := range notes {
		fmt.Fprintln(progressTo(cmd), "loadgen: "+terminal.CleanLines(n))
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}

// passed returns the flags that become arguments of loadgen in the pod.
func passed(flags *pflag.FlagSet) (args []string) {
	for _, name := range passedFlags() {
		flag := flags.Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		} else if pairs, err := flags.GetStringToString(name); err == nil {
			values = nil
			for _, key := range slices.Sorted(maps.Keys(pairs)) {
				values = append(values, key+"="+pairs[key])
			}
		}
		for _, v := range values {
			args = append(args, "--"+name+"="+v)
		}
	}
	return args
}
