package main

import (
	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/loadgen"
)

func newReport() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Judge a recorded run again and rebuild its report",
		Long: `Judge a recorded run again and rebuild result.json, junit.xml and report.html
from its directory alone. The exit code is the run's. Of a directory of variants
all are judged again, and set side by side.`,
		Example: `  loadgen report runs/20261121-101500-rollout-500
  loadgen report runs/20261121-101500-rollout-500 -o json | jq .verdict`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			if loadgen.IsComparison(args[0]) {
				c, err := loadgen.Compare(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return showComparison(cmd.OutOrStdout(), args[0], c, output)
			}
			res, err := loadgen.Judge(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), args[0], res, output)
		},
	}
	addOutputFlag(cmd, &output)
	return cmd
}
