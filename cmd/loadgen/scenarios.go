package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/loadgen"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func newScenarios() *cobra.Command {
	var output *commandline.Output
	cmd := &cobra.Command{
		Use:   "scenarios",
		Short: "List the built-in scenarios",
		Long: `List the built-in scenarios: how long their phases take, at the most if one ends by
a condition, without the start and the end of the plane; nodes; variants; and the
components of the plane of which there is more than one. docs/sizing.md has the memory and
CPU of those that were recorded.`,
		Example: `  loadgen scenarios
  loadgen scenarios -o json | jq -r '.[] | select(.nodes == 0) | .name'
  loadgen scenarios show watch-flood > mine.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all []listedScenario
			for _, name := range scenario.Names() {
				s, err := scenario.Read(name, nil)
				if err != nil {
					return err
				}
				all = append(all, listed(name, s))
			}
			w := cmd.OutOrStdout()
			return output.Write(w, all, func() error { return printScenarios(w, all, width(w)) })
		},
	}
	output = commandline.AddOutput(cmd)
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

type listedScenario struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Seconds     float64        `json:"seconds"` // of all phases, at the most
	ByCondition bool           `json:"endsByCondition"`
	Nodes       int            `json:"nodes"`
	Variants    []string       `json:"variants,omitempty"`
	Components  map[string]int `json:"components"`
}

func listed(name string, s *scenario.Scenario) listedScenario {
	l := listedScenario{Name: name, Description: strings.TrimSpace(s.Description), Nodes: s.Nodes.Count, Components: map[string]int{}}
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

// facts are a scenario's size in a line.
func (l listedScenario) facts() string {
	length := time.Duration(l.Seconds * float64(time.Second)).Round(time.Second)
	facts := []string{scenario.Duration(length).String()}
	if l.ByCondition {
		facts[0] = "at most " + facts[0]
	}
	if l.Nodes > 0 {
		facts = append(facts, counted(l.Nodes, "node"))
	}
	if n := len(l.Variants); n > 0 {
		facts = append(facts, counted(n, "variant"))
	}
	for _, kind := range control.Kinds() {
		if n := l.Components[kind]; n > 1 {
			facts = append(facts, fmt.Sprintf("%d of %s", n, kind))
		}
	}
	return strings.Join(facts, ", ")
}

// printScenarios prints each name with its size, and the description below it in lines of the terminal's width.
func printScenarios(w io.Writer, all []listedScenario, columns int) error {
	name := 0
	for _, l := range all {
		name = max(name, len(l.Name))
	}
	var b strings.Builder
	for _, l := range all {
		first := l.Name
		for _, line := range loadgen.Wrap(l.facts(), max(columns, 80)-name-2) {
			fmt.Fprintf(&b, "%-*s  %s\n", name, first, line)
			first = ""
		}
		for _, line := range loadgen.Wrap(l.Description, max(columns, 40)-4) {
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
