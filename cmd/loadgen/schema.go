package main

import (
	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a scenario, for editors",
		Long: `Print the JSON Schema (draft 2020-12) of a scenario file. An editor that knows it
completes fields and values, explains them, and marks unknown fields and wrong
forms as you type. What only the whole scenario shows, as pods that no node
holds, is found by loadgen validate.`,
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
