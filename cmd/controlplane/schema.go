package main

import (
	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/controlplane/control"
)

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a config file, for editors",
		Long: `Print the JSON Schema (draft 2020-12) of the file for 'controlplane up --config'. With
the schema, an editor completes and explains fields, and marks unknown fields.`,
		Example: `  controlplane schema >plane-schema.json
  # The first line of plane.yaml, for editors with yaml-language-server:
  #   # yaml-language-server: $schema=plane-schema.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(control.Schema())
			return err
		},
	}
}
