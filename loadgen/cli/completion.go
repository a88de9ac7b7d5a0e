package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func completeScenario(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return scenario.Names(), cobra.ShellCompDirectiveDefault
}

func completeValues(cmd *cobra.Command) {
	for name, of := range map[string]func(*scenario.Scenario) []string{
		"variant": func(s *scenario.Scenario) []string {
			names := []string{"all"}
			for _, v := range s.Variants {
				names = append(names, v.Name)
			}
			return names
		},
		"without-gate": func(s *scenario.Scenario) []string {
			var names []string
			for _, g := range s.Gates {
				names = append(names, g.Name)
			}
			return names
		},
	} {
		complete(cmd, name, func(args []string, _ string) []string {
			if s := completed(args); s != nil {
				return of(s)
			}
			return nil
		}, cobra.ShellCompDirectiveNoFileComp)
	}
	complete(cmd, "set", completeSet, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)
	complete(cmd, "fidelity", func([]string, string) []string { return node.Fidelities() }, cobra.ShellCompDirectiveNoFileComp)
	if cmd.CommandPath() == "loadgen alerts prove" {
		complete(cmd, "rule", func([]string, string) (names []string) {
			all, err := alerts.Rules()
			if err != nil {
				return nil
			}
			for _, a := range all {
				names = append(names, a.Alert)
			}
			return names
		}, cobra.ShellCompDirectiveNoFileComp)
	}
	for _, sub := range cmd.Commands() {
		completeValues(sub)
	}
}

func complete(cmd *cobra.Command, flag string, values func(args []string, typed string) []string, directive cobra.ShellCompDirective) {
	if cmd.LocalNonPersistentFlags().Lookup(flag) == nil {
		return
	}
	_ = cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) { // the flag exists
		return slices.DeleteFunc(values(args, typed), func(v string) bool { return !strings.HasPrefix(v, typed) }), directive
	})
}

// completed returns the scenario in the arguments, or nil if the arguments contain no readable scenario.
func completed(args []string) *scenario.Scenario {
	if len(args) != 1 || args[0] == "-" {
		return nil
	}
	s, err := scenario.Read(args[0], nil)
	if err != nil {
		return nil
	}
	return s
}

// completeSet completes the path of a scenario field that the user has typed after --set. It completes one level at a
// time: "nodes.", then "nodes.count=".
func completeSet(args []string, typed string) []string {
	s := completed(args)
	if s == nil {
		return nil
	}
	text, err := s.Resolved()
	if err != nil {
		return nil
	}
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil || len(doc.Content) == 0 {
		return nil
	}
	at, path := doc.Content[0], ""
	for {
		name, rest, deeper := strings.Cut(typed[len(path):], ".")
		next := child(at, name)
		if !deeper || next == nil {
			break
		}
		at, path = next, typed[:len(typed)-len(rest)]
	}
	var offered []string
	for _, name := range children(at) {
		if next := child(at, name); next.Kind == yaml.ScalarNode {
			offered = append(offered, path+name+"=")
		} else {
			offered = append(offered, path+name+".")
		}
	}
	return offered
}

// children returns the names of a mapping's fields or of a sequence's items. For an item without a name, it returns the
// item's number.
func children(of *yaml.Node) (names []string) {
	switch of.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(of.Content); i += 2 {
			names = append(names, of.Content[i].Value)
		}
	case yaml.SequenceNode:
		for i, item := range of.Content {
			name := strconv.Itoa(i)
			if n := child(item, "name"); n != nil {
				name = n.Value
			}
			names = append(names, name)
		}
	}
	return names
}

// child returns the field of a mapping with this name, or the item of a sequence with this name or number. It returns
// nil if the node has no such child.
func child(of *yaml.Node, name string) *yaml.Node {
	switch of.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(of.Content); i += 2 {
			if of.Content[i].Value == name {
				return of.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i := slices.Index(children(of), name); i >= 0 {
			return of.Content[i]
		}
	}
	return nil
}
