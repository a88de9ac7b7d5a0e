package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/loopback"
	"github.com/stormglass/stormglass/internal/scrapeconfig"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/scrape/promimport"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// maxRetention is the maximum time for which an observer keeps samples. It limits the size of a temporary directory.
const maxRetention = 30 * 24 * time.Hour

const anyPort = "127.0.0.1:0"

func newObserve() *cobra.Command {
	var o run.ObserveOptions
	var output *commandline.Output
	var receiver remoteWriteFlags
	cmd := &cobra.Command{
		Use:   "observe",
		Short: "Serve the metrics and alerts of a local control plane to Grafana",
		Long: `Scrape a control plane that 'controlplane up' started, evaluate the built-in alerts,
and serve the metrics and alerts over the Prometheus query API until Ctrl-C. Use this
server as a Prometheus data source in Grafana, or with promtool. The command also ends
when the control plane stops.

'controlplane up --observe' starts both together. 'loadgen run --observe' serves an
active run.

The server is read-only and has no password. Its address must be a loopback address,
unless you set --observe-public. The samples are deleted when the command ends.

The command writes two files for your own Prometheus into the control plane's
directory:

  prometheus/prometheus.yml   a complete configuration with rules
  prometheus/scrape.yaml      for scrape_config_files of an existing configuration`,
		Example: `  loadgen observe
  loadgen observe --dir /tmp/plane --listen 127.0.0.1:9090
  promtool query instant http://127.0.0.1:9090 'ALERTS'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(checkTimes(o), receiver.check()); err != nil {
				return err
			}
			ctx, release, err := untilParentEnds(cmd.Context())
			if err != nil {
				return err
			}
			defer release()
			o.RemoteWrite = receiver.config
			ui := newTUI(cmd)
			o.Log = func(format string, args ...any) { ui.Step(fmt.Sprintf(format, args...)) }
			o.Ready = func(url, config string) { printObserver(cmd.OutOrStdout(), url, config, output) }
			return run.Observe(ctx, o)
		},
	}
	flags := cmd.Flags()
	addDirFlag(cmd, &o.Dir, "`directory` of the control plane")
	flags.StringVar(&o.Addr, "listen", anyPort, "`address` of the server; port 0 means a free port")
	addPublicFlag(flags, "--listen", &o.Public)
	flags.DurationVar(&o.Interval, "interval", 5*time.Second, "`time` between two scrapes of a component")
	flags.DurationVar(&o.Retention, "retention", 24*time.Hour, "while the command runs, keep samples at least this `time`")
	receiver.add(flags)
	output = commandline.AddOutput(cmd)
	return cmd
}

// addDirFlag adds the flag --dir for the directory of a control plane. The program controlplane has the same flag.
func addDirFlag(cmd *cobra.Command, dir *string, usage string) {
	preset := cmp.Or(os.Getenv(control.DirEnv), filepath.Join("planes", "default"))
	cmd.Flags().StringVar(dir, "dir", preset, usage+"; also $"+control.DirEnv)
	commandline.OldName(cmd, "cluster", "dir")
}

// checkTimes checks --interval and --retention. The scrape interval has the same bounds as in a scenario.
func checkTimes(o run.ObserveOptions) error {
	var errs []error
	if o.Interval < scenario.MinScrape || o.Interval > scenario.MaxScrape {
		errs = append(errs, exitcode.Usagef("--interval %s is out of bounds (from 1s to 5m between two scrapes)", o.Interval))
	}
	if o.Retention < o.Interval || o.Retention > maxRetention {
		errs = append(errs, exitcode.Usagef("--retention %s is out of bounds (from one --interval to 720h)", o.Retention))
	}
	return errors.Join(errs...)
}

// printObserver prints the address of the API to standard output. A parent process may wait for this output.
func printObserver(w io.Writer, url, config string, output *commandline.Output) {
	_ = output.WriteEach(w, map[string]string{"url": url, "prometheusConfig": config}, func() error {
		_, err := fmt.Fprintf(w, "Prometheus' query API is at %s\n\n  Grafana: a data source of type Prometheus with this URL\n  promtool query instant %s up\n  prometheus --config.file=%s   # your own Prometheus\n",
			url, url, filepath.Join(config, scrapeconfig.ServerFile))
		return err
	})
}

// untilParentEnds returns a context that ends when the parent process ends, if the parent process requested this by
// setting the environment variable control.ParentPipeEnv.
func untilParentEnds(ctx context.Context) (context.Context, func(), error) {
	text, asked := os.LookupEnv(control.ParentPipeEnv)
	if !asked {
		return ctx, func() {}, nil
	}
	fd, err := strconv.Atoi(text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s=%q in the environment is not an open file descriptor", control.ParentPipeEnv, text)
	}
	if err := os.Unsetenv(control.ParentPipeEnv); err != nil { // child processes must not use the variable
		return nil, nil, err
	}
	unix.CloseOnExec(fd)
	pipe := os.NewFile(uintptr(fd), "parent pipe")
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = pipe.Read(make([]byte, 1)) // the parent never writes, so Read returns when the parent ends
		cancel()
	}()
	return ctx, cancel, nil
}

func addObserveFlags(flags *pflag.FlagSet, o *run.Options) {
	flags.StringVar(&o.Observe, "observe", "", "serve the metrics over the Prometheus query API during the run, at this `address`: --observe=HOST:PORT, or --observe alone for a free port of 127.0.0.1")
	flags.Lookup("observe").NoOptDefVal = anyPort
	addPublicFlag(flags, "--observe", &o.ObservePublic)
}

// addPublicFlag adds the flag that permits an address other than loopback in the flag `of`.
func addPublicFlag(flags *pflag.FlagSet, of string, public *bool) {
	flags.BoolVar(public, "observe-public", false, "allow an address other than loopback in "+of+"; the server has no password, so anyone who can reach the address can read the metrics")
}

type prometheusFlags struct{ config promimport.Config }

func (p *prometheusFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&p.config.URL, "prometheus", "", "`URL` of a Prometheus that scrapes your cluster; the run uses its samples and does not scrape")
	flags.StringToStringVar(&p.config.Jobs, "prometheus-job", nil, "job label of a component in that Prometheus: `COMPONENT=JOB`, for example kube-apiserver=apiserver (repeatable; default: as in kube-prometheus-stack)")
	flags.Lookup("prometheus-job").DefValue = "" // not "[]"
	flags.StringVar(&p.config.Match, "prometheus-match", "", "label `matchers` that select the series of your cluster in that Prometheus, for example 'cluster=\"prod\"'")
	flags.StringVar(&p.config.HTTPConfig, "prometheus-http-config", "", "`file` with credentials and TLS settings for that Prometheus, in the format of promtool's --http.config.file")
}

// into copies the flags to o. It returns an error if a flag would have no effect.
func (p *prometheusFlags) into(o *run.Options) error {
	if o.ObservePublic && o.Observe == "" {
		return exitcode.Usagef("--observe-public requires --observe (add --observe=ADDR)")
	}
	if o.Observe != "" {
		if err := loopback.Check(o.Observe, o.ObservePublic); err != nil {
			return exitcode.Usagef("--observe: %w", err)
		}
	}
	if p.config.URL == "" {
		return p.alone()
	}
	switch {
	case o.Kubeconfig.Files == "":
		return exitcode.Usagef("--prometheus requires your own cluster, because a run on a bundled control plane scrapes it itself (add --kubeconfig FILE)")
	case o.Targets != "":
		return exitcode.Usagef("--targets and --prometheus cannot be used together: with --prometheus, the run scrapes nothing (leave out one of them)")
	case o.Observe != "":
		return exitcode.Usagef("--observe and --prometheus cannot be used together: your own Prometheus already serves the metrics (leave out one of them)")
	}
	if err := p.alone(); err != nil { // here too, although the run checks it later
		return err
	}
	o.Prometheus = &p.config
	return nil
}

// alone checks these flags without regard to other flags of the command.
func (p *prometheusFlags) alone() error {
	if p.config.URL != "" {
		if _, err := promimport.New(p.config); err != nil {
			return exitcode.Usagef("--prometheus: %w", err)
		}
		return nil
	}
	for flag, set := range map[string]bool{
		"--prometheus-job": len(p.config.Jobs) > 0, "--prometheus-match": p.config.Match != "", "--prometheus-http-config": p.config.HTTPConfig != "",
	} {
		if set {
			return exitcode.Usagef("%s: requires --prometheus URL", flag)
		}
	}
	return nil
}
