// Controlplane runs a real Kubernetes control plane on this machine: etcd,
// kube-apiserver, kube-scheduler and kube-controller-manager, each a separate
// process, with no download and no container engine.
//
//	controlplane up [--dir DIR] [--config FILE] [--detach]
//	controlplane status, down
//	controlplane fault KIND ..., fault list, fault clear, fault events
//	controlplane etcd snapshot, etcd restore
//	controlplane kubectl ..., etcdctl ..., etcdutl ...
//
// It is a multi-call binary: if it is started under the name of a component or a tool, it runs that program. Results go
// to stdout, progress and errors to stderr. Exit codes: 0 done, 2 bad usage, a bad config file or a bad path, 4 the
// environment failed (for example: the directory is in use, a component died).
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/programs"
	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/shell"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/internal/version"
)

func main() {
	os.Exit(run(context.Background(), os.Args, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if err := programs.Prepare(); err != nil {
		fmt.Fprintln(stderr, "controlplane:", err)
		return exitcode.Environment
	}
	if code, ok := programs.Main(filepath.Base(args[0]), args[1:], stdout, stderr); ok {
		return code
	}
	return command(ctx, args[1:], stdout, stderr)
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	commandline.AbortOnCrash()
	defer commandline.OnCrash("controlplane", stderr, &code)
	// Linked Kubernetes packages add flags to pflag.CommandLine. cobra would show these as flags of controlplane, but
	// only the constructors of components need them.
	linked := pflag.CommandLine
	pflag.CommandLine = pflag.NewFlagSet("controlplane", pflag.ContinueOnError)
	root := &cobra.Command{
		Use:   "controlplane",
		Short: "A real Kubernetes control plane on this machine",
		Long: `Run a real Kubernetes control plane on this machine: etcd, kube-apiserver,
kube-scheduler and kube-controller-manager, each as a separate process with its own
keys, on free loopback ports.

Exit codes:
  0  done
  2  bad usage, a bad config file or an unusable path
  4  the environment failed`,
		Example: `  controlplane up --detach        # in ./planes/default
  controlplane kubectl get nodes
  controlplane status
  controlplane down`,
		Version:       version.Program() + " " + control.Describe(control.Linked(), version.Revision()),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(upCommand(), downCommand(), statusCommand(), faultCommand(), etcdCommand(), schemaCommand(), versionCommand(), checkCommand(linked), commandline.ManCommand())
	for _, tool := range tools() {
		root.AddCommand(toolCommand(tool))
	}
	commandline.Strict(root, func(err error) error { return err })
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := commandline.Execute(ctx, root)
	if err == nil {
		return exitcode.Pass
	}
	if !errors.Is(err, errAlreadyTold) {
		fmt.Fprintln(stderr, "controlplane: "+strings.Join(terminal.Problems(err), "\n"))
	}
	if written, ok := errors.AsType[*os.PathError](err); exitcode.IsEnvironment(err) || ok && written.Op == "write" {
		return exitcode.Environment
	}
	return exitcode.Usage
}

// defaultDir returns the plane's directory if --dir is not set: STORMGLASS_DIR, or planes/default.
func defaultDir() string {
	return cmp.Or(os.Getenv(control.DirEnv), filepath.Join("planes", "default"))
}

func dirFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("dir", defaultDir(), "`directory` of the control plane; also $"+control.DirEnv)
}

// dirArgument returns " --dir DIR" for a command that a message suggests, or "" if dir is the default.
func dirArgument(dir string) string {
	if dir == defaultDir() {
		return ""
	}
	return " --dir " + shell.Quote(dir)
}
