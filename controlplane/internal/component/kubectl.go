package component

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // as kubectl's own main does
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// runKubectl is kubectl's own main. The command reads os.Args itself, to find
// plugins.
func runKubectl(args []string) int {
	os.Args = append([]string{"kubectl"}, args...)
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err) // prints in kubectl's manner and exits
	}
	return 0
}
