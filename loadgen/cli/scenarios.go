package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/digits"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func newScenarios() *cobra.Command {
	var output *commandline.Output
	cmd := &cobra.Command{
		Use:   "scenarios",
		Short: "List the built-in scenarios",
		Long: `List the built-in scenarios by purpose. Each entry shows these facts:

  - the total time of the phases, without the start and stop of the control plane, or the
    maximum ("at most") if a phase ends when a condition holds
  - the numbers of simulated nodes and of variants
  - the components with several instances
  - the peak memory of the control plane and loadgen together in a recorded run, if known

docs/sizing.md has CPU times and the sources of these numbers.`,
		Example: `  loadgen scenarios
  loadgen scenarios -o json | jq -r '.[] | select(.nodes == 0) | .name'
  loadgen scenarios show watch-flood > mine.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := listScenarios()
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			return output.Write(w, all, func() error { return printScenarios(w, all, terminal.Columns(w)) })
		},
	}
	output = commandline.AddOutput(cmd)
	cmd.AddCommand(&cobra.Command{
		Use:               "show NAME",
		Short:             "Print a built-in scenario or its recording",
		Example:           "  loadgen scenarios show rollout-500 > mine.yaml\n  loadgen scenarios show replay-demo.recording.gz > replay-demo.recording.gz",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := scenario.RecordingSource(args[0])
			if err != nil {
				text, err = scenario.Source(args[0])
			}
			if err != nil {
				return exitcode.UsageError(err)
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	})
	return cmd
}

type listedScenario struct {
	Name        string         `json:"name"`
	Purpose     string         `json:"purpose"`
	Description string         `json:"description"`
	Seconds     float64        `json:"seconds"` // maximum total length of all phases
	ByCondition bool           `json:"endsByCondition"`
	Nodes       int            `json:"nodes"`
	Variants    []string       `json:"variants,omitempty"`
	Components  map[string]int `json:"components"`
	// Memory is the maximum memory that recorded runs of the scenario used; nil without such a run.
	Memory *listedMemory `json:"memory,omitempty"`
}

type listedMemory struct {
	PlaneBytes   int64 `json:"planeBytes"`
	LoadgenBytes int64 `json:"loadgenBytes"`
}

// listScenarios returns the built-in scenarios, ordered by purpose and name.
func listScenarios() (all []listedScenario, err error) {
	for _, p := range byPurpose() {
		for _, name := range p.names {
			s, err := scenario.Read(name, nil)
			if err != nil {
				return nil, err
			}
			all = append(all, listed(p.title, name, s))
		}
	}
	return all, nil
}

func listed(purpose, name string, s *scenario.Scenario) listedScenario {
	l := listedScenario{Name: name, Purpose: purpose, Description: strings.TrimSpace(s.Description), Nodes: s.Nodes.Count, Components: map[string]int{}, Memory: recordedMemory(name)}
	for _, p := range s.Phases {
		l.Seconds += (p.For.D() + p.Within.D()).Seconds()
		l.ByCondition = l.ByCondition || p.Within > 0
	}
	for _, v := range s.Variants {
		l.Variants = append(l.Variants, v.Name)
	}
	for _, kind := range s.ControlPlane.Kinds() {
		l.Components[kind] = s.ControlPlane.Count(kind)
	}
	return l
}

// length returns the maximum total time of the phases, as text.
func (l listedScenario) length() string {
	return scenario.Duration(time.Duration(l.Seconds * float64(time.Second)).Round(time.Second)).String()
}

// facts describes the size of a scenario in one line.
func (l listedScenario) facts() string {
	facts := []string{l.length()}
	if l.ByCondition {
		facts[0] = "at most " + facts[0]
	}
	if l.Nodes > 0 {
		facts = append(facts, digits.Count(l.Nodes, "node"))
	}
	if n := len(l.Variants); n > 0 {
		facts = append(facts, digits.Count(n, "variant"))
	}
	for _, kind := range control.Kinds() {
		if n := l.Components[kind]; n > 1 {
			facts = append(facts, fmt.Sprintf("%d %s instances", n, kind))
		}
	}
	if m := l.Memory; m != nil {
		facts = append(facts, decimal(m.PlaneBytes+m.LoadgenBytes)+" of memory")
	}
	return strings.Join(facts, ", ")
}

// printScenarios prints the scenarios by purpose: the name and size of each and, below them, its description, wrapped
// to the terminal's width.
func printScenarios(w io.Writer, all []listedScenario, columns int) error {
	return printByPurpose(w, all, func(b *strings.Builder, l listedScenario, names int) {
		first := l.Name
		for _, line := range terminal.Wrap(l.facts(), max(columns, 80)-names-4) {
			fmt.Fprintf(b, "  %-*s  %s\n", names, first, line)
			first = ""
		}
		for _, line := range terminal.Wrap(l.Description, max(columns, 40)-6) {
			fmt.Fprintf(b, "      %s\n", line)
		}
	})
}

// printNames prints one line for each scenario, by purpose: its name, the length of its phases and the start of its
// description.
func printNames(w io.Writer, all []listedScenario, columns int) error {
	return printByPurpose(w, all, func(b *strings.Builder, l listedScenario, names int) {
		const lengths = len("12m34s")
		text := terminal.Shorten(strings.ReplaceAll(l.Description, "\n", " "), max(columns, 80)-names-lengths-6)
		fmt.Fprintf(b, "  %-*s  %*s  %s\n", names, l.Name, lengths, l.length(), text)
	})
}

// printByPurpose calls `print` for each scenario, below the title of its purpose. `names` is the length of the longest
// name of the same purpose.
func printByPurpose(w io.Writer, all []listedScenario, print func(b *strings.Builder, l listedScenario, names int)) error {
	names := map[string]int{}
	for _, l := range all {
		names[l.Purpose] = max(names[l.Purpose], len(l.Name))
	}
	var b strings.Builder
	for i, l := range all {
		if i == 0 || l.Purpose != all[i-1].Purpose {
			fmt.Fprintf(&b, "%s:\n", l.Purpose)
		}
		print(&b, l, names[l.Purpose])
	}
	_, err := io.WriteString(w, b.String())
	return err
}
