package component

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdctl/v3/ctlv3"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
)

// runEtcdctl is etcdctl's own main, which reads os.Args and exits by itself on an error.
func runEtcdctl(args []string) int {
	dropShadowed(args)
	os.Args = append([]string{"etcdctl"}, args...)
	ctlv3.MustStart()
	return 0
}

// dropShadowed takes out of the environment what args say by a flag: etcdctl would
// refuse to run, with a stack trace, and the flag is meant.
func dropShadowed(args []string) {
	short := map[string]string{"-w": "--write-out", "-d": "--discovery-srv"}
	for _, arg := range args {
		if arg == "--" {
			return
		}
		name, _, _ := strings.Cut(arg, "=")
		if long, ok := short[arg[:min(2, len(arg))]]; ok { // "-wtable" too
			name = long
		}
		if flag, ok := strings.CutPrefix(name, "--"); ok {
			os.Unsetenv("ETCDCTL_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_")))
		}
	}
}

// runEtcdutl is etcdutl, to which etcd 3.6 moved `snapshot status` and
// `snapshot restore`. Its root command is in a main package, so it is put
// together here.
func runEtcdutl(args []string) int {
	root := &cobra.Command{Use: "etcdutl", Short: "An administrative command line tool for etcd3.", SilenceUsage: true, SilenceErrors: true}
	root.PersistentFlags().DurationVar(&etcdutl.FlockTimeout, "timeout", 10*time.Second, "time to wait to obtain a file lock on db file, 0 to block indefinitely")
	root.PersistentFlags().StringVarP(&etcdutl.OutputFormat, "write-out", "w", "simple", "set the output format (fields, json, protobuf, simple, table)")
	root.AddCommand(
		etcdutl.NewDefragCommand(),
		etcdutl.NewSnapshotCommand(),
		etcdutl.NewHashKVCommand(),
		etcdutl.NewVersionCommand(),
		etcdutl.NewCompletionCommand(),
		etcdutl.NewMigrateCommand(),
	)
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	return 0
}
