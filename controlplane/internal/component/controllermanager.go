package component

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func runControllerManager(args []string) int {
	cmd := app.NewControllerManagerCommand()
	cmd.SetArgs(args)
	return cli.Run(cmd)
}
