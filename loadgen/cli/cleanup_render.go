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
		Short: "Print manifests of a CronJob that cleans up after runs",
		Long: `Print manifests for kubectl apply: a CronJob that runs 'loadgen cleanup --expired',
with its namespace, ServiceAccount and RBAC rules. The namespace has the Pod Security
level "restricted".`,
		Example: `  loadgen cleanup render --image registry.example.com/loadgen:v1 | kubectl apply -f -
  loadgen cleanup render --image registry.example.com/loadgen:v1 --once`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if once && cmd.Flags().Changed("schedule") {
				return exitcode.Usagef("--once and --schedule cannot be used together (leave out one of them)")
			}
			if once {
				o.Schedule = ""
			}
			return printManifests(cmd.OutOrStdout(), &o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Image, "image", "", "`name` of a container image whose entry point is loadgen")
	flags.StringVar(&o.Namespace, "namespace", "stormglass-cleanup", "`namespace` to create for the CronJob")
	flags.StringVar(&o.Schedule, "schedule", "*/10 * * * *", "`cron` schedule of the CronJob")
	flags.BoolVar(&once, "once", false, "print a Job that runs once instead of the CronJob")
	return cmd
}
