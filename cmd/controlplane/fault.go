package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
)

func faultCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fault",
		Short: "Inject faults into a running control plane",
		Long: `Inject a real fault into the components of a running control plane. The command returns
when the fault has begun. The fault ends after --for, with 'controlplane fault clear' or
when the control plane stops. Its changes are then undone.

The faults restart, upgrade, downgrade, key-rotation and etcd-restore have no --for.
They end by themselves, and their changes remain.

Names of components:
  etcd-0                  one component, as in 'controlplane status'
  etcd                    all components of a kind
  kube-scheduler-leader   the leader or lease holder when the fault begins
  etcd-follower           the first running component that is not the leader

Faults of different components can be active at the same time. The command refuses a
fault that would interfere with an active fault, and names the active fault.

Exit codes:
  0  done
  2  bad usage, or a fault that this control plane does not support
  4  the control plane is not running, another fault interferes, or the fault cannot begin
     or be undone`,
		Example: `  controlplane fault slow-fsync --member etcd-0 --delay 25ms --for 1m
  controlplane fault kill --component kube-scheduler-leader --for 30s
  controlplane fault list
  controlplane fault clear 1
  controlplane fault events --follow`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddGroup(&cobra.Group{ID: "begin", Title: "Faults:"}, &cobra.Group{ID: "tend", Title: "Manage faults:"})
	add := func(group string, sub *cobra.Command) {
		sub.GroupID = group
		cmd.AddCommand(sub)
	}
	for _, kind := range control.FaultTable() {
		if !kind.OfNodes {
			add("begin", faultVerb{kind}.command())
		}
	}
	add("tend", faultListCommand())
	add("tend", faultClearCommand())
	add("tend", faultEventsCommand())
	return cmd
}

type faultVerb struct{ control.FaultKind }

func (v faultVerb) command() *cobra.Command {
	cmd := &cobra.Command{Use: v.Command(), Short: v.Short, Long: v.Long, Example: v.Example, Args: v.noArguments}
	f := control.Fault{Kind: v.Name}
	var dryRun bool
	v.flags(cmd, &f)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "check whether the fault could begin now, without starting it")
	dir, output := dirFlag(cmd), commandline.AddOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("for") && f.For == 0 {
			return errors.New("--for must be greater than 0s (leave it out to keep the fault until it is cleared)")
		}
		if problems := f.Problems(); len(problems) > 0 {
			return v.refusal(&control.InvalidFault{Problems: problems})
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		client, err := dial(*dir)
		if err != nil {
			return err
		}
		if dryRun {
			if err := errors.Join(client.Check(ctx, f), movable(ctx, client, f)); err != nil {
				return v.refusal(err)
			}
			_, err := fmt.Fprintln(cmd.ErrOrStderr(), "the fault could begin now; --dry-run does not start it")
			return err
		}
		status, err := client.Begin(ctx, f)
		if err != nil {
			return v.refusal(err)
		}
		w := cmd.OutOrStdout()
		return output.Write(w, status, func() error { return writeBegun(w, status, *dir) })
	}
	return cmd
}

// movable checks whether an upgrade or downgrade fits the plane's current state. Client.Check does not check this,
// because an earlier fault may change the versions before this fault begins.
func movable(ctx context.Context, client *control.Client, f control.Fault) error {
	if !f.Moves() {
		return nil
	}
	status, err := client.Status(ctx)
	if err != nil || status.Cluster == nil {
		return err
	}
	if _, problem := f.After(status.Cluster.Config); problem != nil {
		return &control.InvalidFault{Problems: []control.Problem{*problem}}
	}
	return nil
}

// noArguments returns an error if args is not empty. The error says how to name a component.
func (v faultVerb) noArguments(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case v.Has("components"):
		return fmt.Errorf("fault %s does not take the argument %q (name components with --%s)", v.Command(), args[0], v.componentsFlag())
	}
	return fmt.Errorf("fault %s does not take the argument %q", v.Command(), args[0])
}

// refusal rewords an error with which the supervisor refuses a fault, so that it names the command's flags instead of
// fields.
func (v faultVerb) refusal(err error) error {
	var invalid *control.InvalidFault
	if !errors.As(err, &invalid) {
		return exitcode.EnvironmentError(err)
	}
	var lines []string
	for _, p := range invalid.Problems {
		line := fmt.Sprintf("%s (%s)", p.Msg, p.Hint)
		switch p.Path {
		case "kind", "fault": // not a flag
		case "components":
			line = "--" + v.componentsFlag() + ": " + line
		case "peers":
			line = "--peer: " + line
		default:
			line = "--" + p.Path + ": " + line
		}
		lines = append(lines, line)
	}
	return errors.New(strings.Join(lines, "\n"))
}

// dial returns a client of the plane in dir. If no plane runs, the error says how to start one.
func dial(dir string) (*control.Client, error) {
	client, err := control.Dial(dir)
	switch {
	case errors.Is(err, control.ErrNotRunning), errors.Is(err, syscall.ENOTDIR):
		err = notRunning(dir)
	case errors.Is(err, control.ErrStarting):
		err = fmt.Errorf("%s: %w (try again in a moment)", dir, err)
	}
	return client, exitcode.EnvironmentError(err)
}

func notRunning(dir string) error {
	entries, err := os.ReadDir(dir)
	if len(entries) > 0 && !control.IsPlaneDir(dir) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w (this directory does not belong to a control plane; choose another --dir)", dir, control.ErrNotRunning)
	}
	return fmt.Errorf("%s: %w (start one with: controlplane up --detach%s)", dir, control.ErrNotRunning, dirArgument(dir))
}

func writeBegun(w io.Writer, s control.FaultStatus, dir string) error {
	end := "until it is cleared"
	switch {
	case s.Momentary():
		end = s.CourseEnds()
	case !s.Ends.IsZero():
		end = fmt.Sprintf("until %s, %s from now", s.Ends.Local().Format(time.TimeOnly), s.For)
	}
	_, err := fmt.Fprintf(w, "fault %s: %s, active %s after the request, %s\n", s.ID, faultName(s), milliseconds(s.Active.Sub(s.Asked)), end)
	if err == nil && !s.Momentary() {
		_, err = fmt.Fprintf(w, "to end it early: controlplane fault clear%s %s\n", dirArgument(dir), s.ID)
	}
	return err
}

func faultName(s control.FaultStatus) string {
	if len(s.On) == 0 {
		return s.Kind
	}
	return s.Kind + " of " + strings.Join(s.On, ", ")
}

func milliseconds(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	if d < 10*time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

type question struct {
	client *control.Client
	args   []string
	output *commandline.Output
	stdout io.Writer
}

// asking makes cmd call `ask` with a client of the plane in --dir. The context of the call ends on a signal or after
// the time limit.
func asking(cmd *cobra.Command, within time.Duration, ask func(context.Context, question) error) *cobra.Command {
	dir, output := dirFlag(cmd), commandline.AddOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := dial(*dir)
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		return ask(ctx, question{client, args, output, cmd.OutOrStdout()})
	}
	return cmd
}
