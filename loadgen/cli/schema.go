package cli

import (
	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of scenario files, for editors",
		Long: `Print the JSON Schema (draft 2020-12) of scenario files. With the schema, an editor
completes and explains fields, and marks unknown fields and invalid values. Only
'loadgen validate' finds contradictions between fields, for example pods that fit on
no node.`,
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
