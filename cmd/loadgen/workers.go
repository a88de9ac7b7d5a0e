package main

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stormglass/stormglass/loadgen"
)

// workerFlags are those of a run with several generators.
type workerFlags struct {
	count     int
	local     bool
	listen    string
	advertise string
	within    time.Duration
}

func (f *workerFlags) add(flags *pflag.FlagSet) {
	flags.IntVar(&f.count, "workers", 0, "divide the loads among this `number` of generators")
	flags.BoolVar(&f.local, "workers-local", false, "start the workers on this machine, as processes")
	flags.StringVar(&f.listen, "workers-listen", "", "wait at this `address`, HOST:PORT, for workers that you start ('loadgen worker')")
	flags.StringVar(&f.advertise, "workers-advertise", "", "the `address`, HOST:PORT, at which workers reach this machine (default: that of --workers-listen)")
	flags.DurationVar(&f.within, "workers-within", 5*time.Minute, "the `time` in which all workers must have joined")
}

// options are the workers of the run. start starts them where the flags name no other way; nil: there is none.
func (f workerFlags) options(flags *pflag.FlagSet, start loadgen.WorkerStarter) (o loadgen.Workers, err error) {
	if !flags.Changed("workers") {
		for _, name := range []string{"workers-local", "workers-listen", "workers-advertise", "workers-within"} {
			if flags.Changed(name) {
				return o, loadgen.Usage(fmt.Errorf("--%s needs --workers N", name))
			}
		}
		return o, nil
	}
	o = loadgen.Workers{Count: f.count, Listen: f.listen, Advertise: f.advertise, Starter: start, Within: f.within}
	switch {
	case f.count < 1:
		return o, loadgen.Usage(fmt.Errorf("--workers %d: at least 1", f.count))
	case f.within <= 0:
		return o, loadgen.Usage(fmt.Errorf("--workers-within %s: over 0", f.within))
	case f.local:
		o.Starter = loadgen.LocalWorkers{}
	case f.listen != "":
		o.Starter = nil
	case start == nil:
		return o, loadgen.Usage(fmt.Errorf("--workers %d: who starts them? (add --workers-local for processes of this machine, or --workers-listen HOST:PORT for workers that you start)", f.count))
	}
	return o, nil
}

// Environment variables in place of the flags of worker, as an Indexed Job sets them.
const (
	coordinatorEnv = "STORMGLASS_COORDINATOR"
	caEnv          = "STORMGLASS_CA"
	tokenEnv       = "STORMGLASS_TOKEN_FILE"
	indexEnv       = "JOB_COMPLETION_INDEX"
)

func newWorker() *cobra.Command {
	var w loadgen.Worker
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Do one worker's share of a run",
		Long: `Do one worker's share of the loads of a run that 'loadgen run --workers N' coordinates.
The coordinator prints the command when it waits for workers (--workers-listen).

Each flag can be given by an environment variable: STORMGLASS_COORDINATOR,
STORMGLASS_CA, STORMGLASS_TOKEN_FILE and, as an Indexed Job sets it,
JOB_COMPLETION_INDEX.

A worker ends with 0 when the run has ended, with 2 when the coordinator refuses it
(another build, another run's token, an index that has joined already), with 4 when
the coordinator is not reached or goes away. A worker must not be started again: it
would repeat what was sent, and is refused.`,
		Example: `  loadgen worker --coordinator 10.0.0.5:7443 --ca ca.pem --token token --index 0`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, release, err := untilParentEnds(cmd.Context())
			if err != nil {
				return err
			}
			defer release()
			if err := workerEnvironment(cmd.Flags(), &w, os.Getenv); err != nil {
				return loadgen.Usage(err)
			}
			w.Step = func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
			return loadgen.Work(ctx, w)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&w.Coordinator, "coordinator", "", "the coordinator's `address`, HOST:PORT")
	flags.StringVar(&w.CAFile, "ca", "", "the `file` with the authority of the coordinator's certificate")
	flags.StringVar(&w.TokenFile, "token", "", "the `file` with the token of the run")
	flags.IntVar(&w.Index, "index", 0, "the worker's `number`, from 0")
	flags.DurationVar(&w.Within, "within", 5*time.Minute, "the `time` in which the coordinator must be reached")
	return cmd
}

// workerEnvironment takes what no flag gives from the environment.
func workerEnvironment(flags *pflag.FlagSet, w *loadgen.Worker, getenv func(string) string) error {
	for _, v := range []struct {
		to        *string
		flag, env string
	}{{&w.Coordinator, "coordinator", coordinatorEnv}, {&w.CAFile, "ca", caEnv}, {&w.TokenFile, "token", tokenEnv}} {
		if *v.to = cmp.Or(*v.to, getenv(v.env)); *v.to == "" {
			return fmt.Errorf("--%s is needed (or %s in the environment)", v.flag, v.env)
		}
	}
	if flags.Changed("index") {
		return nil
	}
	text := getenv(indexEnv)
	if text == "" {
		return fmt.Errorf("--index is needed (or %s in the environment)", indexEnv)
	}
	index, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("%s=%q in the environment is not a number", indexEnv, text)
	}
	w.Index = index
	return nil
}
