package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/loadgen"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func newValidate() *cobra.Command {
	var sets []string
	var show bool
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
			if show {
				if err := showBatches(cmd.OutOrStdout(), s); err != nil {
					return err
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is valid: %d phases, %d gates, %d nodes%s\n",
				s.Name, len(s.Phases), len(s.Gates), s.Nodes.Count, variants)
			return nil
		},
	}
	addSetFlag(cmd, &sets)
	cmd.Flags().BoolVar(&show, "show", false, "print what the scenario's templates expand to: numbers, and the first object of each kind")
	return cmd
}

// showBatches prints the numbers of each batch of objects and the first object of each kind.
func showBatches(to io.Writer, s *scenario.Scenario) error {
	for _, b := range s.Batches() {
		all, err := s.Expand(b)
		if err != nil {
			return loadgen.Usage(err)
		}
		last, err := all.At(all.Len() - 1)
		if err != nil {
			return loadgen.Usage(err)
		}
		firsts, err := all.Firsts()
		if err != nil {
			return loadgen.Usage(err)
		}
		fmt.Fprintf(to, "# %s: %s, in %d namespaces; the last is %s\n", b.Path, all, b.Namespaces, &last)
		for _, o := range firsts {
			text, err := yaml.Marshal(o.Manifest)
			if err != nil {
				return fmt.Errorf("%s: write %s as YAML: %w", o.Place, &o, err)
			}
			fmt.Fprintf(to, "--- # %s\n%s", o.Place, text)
		}
	}
	return nil
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
