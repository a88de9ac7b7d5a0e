// Package component holds the programs of the multi-call binary: the real control plane components and their
// command-line tools, each linked from its own module. No other package imports k8s.io/kubernetes or the etcd server.
//
// One process runs one program. It constructs only the chosen program, because the components call os.Exit, share a
// global metrics registry and install signal handlers once per process (installing the API server's handlers twice
// panics).
//
// Linking the components together still affects /metrics: a package that registers its metric families in init() does
// so in every Kubernetes component. Compared with the programs built alone, the scheduler and the controller manager
// also export authentication_*, authorization_* and authenticated_user_requests, and the scheduler also exports
// apiserver_cel_* and apiserver_kube_aggregator_*. The scheduler and the API server also export node_collector_*. Query
// each of these families only from the component that it belongs to. etcd exports no families of Kubernetes, and
// Kubernetes exports no families of etcd.
package component

import (
	"fmt"
	"os"
	"strings"
	_ "time/tzdata" // time zones for CronJobs, in case the host has none

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdctl/v3/ctlv3"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
	"go.etcd.io/etcd/server/v3/etcdmain"
	genericapiserver "k8s.io/apiserver/pkg/server"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl's own main function imports it too
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // rest_client_* metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	metricsserver "sigs.k8s.io/metrics-server/cmd/metrics-server/app"

	"github.com/stormglass/stormglass/controlplane/control"
	_ "github.com/stormglass/stormglass/controlplane/internal/component/kubeversion" // sets the version without linker flags
)

// Program is one program of the binary. It takes the arguments after the program's name and returns the exit code; some
// programs exit instead of returning.
type Program func(args []string) int

// Lookup returns the program with the given name. ok is false if the name is unknown.
func Lookup(name string) (program Program, ok bool) {
	// The linked etcd tools turn on prefix matching for the whole binary. With it, "kubectl d" would run some command
	// whose name begins with d.
	cobra.EnablePrefixMatching = name == "etcdctl" || name == "etcdutl"
	program, ok = map[string]Program{
		control.KindEtcd:                   runEtcd,
		control.KindAPIServer:              runCommand(apiserver.NewAPIServerCommand),
		control.KindScheduler:              runCommand(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		control.KindControllerManager:      runCommand(controllers.NewControllerManagerCommand),
		control.KindMetricsServer:          runCommand(newMetricsServerCommand),
		control.KindCloudControllerManager: runCommand(newCloudControllerManager),
		"kubectl":                          runKubectl,
		"etcdctl":                          runEtcdctl,
		"etcdutl":                          runEtcdutl,
	}[name]
	return program, ok
}

func runEtcd(args []string) int {
	etcdmain.Main(append([]string{control.KindEtcd}, args...))
	return 0
}

func runCommand(construct func() *cobra.Command) Program {
	return func(args []string) int {
		cmd := construct()
		cmd.SetArgs(args)
		return cli.Run(cmd)
	}
}

// newMetricsServerCommand constructs metrics-server as its main function does, so that a signal shuts it down
// gracefully.
func newMetricsServerCommand() *cobra.Command {
	return metricsserver.NewMetricsServerCommand(genericapiserver.SetupSignalHandler())
}

// runKubectl does what the main function of kubectl does. It sets os.Args, where the command looks for the names of
// plugins.
func runKubectl(args []string) int {
	os.Args = append([]string{"kubectl"}, args...)
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err) // prints the error as kubectl does and exits
	}
	return 0
}

// runEtcdctl runs the main function of etcdctl, which reads os.Args and exits on an error.
func runEtcdctl(args []string) int {
	dropShadowed(args)
	os.Args = append([]string{"etcdctl"}, args...)
	ctlv3.MustStart()
	return 0
}

// dropShadowed unsets the environment variables of etcdctl whose flags are in args, because etcdctl fails with a stack
// trace if both are set. The flag takes precedence.
func dropShadowed(args []string) {
	short := map[string]string{"-w": "--write-out", "-d": "--discovery-srv"}
	for _, arg := range args {
		if arg == "--" {
			return
		}
		name, _, _ := strings.Cut(arg, "=")
		if long, ok := short[arg[:min(2, len(arg))]]; ok { // also for "-wtable"
			name = long
		}
		if flag, ok := strings.CutPrefix(name, "--"); ok {
			_ = os.Unsetenv("ETCDCTL_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_")))
		}
	}
}

// runEtcdutl runs etcdutl, which since etcd 3.6 has `snapshot status` and `snapshot restore`. It builds the root
// command itself, because etcdutl defines its root command in a main package.
func runEtcdutl(args []string) int {
	root := &cobra.Command{Use: "etcdutl", Short: "An administrative command line tool for etcd3.", SilenceUsage: true, SilenceErrors: true}
	etcdutlFlags(root.PersistentFlags())
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
