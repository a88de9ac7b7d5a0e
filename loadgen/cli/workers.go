package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
	"github.com/stormglass/stormglass/loadgen/internal/workers/job"
)

// workerFlags are the flags for runs that divide their loads among several generators (workers).
type workerFlags struct {
	count     int
	local     bool
	listen    string
	advertise string
	within    time.Duration

	job        job.Starter
	kubeconfig string
	context    string
}

func (f *workerFlags) add(flags *pflag.FlagSet) {
	flags.IntVar(&f.count, "workers", 0, "divide the loads and simulated nodes among this `number` of load generators (workers); needs --workers-local, --image or --workers-listen")
	flags.BoolVar(&f.local, "workers-local", false, "start the workers as processes on this machine")
	flags.StringVar(&f.listen, "workers-listen", "", "`address` (HOST:PORT) at which the run accepts connections from workers that you start, or from the pods of --image (default: the run connects to the pods)")
	flags.StringVar(&f.advertise, "workers-advertise", "", "`address` (HOST or HOST:PORT) at which workers reach this machine (default: --workers-listen; set it if that is 0.0.0.0)")
	flags.DurationVar(&f.within, "workers-within", 5*time.Minute, "maximum `time` until all workers have joined")
	flags.StringVar(&f.kubeconfig, "workers-kubeconfig", "", "kubeconfig `file` of the cluster where the Job runs (default: the cluster under load)")
	flags.StringVar(&f.context, "workers-context", "", "`context` in --workers-kubeconfig (default: the current context)")
	addJobFlags(flags, &f.job.Options)
	flags.Lookup("image").Usage += ", for the Jobs of --workers, --cleanup-job and --render"
}

func addJobFlags(flags *pflag.FlagSet, o *job.Options) {
	flags.StringVar(&o.Image, "image", "", "`name` of a container image whose entry point is loadgen")
	flags.StringVar(&o.Namespace, "workers-namespace", "", "existing `namespace` for the Job (default: a new namespace)")
	flags.StringVar(&o.PullSecret, "image-pull-secret", "", "`name` of the Secret in --workers-namespace with the registry's credentials")
	flags.StringVar(&o.Resources, "workers-resources", job.DefaultResources, "`requests` of CPU and memory for each pod of the Job; the memory is also the pod's limit")
	flags.StringVar(&o.Tolerations, "workers-tolerations", "", "`taints` that the pods tolerate, as KEY=VALUE:EFFECT,KEY:EFFECT,KEY")
	flags.StringVar(&o.NodeSelector, "workers-node-selector", "", "node `labels` that the pods require, as KEY=VALUE,KEY=VALUE")
}

// options returns the options of the workers for a run on target. An empty target means a bundled control plane. The
// flags whose names are in `besides` are also valid without --workers.
func (f workerFlags) options(flags *pflag.FlagSet, target cluster.Kubeconfig, besides ...string) (o workers.Options, err error) {
	if !flags.Changed("workers") {
		for _, name := range f.names() {
			if flags.Changed(name) && !slices.Contains(besides, name) {
				return o, exitcode.Usagef("--%s needs --workers N", name)
			}
		}
		return o, nil
	}
	o = workers.Options{Count: f.count, Listen: f.listen, Advertise: f.advertise, Within: f.within}
	switch {
	case f.count < 1:
		return o, exitcode.Usagef("--workers %d: must be at least 1", f.count)
	case f.within <= 0:
		return o, exitcode.Usagef("--workers-within %s: must be greater than 0", f.within)
	case f.local:
		o.Starter = workers.Local{}
	case f.job.Image != "":
		return f.inCluster(o, target)
	case f.listen == "":
		return o, exitcode.Usagef("--workers %d requires a place for the workers (add --workers-local to start processes on this machine, --image NAME to start a Job in your cluster, or --workers-listen HOST:PORT to start workers yourself)", f.count)
	}
	for _, name := range f.jobNames() {
		if flags.Changed(name) {
			return o, exitcode.Usagef("--%s needs --image NAME", name)
		}
	}
	return o, nil
}

