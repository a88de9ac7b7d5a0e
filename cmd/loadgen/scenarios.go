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
		Long: `List the built-in scenarios with the length of their phases (the maximum, if a phase
ends by a condition; start and stop of the plane not included), nodes, variants,
components with more than one instance, and the peak memory of recorded runs (plane and
loadgen together). No memory figure means that no run was recorded. docs/sizing.md has
the CPU figures, and says where all figures come from.`,
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
		Short:             "Print a built-in scenario, to read or to copy and change, or the trace that one replays",
		Example:           "  loadgen scenarios show rollout-500 > mine.yaml\n  loadgen scenarios show replay-demo.trace.gz > replay-demo.trace.gz",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := scenario.TraceSource(args[0])
			if err != nil {
				text, err = scenario.Source(args[0])
			}
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
	Seconds     float64        `json:"seconds"` // maximum total length of all phases
	ByCondition bool           `json:"endsByCondition"`
	Nodes       int            `json:"nodes"`
	Variants    []string       `json:"variants,omitempty"`
	Components  map[string]int `json:"components"`
	// Memory is the maximum memory that recorded runs used; nil if no run was recorded.
	Memory *listedMemory `json:"memory,omitempty"`
}

type listedMemory struct {
	PlaneBytes   int64 `json:"planeBytes"`
	LoadgenBytes int64 `json:"loadgenBytes"`
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
	if m, recorded := scenario.RecordedMemory(name); recorded {
		l.Memory = &listedMemory{int64(m.Plane), int64(m.Loadgen)}
	}
	return l
}

// facts describes the size of a scenario in one line.
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
	if m := l.Memory; m != nil {
		facts = append(facts, scenario.Memory{Plane: scenario.Bytes(m.PlaneBytes), Loadgen: scenario.Bytes(m.LoadgenBytes)}.String()+" of memory")
	}
	return strings.Join(facts, ", ")
}

// printScenarios prints the name and size of each scenario, and the description below them, wrapped to the terminal's
// width.
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
