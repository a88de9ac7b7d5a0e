package cli

import (
	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
)

func newCleanupRender() *cobra.Command {
	var o cluster.CleanupOptions
	var once bool
	cmd := &cobra.Command{
		Use:   "render",
		Short: "Print manifests that remove expired runs from inside the cluster",
		Long: `Print manifests for kubectl apply: a CronJob that cleans up after runs whose deadline
has passed, with its namespace, ServiceAccount and RBAC rules. The namespace enforces
the profile "restricted" of Pod Security, and the pod conforms to it.`,
		Example: `  loadgen cleanup render --image registry.example.com/loadgen:v1 | kubectl apply -f -
  loadgen cleanup render --image registry.example.com/loadgen:v1 --once`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if once && cmd.Flags().Changed("schedule") {
				return exitcode.Usagef("--once and --schedule exclude each other (leave out one of them)")
			}
			if once {
				o.Schedule = ""
			}
			if err := o.Check(); err != nil {
				return exitcode.UsageError(err)
			}
			text, err := o.YAML()
			if err == nil {
				_, err = cmd.OutOrStdout().Write(text)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Image, "image", "", "`name` of an image with loadgen as its entry point")
	flags.StringVar(&o.Namespace, "namespace", "stormglass-cleanup", "`namespace` of the CronJob, which is part of the manifests")
	flags.StringVar(&o.Schedule, "schedule", "*/10 * * * *", "`cron` schedule of the CronJob")
	flags.BoolVar(&once, "once", false, "a Job that runs once, instead of the CronJob")
	return cmd
}
