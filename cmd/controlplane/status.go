package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/shell"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/internal/userfile"
)

func statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the processes and settings of a control plane, and how to connect to it",
		Long: `Show the processes of a control plane, every setting that differs from the upstream
default, and how to connect to it. The exit code is 4 if the control plane is not ready.`,
		Example: `  controlplane status
  controlplane status --dir /tmp/plane --output json`,
		Args: cobra.NoArgs,
	}
	dir, output := dirFlag(cmd), commandline.AddOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		status, err := readStatus(cmd.Context(), *dir)
		if err != nil {
			return err
		}
		w := cmd.OutOrStdout()
		err = output.Write(w, status, func() error {
			var text strings.Builder
			if err := writeStatus(&text, status, time.Now()); err != nil {
				return err
			}
			_, err := io.WriteString(w, terminal.CleanLines(text.String())) // stopped.json may contain any text
			return err
		})
		if err == nil && status.State != control.Ready {
			err = fmt.Errorf("the control plane is %s", status.State)
		}
		return exitcode.EnvironmentError(err)
	}
	return cmd
}

// readStatus gets the status from the supervisor, or reads the status that the supervisor wrote when it stopped.
func readStatus(ctx context.Context, dir string) (control.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, err := dial(dir)
	if err == nil {
		status, err := client.Status(ctx)
		return status, exitcode.EnvironmentError(err)
	}
	var status control.Status
	if !errors.Is(err, control.ErrNotRunning) {
		return status, err
	}
	data, readErr := userfile.Read(filepath.Join(dir, control.StoppedFile), userfile.Text)
	if readErr != nil {
		return status, err
	}
	return status, exitcode.EnvironmentError(json.Unmarshal(data, &status))
}

func writeStatus(w io.Writer, s control.Status, now time.Time) error {
	fmt.Fprintf(w, "%s: %s since %s, supervisor %d\n", s.Dir, s.State, s.Since.Format(time.DateTime), s.SupervisorPID)
	if s.Cause != "" {
		fmt.Fprintf(w, "%s\n", s.Cause)
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tVERSION\tPID\tSTATE\tROLE\tUPTIME\tREADY AFTER\tCPU\tRSS\tPRIVATE\tFILES\tADDRESS")
	for _, c := range s.Components {
		state, uptime := "starting", now.Sub(c.Started).Round(time.Second).String()
		switch {
		case c.Exit != "":
			state, uptime = c.Exit, "-"
		case c.Ready:
			state = "ready"
		}
		switch {
		case c.Restarts == 1:
			state += ", restarted once"
		case c.Restarts > 1:
			state += fmt.Sprintf(", restarted %d times", c.Restarts)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%.1fs\t%.1fs\t%d MB\t%d MB\t%d\t%s\n", c.Name, cmp.Or(c.Version, "-"), c.PID, state, role(c), uptime,
			c.ReadyAfter.Seconds(), c.CPU.Seconds(), c.RSS/1e6, (c.RSS-c.Shared)/1e6, c.OpenFiles, c.Address)
	}
	if len(s.Faults) > 0 {
		fmt.Fprintln(table, "\nFAULT\tKIND\tON\tSTATE")
		for _, f := range s.Faults {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.ID, f.Kind, strings.Join(f.On, ", "), faultState(f, now))
		}
	}
	if s.Cluster == nil {
		return table.Flush()
	}
	fmt.Fprintln(table, "\nDIFFERS FROM UPSTREAM\tSETTING\tVALUE\tDEFAULT\tREASON")
	for _, d := range s.Cluster.Deviations {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", d.Component, d.Setting, short(d.Value), short(d.Default), d.Reason)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if s.State != control.Ready {
		return nil
	}
	fmt.Fprintln(w)
	return writeUsage(w, *s.Cluster, false)
}

func role(c control.ComponentStatus) string {
	text := c.Role
	switch {
	case c.Etcd != nil:
		text += fmt.Sprintf(", term %d, %.1f MB", c.Etcd.Term, float64(c.Etcd.DBSize)/1e6)
		if len(c.Etcd.Alarms) > 0 {
			text += ", " + strings.Join(c.Etcd.Alarms, " ")
		}
		return strings.TrimPrefix(text, ", ")
	case c.Kind == control.KindAPIServer && text != "":
		return fmt.Sprintf("%s, %d connections", text, c.Connections)
	case text == "":
		return "-"
	}
	return text
}

// short truncates a value to keep the table narrow. --output json shows the whole value.
func short(value string) string {
	const width = 48
	if runes := []rune(value); len(runes) > width {
		return string(runes[:width-3]) + "..."
	}
	return value
}

func writeUsage(w io.Writer, c control.Cluster, attended bool) error {
	dir := shell.Quote(c.Dir)
	stop := "  controlplane down --dir " + dir
	if attended {
		stop += "   (or Ctrl-C here)"
	}
	observed := ""
	if c.Observe != "" {
		observed = "  promtool query instant " + c.Observe + " ALERTS   # and a Prometheus data source for Grafana\n"
	}
	_, err := fmt.Fprintf(w, `Kubernetes %s and etcd %s are ready at %s

  export KUBECONFIG=%s
  export ETCDCTL_ENDPOINTS=%s ETCDCTL_CACERT=%s ETCDCTL_CERT=%s ETCDCTL_KEY=%s
  export PATH=%s:$PATH   # kubectl, etcdctl, etcdutl
or
  controlplane kubectl --dir %s get namespaces
  controlplane etcdctl --dir %s endpoint health
  controlplane status --dir %s
%s%s
`, c.KubernetesVersion, c.EtcdVersion, c.Server, shell.Quote(c.Kubeconfigs["admin"]),
		strings.Join(c.Etcd.Endpoints, ","), shell.Quote(c.Etcd.CAFile), shell.Quote(c.Etcd.CertFile), shell.Quote(c.Etcd.KeyFile),
		shell.Quote(filepath.Join(c.Dir, "bin")), dir, dir, dir, observed, stop)
	return err
}
