// Controlplane runs a real Kubernetes control plane on this machine: etcd,
// kube-apiserver, kube-scheduler and kube-controller-manager, each a process
// of its own, with no download and no container engine.
//
//	controlplane up [--dir DIR] [--config FILE] [--detach]
//	controlplane status, down
//	controlplane fault KIND ..., fault list, fault clear, fault events
//	controlplane etcd snapshot, etcd restore
//	controlplane kubectl ..., etcdctl ..., etcdutl ...
//
// It is a multi-call binary: executed under the name of a component or a tool
// it is that program. Results go to stdout, progress and errors to stderr.
// Exit codes: 0 done, 2 bad usage, a bad config file or a path that cannot be
// used as it was named, 4 the environment failed (among that: the directory is in
// use, a component died).
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/stormglass/stormglass/controlplane/programs"
	"github.com/stormglass/stormglass/internal/exitcode"
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