// useImage reports whether the workers run as pods of a Job.
func (f workerFlags) useImage() bool { return f.count > 0 && !f.local && f.job.Image != "" }

// names returns the names of the flags that are valid only with --workers.
func (f workerFlags) names() []string {
	return append([]string{"workers-local", "workers-listen", "workers-advertise", "workers-within"}, f.jobNames()...)
}

// jobNames returns the names of the flags that are valid only if the workers run as a Job.
func (f workerFlags) jobNames() []string {
	return []string{"workers-kubeconfig", "workers-context", "workers-namespace", "workers-resources", "workers-node-selector", "workers-tolerations", "image-pull-secret"}
}

func (f workerFlags) inCluster(o workers.Options, target cluster.Kubeconfig) (workers.Options, error) {
	j := f.job
	switch {
	case f.kubeconfig != "":
		j.Kubeconfig.Files, j.Kubeconfig.CurrentContext = f.kubeconfig, f.context
	case f.context != "":
		return o, exitcode.Usagef("--workers-context needs --workers-kubeconfig")
	case target.Files == "":
		return o, exitcode.Usagef("--image requires a cluster with real nodes for the Job (add --kubeconfig FILE, --current-cluster or --workers-kubeconfig FILE)")
	default:
		j.Kubeconfig, j.OfTarget = target, true
	}
	o.Starter, o.Carried = j, f.listen == ""
	if o.Carried && f.advertise != "" {
		return o, exitcode.Usagef("--workers-advertise needs --workers-listen")
	}
	return o, exitcode.UsageError(j.Check())
}

// Environment variables that set flags of `loadgen worker`. Kubernetes sets them in the pods of an Indexed Job.
const (
	coordinatorEnv = "STORMGLASS_COORDINATOR"
	caEnv          = "STORMGLASS_CA"
	listenEnv      = "STORMGLASS_WORKER_LISTEN"
	tokenEnv       = "STORMGLASS_TOKEN_FILE"
	indexEnv       = "JOB_COMPLETION_INDEX"
)

func newWorker() *cobra.Command {
	var w workers.Worker
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run one worker (load generator) of a run with --workers",
		Long: `Run one worker: a load generator of 'loadgen run --workers N'. That run is the
coordinator. It gives each worker part of the loads and simulated nodes.

With --coordinator, the worker connects to the coordinator, which must run with
--workers-listen. The coordinator prints the command to start workers. With --listen,
the worker waits until the coordinator connects. The pods that 'loadgen run --image'
starts use --listen, unless that run has --workers-listen. The coordinator reaches them
by port forwarding.

Environment variables can replace flags: STORMGLASS_COORDINATOR (--coordinator),
STORMGLASS_WORKER_LISTEN (--listen), STORMGLASS_CA (--ca), STORMGLASS_TOKEN_FILE
(--token) and JOB_COMPLETION_INDEX (--index), which an Indexed Job sets.

The coordinator refuses a worker that was restarted, because the worker would send its
requests twice.

Exit codes:
  0  the run has ended
  2  the coordinator refused the worker: another build, the token of another run, or an
     index that has already joined
  4  the worker could not reach the coordinator, or lost the connection`,
		Example: `  loadgen worker --coordinator 10.0.0.5:7443 --ca ca.pem --token token --index 0`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, release, err := untilParentEnds(cmd.Context())
			if err != nil {
				return err
			}
			defer release()
			if err := workerEnvironment(cmd.Flags(), &w, os.Getenv); err != nil {
				return exitcode.UsageError(err)
			}
			w.Step = sayTo(cmd.ErrOrStderr())
			w.Build = run.Build()
			return w.Work(ctx)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&w.Coordinator, "coordinator", "", "`address` of the coordinator (HOST:PORT)")
	flags.StringVar(&w.Listen, "listen", "", "wait at this `address` (HOST:PORT) for the coordinator, instead of --coordinator")
	flags.StringVar(&w.CAFile, "ca", "", "`file` with the CA certificate that signed the coordinator's certificate")
	flags.StringVar(&w.TokenFile, "token", "", "`file` with the run's token")
	flags.IntVar(&w.Index, "index", 0, "`number` of the worker, from 0")
	flags.DurationVar(&w.Within, "within", 5*time.Minute, "maximum `time` to reach the coordinator")
	return cmd
}

