package cli

import (
	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a scenario, for editors",
		Long: `Print the JSON Schema (draft 2020-12) of a scenario file. With it, an editor
completes fields and values, explains them, and marks unknown fields and invalid
values as you type. Problems of the scenario as a whole, such as pods that fit on
no node, are found by loadgen validate.`,
		Example: `  loadgen schema >stormglass.json
  # The first line of mine.yaml, for editors with yaml-language-server:
  #   # yaml-language-server: $schema=stormglass.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(scenario.Schema())
			return err
		},
	}
}
