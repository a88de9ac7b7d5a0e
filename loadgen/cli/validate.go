package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func newValidate() *cobra.Command {
	var sets []string
	var show bool
	cmd := &cobra.Command{
		Use:   "validate FILE|NAME|-",
		Short: "Check a scenario without running it",
		Long: `Check a scenario without running it: fields, units, references, and the objectives
(built-in metrics) and PromQL of gates. If the argument is -, the scenario comes from
standard input.

Errors are printed one per line. Some checks run only if earlier checks find no errors,
so check the scenario again after you correct it.

A warning reports a setting that works but is probably a mistake, for example a metric
that no component has. The command also lists hooks: commands that a run executes on
this machine. --show prints the scenario with all overrides and defaults.

Some errors appear only when a run starts: flags that a component does not accept
together, and resources that your cluster lacks.`,
		Example: `  loadgen validate mine.yaml
  loadgen validate rollout-500 --set gates.rollout-time.max=2m
  loadgen validate rollout-500 --show`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := readScenario(cmd, args[0], sets)
			if err != nil {
				return err
			}
			for _, w := range append(scenarioWarnings(s), run.MissingReleases(cmd.Context(), s, "")...) {
				fmt.Fprintln(cmd.ErrOrStderr(), "loadgen: warning: "+terminal.Clean(w))
			}
			variants := ""
			if n := len(s.Variants); n > 0 {
				variants = fmt.Sprintf(", %d variants", n)
			}
			out := cmd.OutOrStdout()
			if show { // standard output may be a file
				resolved, err := s.Resolved()
				if err != nil {
					return err
				}
				if _, err := out.Write(resolved); err != nil {
					return err
				}
				if err := showBatches(out, s); err != nil {
					return err
				}
				out = cmd.ErrOrStderr()
			}
			fmt.Fprintf(out, "%s is valid: %d phases, %d gates, %d nodes%s\n",
				s.Name, len(s.Phases), len(s.Gates), s.Nodes.Count, variants)
			for _, h := range s.Hooks() {
				fmt.Fprintf(out, "  command on this machine: %s\n", terminal.Clean(h.String()))
			}
			return nil
		},
	}
	addFilenameFlag(cmd)
	addSetFlag(cmd, &sets)
	cmd.Flags().BoolVar(&show, "show", false, "print the scenario with overrides and defaults, and the objects of its templates as comments")
	return cmd
}

// showBatches prints the objects of each batch as YAML comments: the number of objects by kind, and the first object of
// each kind.
func showBatches(to io.Writer, s *scenario.Scenario) error {
	for _, b := range plan.Of(s).Batches {
		all := b.Expanded
		last, err := all.At(all.Len() - 1)
		if err != nil {
			return exitcode.UsageError(err)
		}
		firsts, err := all.Firsts()
		if err != nil {
			return exitcode.UsageError(err)
		}
		of := ""
		if b.NamespaceGroup != "" {
			of = " of group " + b.NamespaceGroup
		}
		fmt.Fprintf(to, "# %s: %s, in %d namespaces%s; the last is %s\n", b.Path, all, b.Namespaces, of, &last)
		for _, o := range firsts {
			text, err := yaml.Marshal(o.Manifest)
			if err != nil {
				return fmt.Errorf("%s: write %s as YAML: %w", o.Place, &o, err)
			}
			fmt.Fprintf(to, "#\n# of %s:\n", o.Place)
			for line := range strings.Lines(string(text)) {
				fmt.Fprintf(to, "#   %s", line)
			}
		}
	}
	return nil
}

// readScenario reads and checks a scenario, including its gates; "-" is standard input.
func readScenario(cmd *cobra.Command, nameOrFile string, sets []string) (s *scenario.Scenario, err error) {
	if nameOrFile == "-" {
		s, err = scenario.ReadStdin(cmd.Context(), cmd.InOrStdin(), sets)
	} else {
		s, err = scenario.ReadContext(cmd.Context(), nameOrFile, sets)
	}
	if err != nil {
		return nil, exitcode.UsageError(err)
	}
	if err := gate.Check(s); err != nil {
		return nil, exitcode.UsageError(err)
	}
	return s, nil
}

// readWithHooks is like readScenario, but removes the hooks of the scenario if `hooks` is false.
func readWithHooks(cmd *cobra.Command, nameOrFile string, sets []string, hooks bool) (*scenario.Scenario, error) {
	s, err := readScenario(cmd, nameOrFile, sets)
	if err == nil && !hooks {
		s.DropHooks()
	}
	return s, err
}

func addHooksFlag(cmd *cobra.Command, without *bool) {
	cmd.Flags().BoolVar(without, "no-hooks", false, "do not run the scenario's hooks (commands on this machine before and after phases)")
}

func addSetFlag(cmd *cobra.Command, sets *[]string) {
	cmd.Flags().StringArrayVar(sets, "set", nil, "override a field of the scenario: `path=value`, for example nodes.count=50 or gates.NAME.max=1s (repeatable)")
}

// scenarioWarnings returns one line for each probable mistake in a scenario and in its
// variants.
func scenarioWarnings(s *scenario.Scenario) []string {
	p := plan.Of(s)
	all := slices.Concat(p.Warnings(), p.Unserved(), gate.Warnings(p))
	for _, v := range s.AllVariants() {
		p := plan.Of(v)
		for _, w := range append(p.Warnings(), p.Unserved()...) {
			if !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
	}
	if len(s.Gates) == 0 {
		all = append(all, fmt.Sprintf("%s has no gates, so a run neither passes nor fails and exits with 3", s.Name))
	}
	return all
}
