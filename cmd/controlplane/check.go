package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/programs"
)

// checkCommand returns the command that checks a component's flags for `up`. `up` runs this command in a separate
// process, because the check constructs the component's command, and a process can construct only one such command (see
// package component). `linked` holds the flags that the linked components have added to pflag.CommandLine.
func checkCommand(linked *pflag.FlagSet) *cobra.Command {
	return &cobra.Command{
		Use:     "check KIND < CHECK.json",
		Short:   "Check a component's settings, as `up` does",
		Example: `  echo '{"flags": {"kube-api-qps": "50"}}' | controlplane check kube-controller-manager`,
		Hidden:  true,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var ask control.Check
			if err := json.NewDecoder(cmd.InOrStdin()).Decode(&ask); err != nil {
				return fmt.Errorf("read the settings to check from stdin: %w", err)
			}
			pflag.CommandLine = linked
			checked, err := programs.Check(args[0], ask)
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(checked)
		},
	}
}
