package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/controlplane"
	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/terminal"
)

type upOptions struct {
	dir, config        string
	output             *commandline.Output
	detach, background bool
	observer           observerOptions
}

func upCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a control plane and run it until Ctrl-C or 'controlplane down'",
		Long: `Start a control plane. The first start in a directory creates new keys; later starts
use the keys and data in the directory. The control plane is ready when all components
are ready, and the scheduler and controller manager hold their leases.

The config file is YAML, with the same fields as the section controlPlane of a
scenario:

  apiServer:         {flags: {max-requests-inflight: "800"}}
  controllerManager: {qps: 20, burst: 30, flags: {node-monitor-grace-period: 20s}}
  scheduler:         {percentageOfNodesToScore: 10, config: {parallelism: 8}}
  etcd:              {flags: {quota-backend-bytes: "8589934592"}}

For high availability, with a load balancer for the API servers:

  etcd:              {members: 3}
  apiServer:         {replicas: 2}
  controllerManager: {replicas: 2}
  scheduler:         {replicas: 2}

With a simulated cloud and a cloud-controller-manager, or with metrics-server:

  cloudControllerManager: {replicas: 1, cloud: {delay: 50ms}}
  metricsServer:          {replicas: 1}

Without --config, a stopped control plane starts with its last config.

--observe also runs 'loadgen observe'. It scrapes the control plane, evaluates the
built-in alerts, and serves metrics and alerts to Grafana and promtool. For your own
Prometheus, it writes prometheus/prometheus.yml to the control plane's directory.`,
		Example: `  controlplane up
  controlplane up --detach --dir /tmp/plane --config plane.yaml
  controlplane up --detach --output json | jq -r .kubeconfigs.admin
  controlplane up --observe=127.0.0.1:9090`,
		Args: cobra.NoArgs,
	}
	var o upOptions
	dir, output := dirFlag(cmd), commandline.AddOutput(cmd)
	cmd.Flags().StringVar(&o.config, "config", "", "YAML `file` with the settings; - is standard input")
	cmd.Flags().BoolVar(&o.detach, "detach", false, "return when the control plane is ready, and leave it running")
	cmd.Flags().BoolVar(&o.background, "background", false, "run as the supervisor process of up --detach")
	_ = cmd.Flags().MarkHidden("background")
	o.observer.add(cmd.Flags())
	cmd.PreRunE = func(*cobra.Command, []string) error { return o.observer.check() }
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o.dir, o.output = *dir, output
		if o.detach {
			return detach(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}
		return up(cmd.Context(), o, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

func up(ctx context.Context, o upOptions, stdin io.Reader, stdout, stderr io.Writer) error {
	if own := control.Linked(); own != control.Newest() {
		return fmt.Errorf("this program contains only the components of Kubernetes %s, and cannot start a control plane (run controlplane with version: %q in its config file)", own, own.Minor)
	}
	executable, err := os.Executable()
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	if err := errors.Join(o.observer.find(executable), o.observer.free()); err != nil {
		return exitcode.EnvironmentError(err)
	}
	if o.background {
		terminal.SurvivePipes()
	}
	progress := &progressWriter{to: stderr}
	settings, err := readSettings(ctx, o, stdin, progress)
	if err != nil {
		return err
	}
	// An interrupt after this line stops the start and prints a message. An earlier interrupt ends the process, because
	// reading stdin cannot be interrupted.
	ctx, now, release := interrupts(ctx)
	defer release()
	defaults, err := settings.check(ctx, executable, progress)
	if err != nil {
		return err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{
		Dir: o.dir, Config: settings.config, Defaults: defaults, Executable: executable, Progress: progress, Now: now,
	})
	if errors.As(err, new(*controlplane.UnusableError)) {
		return err
	}
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	if o.observer.addr != "" {
		watching, err := o.observer.start(ctx, plane, progress)
		if err != nil { // do not run the plane without its observer
			cause := err
			if ctx.Err() != nil {
				cause = context.Cause(ctx)
			}
			plane.Stop(cause, now)
			return exitcode.EnvironmentError(err)
		}
		defer watching.Stop()
		defer context.AfterFunc(ctx, watching.Terminate)() // end the observer before the components
	}
	cluster := plane.Cluster()
	if o.background {
		// The process that reads this output ends once it has the result. Later messages, including a crash, go to the
		// supervisor's log.
		progress.silence()
		_ = crashTo(controlplane.LogFile(cluster.Dir, controlplane.SupervisorLog)) // after an error, only the stack of a crash is lost
	}
	err = o.output.WriteEach(stdout, cluster, func() error { return writeUsage(stdout, cluster, !o.background) })
	if err != nil {
		fmt.Fprintln(progress, "could not write the result:", err)
	}
	if o.background {
		if err := terminal.Leave(controlplane.LogFile(cluster.Dir, outputLog)); err != nil {
			plane.Stop(err, now)
			return exitcode.EnvironmentError(err)
		}
	}
	if !o.background {
		return exitcode.EnvironmentError(plane.Run(ctx, now))
	}
	if plane.Run(ctx, now) != nil {
		return exitcode.EnvironmentError(errAlreadyTold)
	}
	return nil
}

// outputLog is the name of the log of a detached supervisor's standard output and error.
const outputLog = "supervisor-output"

func crashTo(file string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close() // SetCrashOutput has duplicated the descriptor
	return debug.SetCrashOutput(f, debug.CrashOptions{})
}

type progressWriter struct {
	to    io.Writer
	mu    sync.Mutex
	quiet bool
}

// silence discards all further output. It first waits for a write in progress.
func (w *progressWriter) silence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.quiet = true
}

func (w *progressWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.quiet {
		return len(p), nil
	}
	return w.to.Write(p)
}

// interrupts returns a context that ends on the first signal to stop, and the channel `now`, which is closed on the
// second signal.
func interrupts(parent context.Context) (ctx context.Context, now <-chan struct{}, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores SIGHUP
		signal.Notify(signals, syscall.SIGHUP)
	}
	second := make(chan struct{})
	done := make(chan struct{})
	go func() {
		for n := 1; ; n++ {
			select {
			case s := <-signals:
				if n == 1 {
					cancel(fmt.Errorf("signal %v", s))
				} else if n == 2 {
					close(second)
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, second, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

// detach starts the supervisor in a separate session, shows its progress, and returns when the plane is ready or has
// failed.
func detach(ctx context.Context, o upOptions, stdout, stderr io.Writer) error {
	executable, err := os.Executable()
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	args := []string{"up", "--background", "--dir", dir, "--output", "json"}
	if o.config != "" {
		args = append(args, "--config", o.config)
	}
	args = append(args, o.observer.args()...)
	ctx, now, release := interrupts(ctx)
	defer release()
	cmd := exec.Command(executable, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdin = os.Stdin // for --config -
	said, err := cmd.StdoutPipe()
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	cmd.Stderr = cmd.Stdout // one stream, so that ReadStart reads the messages before the result
	if err := cmd.Start(); err != nil {
		return exitcode.EnvironmentError(err)
	}
	terminate := func() { _ = cmd.Process.Signal(syscall.SIGTERM) } // an error means that the process has already ended
	defer context.AfterFunc(ctx, terminate)()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-now:
			terminate() // a second signal: the supervisor kills the processes that still run
		case <-done:
		}
	}()
	if cluster, ready := control.ReadStart(said, stderr); ready {
		return exitcode.EnvironmentError(o.output.WriteEach(stdout, cluster, func() error { return writeUsage(stdout, cluster, false) }))
	}
	err = cmd.Wait() // the supervisor has already reported what went wrong
	var exit *exec.ExitError
	switch {
	case !errors.As(err, &exit):
	case exit.ExitCode() == exitcode.Usage:
		return errAlreadyTold
	case !exit.Exited(): // killed by a signal, so the supervisor has reported nothing
		return exitcode.EnvironmentError(fmt.Errorf("the control plane did not start: its supervisor was killed by %s", control.SignalOf(exit)))
	}
	return exitcode.EnvironmentError(errAlreadyTold)
}

// errAlreadyTold is the error of a failed start whose reason was already printed. It only determines the exit code.
var errAlreadyTold = errors.New("the control plane did not start")
