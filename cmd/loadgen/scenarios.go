package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/loadgen"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func newScenarios() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scenarios",
		Short: "List the built-in scenarios",
		Example: `  loadgen scenarios
  loadgen scenarios show watch-flood > mine.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, name := range scenario.Names() {
				s, err := scenario.Read(name, nil)
				if err != nil {
					return err
				}
				fmt.Fprintf(w, "%s\t%s\n", name, strings.TrimSpace(s.Description))
			}
			return w.Flush()
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use:               "show NAME",
		Short:             "Print a built-in scenario, to read or to copy and change",
		Example:           "  loadgen scenarios show rollout-500 > mine.yaml",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := scenario.Source(args[0])
			if err != nil {
				return loadgen.Usage(err)
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	})
	return cmd
}

// completeScenario offers the built-in names, then files.
func completeScenario(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return scenario.Names(), cobra.ShellCompDirectiveDefault
}
