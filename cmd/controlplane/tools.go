package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/controlplane/control"
)

// tool is one stock command-line tool.
type tool struct {
	name, short, example string
	// environment points the tool at a plane.
	environment func(control.Cluster) []string
}

func tools() []tool {
	return []tool{
		{"kubectl", "Run kubectl against a control plane", `  controlplane kubectl get nodes
  controlplane kubectl --dir /tmp/plane get --raw /metrics`, kubectlEnv},
		{"etcdctl", "Run etcdctl against a control plane", `  controlplane etcdctl endpoint status -w table
  controlplane etcdctl --dir /tmp/plane snapshot save /tmp/etcd.db`, etcdctlEnv},
		{"etcdutl", "Run etcdutl, etcd's tool for its files", `  controlplane etcdutl snapshot status /tmp/etcd.db -w table`, nil},
	}
}

func kubectlEnv(c control.Cluster) []string {
	return []string{"KUBECONFIG=" + c.Kubeconfigs["admin"]}
}

func etcdctlEnv(c control.Cluster) []string {
	return c.Etcd.Environment()
}

func toolCommand(t tool) *cobra.Command {
	return &cobra.Command{
		Use:   t.name + " [--dir DIR] [ARGUMENTS OF " + strings.ToUpper(t.name) + "]",
		Short: t.short,
		Long: t.short + `.

--dir counts as Stormglass's only before the first other word; everything from
there on is the tool's own.`,
		Example:            t.example,
		DisableFlagParsing: true, // the flags are the tool's
		RunE: func(_ *cobra.Command, args []string) error {
			dir, args, err := splitDir(args)
			if err != nil {
				return err
			}
			env := os.Environ()
			if t.environment != nil {
				cluster, err := running(dir)
				if err != nil {
					return environment(err)
				}
				env = append(env, t.environment(cluster)...)
			}
			executable, err := os.Executable()
			if err != nil {
				return environment(err)
			}
			// The process becomes the tool: its signals and its exit code are
			// then the tool's own.
			return environment(syscall.Exec(executable, append([]string{t.name}, args...), env))
		},
	}
}

// running describes the plane that runs in dir.
func running(dir string) (control.Cluster, error) {
	used, err := control.InUse(dir)
	if err != nil {
		return control.Cluster{}, err
	}
	cluster, err := control.Load(dir)
	if !used || errors.Is(err, os.ErrNotExist) {
		return cluster, fmt.Errorf("%s: %w (start one with: controlplane up --detach --dir %s)", dir, control.ErrNotRunning, dir)
	}
	return cluster, err
}

// splitDir takes a leading --dir off a tool's arguments.
func splitDir(args []string) (dir string, rest []string, err error) {
	if len(args) == 0 {
		return defaultDir(), nil, nil
	}
	if dir, ok := strings.CutPrefix(args[0], "--dir="); ok {
		return dir, args[1:], nil
	}
	if args[0] != "--dir" {
		return defaultDir(), args, nil
	}
	if len(args) == 1 {
		return "", nil, errors.New("--dir needs a directory")
	}
	return args[1], args[2:], nil
}
