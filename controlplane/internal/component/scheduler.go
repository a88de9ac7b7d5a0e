package component

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func runScheduler(args []string) int {
	cmd := app.NewSchedulerCommand()
	cmd.SetArgs(args)
	return cli.Run(cmd)
}
