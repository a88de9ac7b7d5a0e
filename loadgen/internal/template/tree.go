package template

import (
	"slices"
	"strings"
	"text/template/parse"
)

// Walk calls visit for each node of a template, children first.
func Walk(n parse.Node, visit func(parse.Node)) {
	branch := func(b *parse.BranchNode) {
		Walk(b.Pipe, visit)
		Walk(b.List, visit)
		Walk(b.ElseList, visit)
	}
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, child := range n.Nodes {
			Walk(child, visit)
		}
	case *parse.PipeNode:
		if n == nil {
			return
		}
		for _, c := range n.Cmds {
			Walk(c, visit)
		}
	case *parse.CommandNode:
		for _, arg := range n.Args {
			Walk(arg, visit)
		}
	case *parse.ActionNode:
		Walk(n.Pipe, visit)
	case *parse.TemplateNode:
		Walk(n.Pipe, visit)
	case *parse.ChainNode:
		Walk(n.Node, visit)
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	}
	visit(n)
}

// Names returns the names of the values that a template reads as .NAME, in order of first use. It returns nil if the
// text is not a valid template.
func Names(text string) (names []string) {
	t, _, err := parseTree(text)
	if err != nil {
		return nil
	}
	Walk(t.Root, func(n parse.Node) {
		var first string
		switch n := n.(type) {
		case *parse.FieldNode:
			first = n.Ident[0]
		case *parse.VariableNode:
			if len(n.Ident) > 1 && n.Ident[0] == "$" {
				first = n.Ident[1]
			}
		}
		if first != "" && !slices.Contains(names, first) {
			names = append(names, first)
		}
	})
	return names
}

// Call is a call of a function in a template. Line counts from 1.
type Call struct {
	Function string
	Line     int
}

// Calls returns the function calls in a template and in the templates that it defines, sorted by line. The functions
// need not exist.
func Calls(text string) (all []Call, err error) {
	main, trees, err := parseTree(text)
	if err != nil {
		return nil, err
	}
	trees[main.Name] = main
	for _, tree := range trees {
		Walk(tree.Root, func(n parse.Node) {
			id, ok := n.(*parse.IdentifierNode)
			if !ok {
				return
			}
			call := Call{id.Ident, 1 + strings.Count(text[:min(int(id.Pos), len(text))], "\n")}
			if !slices.Contains(all, call) {
				all = append(all, call)
			}
		})
	}
	slices.SortFunc(all, func(a, b Call) int { return a.Line - b.Line })
	return all, nil
}

// parseTree parses a template, which may call functions that do not exist. defined contains the templates that it
// defines.
func parseTree(text string) (main *parse.Tree, defined map[string]*parse.Tree, err error) {
	main, defined = parse.New("t"), map[string]*parse.Tree{}
	main.Mode = parse.SkipFuncCheck
	_, err = main.Parse(text, "", "", defined)
	return main, defined, err
}

// Known reports whether templates can call a function.
func Known(function string) bool {
	_, err := Parse("{{if false}}{{" + function + "}}{{end}}")
	return err == nil || !strings.Contains(err.Error(), "no function")
}
