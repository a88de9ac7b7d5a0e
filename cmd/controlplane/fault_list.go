package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/terminal"
)

// listWithin and clearWithin are the time limits of requests to the supervisor. Listing faults is immediate. Undoing an
// etcdQuota fault takes longer, because the supervisor restarts all members, one after another.
const (
	listWithin  = 10 * time.Second
	clearWithin = 5 * time.Minute
)

func faultListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the active faults and those that have ended",
		Long: `List the faults of a control plane, the oldest first: the active faults, and up to a
thousand that have ended.`,
		Example: `  controlplane fault list
  controlplane fault list --output json`,
		Args: cobra.NoArgs,
	}
	return asking(cmd, listWithin, func(ctx context.Context, q question) error {
		list, err := q.client.Faults(ctx)
		if err != nil {
			return exitcode.EnvironmentError(err)
		}
		return q.output.Write(q.stdout, list, func() error { return writeFaults(q.stdout, list, time.Now()) })
	})
}

func writeFaults(w io.Writer, list []control.FaultStatus, now time.Time) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no faults since the control plane was started")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tFAULT\tBEGAN\tSTATE")
	for _, s := range list {
		began := s.Active
		if began.IsZero() {
			began = s.Asked
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.ID, faultName(s)+faultDetail(s.Fault), began.Local().Format(time.TimeOnly), faultState(s, now))
	}
	return table.Flush()
}

func faultDetail(f control.Fault) string {
	var detail string
	add := func(set bool, format string, args ...any) {
		if set {
			detail += ", " + fmt.Sprintf(format, args...)
		}
	}
	add(f.Resource != "", "on creation of %s", f.Resource)
	add(f.Delay > 0 && f.Jitter == 0, "delay %s", f.Delay)
	add(f.Jitter > 0, "delay %s ± %s", f.Delay, f.Jitter)
	add(f.Fails, "fails")
	add(f.Throttle > 0, "%v requests/s", f.Throttle)
	add(f.Ignore, "failurePolicy Ignore")
	add(f.Webhooks > 1, "%d webhooks", f.Webhooks)
	add(f.Mutates, "mutating")
	add(f.Reinvoke, "reinvocationPolicy IfNeeded")
	add(f.Limit > 0, "%d descriptors", f.Limit)
	add(f.Quota > 0, "%s", formatBytes(f.Quota))
	return detail
}

func faultState(s control.FaultStatus, now time.Time) string {
	state := faultStage(s, now)
	if s.Lost != "" {
		state += "; lost: " + terminal.Clean(s.Lost)
	}
	return state
}

func faultStage(s control.FaultStatus, now time.Time) string {
	switch {
	case s.Error != "" && s.Ended.IsZero():
		return "could not be undone: " + terminal.Clean(s.Error)
	case !s.Ended.IsZero() && s.Active.IsZero():
		return "canceled before it began"
	case !s.Ended.IsZero():
		return fmt.Sprintf("ended %s after %s", s.Ended.Local().Format(time.TimeOnly), s.Ended.Sub(s.Active).Round(time.Millisecond))
	case s.Active.IsZero():
		return "beginning"
	case s.Momentary():
		return "active " + s.CourseEnds()
	case s.Ends.IsZero():
		return "active until it is cleared"
	case s.Ends.Before(now):
		return "being undone"
	}
	return fmt.Sprintf("active for another %s", s.Ends.Sub(now).Round(time.Second/10))
}

func faultClearCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "clear [ID]",
		Short: "End one fault or all faults early",
		Long: `End the fault with this ID, or without ID all faults, and return when they are undone.
If an earlier attempt to undo a fault failed, the command tries again.`,
		Example: `  controlplane fault clear 3
  controlplane fault clear --output json`,
		Args: cobra.MaximumNArgs(1),
	}
	return asking(cmd, clearWithin, func(ctx context.Context, q question) (err error) {
		ended := make([]control.FaultStatus, 1)
		if len(q.args) == 0 {
			ended, err = q.client.ClearAll(ctx)
		} else {
			ended[0], err = q.client.Clear(ctx, q.args[0])
		}
		if err != nil {
			return exitcode.EnvironmentError(err)
		}
		return q.output.Write(q.stdout, ended, func() error {
			for _, s := range ended {
				fmt.Fprintf(q.stdout, "fault %s: %s, %s\n", s.ID, faultName(s), faultState(s, time.Now()))
			}
			if len(ended) == 0 {
				fmt.Fprintln(q.stdout, "no faults were active")
			}
			return nil
		})
	})
}

func faultEventsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show events of the control plane: faults, starts and exits of components, new leaders",
		Long: `Show the events since the start of the control plane: faults that begin or end,
components that exit, start or become ready, and new etcd leaders and lease holders.
Only the last 4,096 events are kept.`,
		Example: `  controlplane fault events
  controlplane fault events --follow --output json`,
		Args: cobra.NoArgs,
	}
	var follow bool
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep showing new events until Ctrl-C or until the plane stops")
	asking(cmd, 365*24*time.Hour, func(ctx context.Context, q question) error {
		return exitcode.EnvironmentError(showEvents(ctx, q.client, q.stdout, q.output, follow))
	})
	cmd.Flags().Lookup("output").Usage = "output `format` of the result: text, json (one event per line) or yaml (one document per event)"
	return cmd
}

func showEvents(ctx context.Context, client *control.Client, w io.Writer, output *commandline.Output, follow bool) error {
	// A request for events waits for the next event, so without --follow the timeout is short. A running plane has at
	// least the event of its start.
	if !follow {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, listWithin)
		defer cancel()
	}
	for last := int64(0); ; {
		events, err := client.Events(ctx, last)
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil // Ctrl-C
		}
		if follow && errors.Is(err, control.ErrEnded) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range events {
			forgotten := e.Seq - last - 1
			last = e.Seq
			err := output.WriteEach(w, e, func() error {
				if forgotten > 0 { // only in text output: other formats contain the sequence numbers
					fmt.Fprintf(w, "(%d earlier events were dropped)\n", forgotten)
				}
				_, err := fmt.Fprintf(w, "%s  %-11s  %-26s  %s\n", e.Time.Local().Format("15:04:05.000"), e.Kind, e.Component, terminal.CleanLines(e.Detail))
				return err
			})
			if err != nil {
				return err
			}
		}
		if !follow {
			return nil
		}
	}
}
