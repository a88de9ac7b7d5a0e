package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
)

type tool struct {
	name, flags, short, long, example string
	local                             []string // subcommands that do not call a server
	// environment returns the environment variables with which the tool reaches a plane, for the given arguments. The
	// field is nil if the tool needs no plane.
	environment func(ctx context.Context, dir string, w words, stderr io.Writer) ([]string, error)
}

func tools() []tool {
	return []tool{
		{
			name: "kubectl", flags: "[--dir DIR]", short: "Run kubectl against a control plane",
			example: `  controlplane kubectl get nodes
  controlplane kubectl --dir /tmp/plane get --raw /metrics`, environment: kubectlEnv, local: []string{"completion", "kustomize", "options", "plugin"},
		},
		{
			name: "etcdctl", flags: "[--dir DIR] [--member NAME]", short: "Run etcdctl against a control plane",
			long: `

etcdctl connects to all members, or to the member of --member. The command snapshot save
uses one ready member. etcdctl's own flags, such as --endpoints, take precedence.`,
			example: `  controlplane etcdctl endpoint status -w table
  controlplane etcdctl snapshot save /tmp/etcd.db
  controlplane etcdctl --member etcd-1 endpoint health`, environment: etcdctlEnv, local: []string{"completion", "version"},
		},
		{
			name: "etcdutl", flags: "[--dir DIR]", short: "Run etcdutl, the tool for etcd's files",
			example: `  controlplane etcdutl snapshot status /tmp/etcd.db -w table`,
		},
	}
}

func kubectlEnv(_ context.Context, dir string, _ words, _ io.Writer) ([]string, error) {
	c, err := running(dir)
	return []string{"KUBECONFIG=" + c.Kubeconfigs["admin"]}, err
}

// asksNoServer reports whether the tool needs no plane for these arguments: they request help or the version, or name a
// subcommand that calls no server.
func (t tool) asksNoServer(args []string) bool {
	if len(args) == 0 || args[0] == "help" || slices.Contains(t.local, args[0]) {
		return true
	}
	return slices.ContainsFunc(args, func(arg string) bool {
		return arg == "--help" || arg == "-h" || args[0] == "version" && (arg == "--client" || arg == "--client=true")
	})
}

func toolCommand(t tool) *cobra.Command {
	return &cobra.Command{
		Use:   t.name + " " + t.flags + " [ARGUMENTS OF " + strings.ToUpper(t.name) + "]",
		Short: t.short,
		Long: t.short + `.

Put --dir first. All other arguments are passed to the tool, including a later --dir.` + t.long,
		Example:            t.example,
		DisableFlagParsing: true, // the flags belong to the tool
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := readWords(args, strings.Contains(t.flags, "--member"))
			if err != nil {
				return err
			}
			env := os.Environ()
			if t.environment != nil {
				own, err := t.environment(cmd.Context(), w.dir, w, cmd.ErrOrStderr())
				switch {
				case err == nil:
					env = override(env, own)
				case !exitcode.IsEnvironment(err) || !t.asksNoServer(w.rest):
					return err
				}
			}
			executable, err := os.Executable()
			if err != nil {
				return exitcode.EnvironmentError(err)
			}
			// Exec replaces this process with the tool, so that the tool gets the signals and determines the exit code.
			return exitcode.EnvironmentError(syscall.Exec(executable, append([]string{t.name}, w.rest...), env))
		},
	}
}

// override returns the environment env plus the variables in `own`. It removes these variables' old values, because a
// Go program uses the first value in its environment.
func override(env, own []string) []string {
	name := func(kv string) string { name, _, _ := strings.Cut(kv, "="); return name }
	kept := slices.DeleteFunc(env, func(kv string) bool {
		return slices.ContainsFunc(own, func(o string) bool { return name(o) == name(kv) })
	})
	return append(kept, own...)
}

func running(dir string) (control.Cluster, error) {
	used, err := control.InUse(dir)
	if err != nil && !errors.Is(err, syscall.ENOTDIR) {
		return control.Cluster{}, exitcode.EnvironmentError(err)
	}
	cluster, err := control.Load(dir)
	if !used || errors.Is(err, os.ErrNotExist) {
		err = notRunning(dir)
	}
	return cluster, exitcode.EnvironmentError(err)
}

type words struct {
	dir, member string
	rest        []string // arguments for the tool, without Stormglass's own flags
}

// readWords separates Stormglass's own flags from a tool's arguments. --dir must come first. If `members` is true,
// --member may be anywhere before "--", because no tool has a flag of that name.
func readWords(args []string, members bool) (words, error) {
	w := words{dir: defaultDir()}
	front := true
	for len(args) > 0 {
		name, value, joined := strings.Cut(args[0], "=")
		var to *string
		switch {
		case name == "--dir" && front:
			to = &w.dir
		case name == "--member" && members:
			to = &w.member
		case name == "--":
			w.rest = append(w.rest, args...)
			return w, nil
		default:
			front = false
			w.rest, args = append(w.rest, args[0]), args[1:]
			continue
		}
		args = args[1:]
		if !joined {
			if len(args) == 0 {
				return w, fmt.Errorf("%s needs a value (write %s %s)", name, name, strings.ToUpper(name[2:]))
			}
			value, args = args[0], args[1:]
		}
		if value == "" {
			return w, fmt.Errorf("%s is empty (give it a value, or leave it out)", name)
		}
		*to = value
	}
	return w, nil
}

const statusWithin = 10 * time.Second

// etcdctlEnv returns the environment variables that make etcdctl connect to all members. If --member is set, or the
// subcommand accepts only one endpoint, etcdctl connects to one member.
func etcdctlEnv(ctx context.Context, dir string, w words, stderr io.Writer) ([]string, error) {
	c, err := running(dir)
	if err != nil {
		return nil, err
	}
	client := c.Etcd
	if w.member == "" && (len(client.Endpoints) == 1 || !takesOneMember(w.rest)) {
		return client.Environment(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, statusWithin)
	defer cancel()
	status, err := readStatus(ctx, dir)
	if err != nil {
		return nil, err
	}
	member, err := chooseMember(status.Components, w.member)
	if err != nil {
		return nil, err
	}
	if w.member == "" {
		fmt.Fprintf(stderr, "controlplane: using %s (choose another with --member)\n", member.Name)
	}
	client.Endpoints = []string{member.Address}
	return client.Environment(), nil
}

// chooseMember returns the etcd member with the given name. If name is "", it chooses a ready member, preferably one
// that reports its role, because a hanging member does not report a role.
func chooseMember(components []control.ComponentStatus, name string) (chosen control.ComponentStatus, err error) {
	var names []string
	for _, c := range components {
		if c.Kind != control.KindEtcd {
			continue
		}
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
		if c.Ready && (chosen.Name == "" || chosen.Role == "" && c.Role != "") {
			chosen = c
		}
	}
	switch {
	case name != "":
		err = fmt.Errorf("--member %s: unknown member (known: %s)", name, strings.Join(names, ", "))
	case chosen.Name == "":
		err = exitcode.EnvironmentError(fmt.Errorf("no etcd member is ready (members: %s)", strings.Join(names, ", ")))
	}
	return chosen, err
}

// takesOneMember reports whether the etcdctl command in words accepts only one endpoint.
func takesOneMember(words []string) bool {
	verb := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return strings.HasPrefix(word, "-") })
	at := slices.Index(verb, "snapshot")
	return at >= 0 && at+1 < len(verb) && strings.HasPrefix("save", verb[at+1]) && !slices.ContainsFunc(words, func(word string) bool {
		return word == "--endpoints" || strings.HasPrefix(word, "--endpoints=")
	})
}