// workerEnvironment sets options from environment variables, except options that a flag sets.
func workerEnvironment(flags *pflag.FlagSet, w *workers.Worker, getenv func(string) string) error {
	if !flags.Changed("coordinator") {
		w.Listen = cmp.Or(w.Listen, getenv(listenEnv))
	}
	if !flags.Changed("listen") {
		w.Coordinator = cmp.Or(w.Coordinator, getenv(coordinatorEnv))
	}
	switch {
	case w.Coordinator == "" && w.Listen == "":
		return fmt.Errorf("set --coordinator or --listen (or %s or %s in the environment)", coordinatorEnv, listenEnv)
	case w.Coordinator != "" && w.Listen != "":
		return errors.New("--coordinator and --listen cannot be used together (leave out one of them)")
	}
	for _, v := range []struct {
		to        *string
		flag, env string
	}{{&w.CAFile, "ca", caEnv}, {&w.TokenFile, "token", tokenEnv}} {
		if *v.to = cmp.Or(*v.to, getenv(v.env)); *v.to == "" {
			return fmt.Errorf("set --%s (or %s in the environment)", v.flag, v.env)
		}
	}
	if flags.Changed("index") {
		return nil
	}
	text := getenv(indexEnv)
	if text == "" {
		return fmt.Errorf("set --index (or %s in the environment)", indexEnv)
	}
	index, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("%s=%q in the environment is not a number", indexEnv, text)
	}
	w.Index = index
	return nil
}

func newWorkers() *cobra.Command {
	cmd := &cobra.Command{Use: "workers", Short: "Print manifests for workers that you start yourself"}
	cmd.AddCommand(newWorkersRender())
	return cmd
}

func newWorkersRender() *cobra.Command {
	var m job.Manifests
	cmd := &cobra.Command{
		Use:   "render",
		Short: "Print manifests of an Indexed Job of workers",
		Long: `Print manifests for kubectl apply: an Indexed Job of workers and their ServiceAccount,
which has no permissions and no token. Without --workers-namespace, the manifests also
contain a namespace with the Pod Security level "restricted". You do not need this
command for 'loadgen run --workers N --image NAME', which creates the objects itself.

The pods wait for the Secret stormglass-workers. Create it from the files that the run
writes when it starts:

  loadgen run NAME --workers 4 --workers-listen 0.0.0.0:7443 --out runs/x
  kubectl -n stormglass-workers create secret generic stormglass-workers \
    --from-file=runs/x/workers/ca.pem --from-file=runs/x/workers/token`,
		Example: `  loadgen workers render --workers 4 --image registry.example.com/loadgen:v1 --coordinator 10.0.0.5:7443 | kubectl apply -f -`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printManifests(cmd.OutOrStdout(), &m)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&m.Count, "workers", 1, "`number` of workers")
	flags.StringVar(&m.Coordinator, "coordinator", "", "`address` of the coordinator (HOST:PORT)")
	addJobFlags(flags, &m.Options)
	return cmd
}

// printManifests checks the options of a render command and prints its manifests.
func printManifests(w io.Writer, o interface {
	Check() error
	YAML() ([]byte, error)
}) error {
	if err := o.Check(); err != nil {
		return exitcode.UsageError(err)
	}
	text, err := o.YAML()
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}
