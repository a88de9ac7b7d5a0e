package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/loadgen"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func newValidate() *cobra.Command {
	var sets []string
	cmd := &cobra.Command{
		Use:   "validate FILE|NAME|-",
		Short: "Check a scenario without running it",
		Long: `Check a scenario without running it: every field, unit and reference, every
gate's objective and PromQL. Errors are printed one line each, and all at once as
far as one does not hide another: what cannot be read is told first, then what
contradicts itself, then what cannot come to pass, then variants and gates. A -
reads the scenario from standard input.

What only a control plane can know is told when it starts: whether a component
takes a flag's value together with the others, and of a cluster of yours the
resources that it has itself.`,
		Example: `  loadgen validate mine.yaml
  loadgen validate rollout-500 --set gates.rollout-time.max=2m`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := readScenario(cmd, args[0], sets)
			if err != nil {
				return err
			}
			for _, w := range loadgen.Warnings(s) {
				fmt.Fprintln(cmd.ErrOrStderr(), "loadgen: warning: "+w)
			}
			variants := ""
			if n := len(s.Variants); n > 0 {
				variants = fmt.Sprintf(", %d variants", n)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is valid: %d phases, %d gates, %d nodes%s\n",
				s.Name, len(s.Phases), len(s.Gates), s.Nodes.Count, variants)
			return nil
		},
	}
	addSetFlag(cmd, &sets)
	return cmd
}

// readScenario reads and checks a scenario, gates included; "-" is standard input.
func readScenario(cmd *cobra.Command, nameOrFile string, sets []string) (s *scenario.Scenario, err error) {
	if nameOrFile == "-" {
		s, err = scenario.ReadStdin(cmd.Context(), cmd.InOrStdin(), sets)
	} else {
		s, err = scenario.Read(nameOrFile, sets)
	}
	if err != nil {
		return nil, loadgen.Usage(err)
	}
	if err := loadgen.Check(s); err != nil {
		return nil, loadgen.Usage(err)
	}
	return s, nil
}

func addSetFlag(cmd *cobra.Command, sets *[]string) {
	cmd.Flags().StringArrayVar(sets, "set", nil, "override a field of the scenario, as `path=value`: nodes.count=50, gates.NAME.max=1s (repeatable)")
}
