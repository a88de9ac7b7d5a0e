package importer

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	bounds "github.com/stormglass/stormglass/loadgen/internal/template"
)

// configFunctions returns the template functions for kube-burner's configuration files. Random functions return the
// same values in each import. env reads from values instead of from the environment.
func configFunctions(values map[string]any) template.FuncMap {
	all := bounds.Functions(rand.New(rand.NewPCG(1, 1)))
	all["env"] = func(name string) string {
		if v, ok := values[name]; ok {
			return fmt.Sprint(v)
		}
		return ""
	}
	return all
}

// renderConfig renders a configuration file with its values. It stops when the time of limits is over.
func renderConfig(limits *bounds.Bounds, file string, text []byte, values map[string]any) (string, error) {
	if err := limits.Late(); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	limits = limits.Another()
	t, err := template.New(file).Option("missingkey=error").Funcs(limits.Functions(configFunctions(values))).Parse(string(text))
	if err != nil {
		return "", templateError(err)
	}
	limits.Count(t)
	var lack []string
	for _, name := range valueNames(t.Tree) {
		if _, ok := values[name]; !ok {
			lack = append(lack, name)
		}
	}
	var b bytes.Buffer
	err = t.Execute(limits.Writer(&b), values)
	for name := textValue(err, values); name != ""; name = textValue(err, values) {
		values[name] = fmt.Sprint(values[name])
		b.Reset()
		err = t.Execute(limits.Writer(&b), values)
	}
	switch {
	case err != nil && len(lack) > 0 && strings.Contains(err.Error(), "map has no entry"):
		return "", fmt.Errorf("%s: it needs values: %s (add --set %s=..., or --set %s= for an empty one)", file, strings.Join(lack, ", "), lack[0], lack[0])
	case err != nil:
		return "", templateError(err)
	}
	return b.String(), nil
}

// executing matches what text/template inserts after the line of an error: the column, the file again, and the function.
var executing = regexp.MustCompile(`:\d+: executing "[^"]*" at (<.*?>): (?:error calling \w+: )?`)

// templateError returns an error of text/template in one line. For a limit that was exceeded, it omits the name of the inserted
// function that found it.
func templateError(err error) error {
	text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "template: "), "\n", " ")
	if limit, ok := errors.AsType[*bounds.Error](err); ok {
		where, _, _ := strings.Cut(text, ": executing ")
		return fmt.Errorf("%s: %w", where, limit)
	}
	text = executing.ReplaceAllString(text, ": $1: ")
	if strings.Contains(text, "incompatible types for comparison") || strings.Contains(text, "wrong type for value") {
		text += " (check the values of --set)"
	}
	return errors.New(text)
}

// typeErrors are texts in errors of text/template about a value of another type.
var typeErrors = regexp.MustCompile(`<([^>]*)>: .*(?:incompatible types for comparison|wrong type for value; expected string|len of type)`)

// textValue returns the name of a number or bool that a template uses as text, according to an error. kube-burner reads values
// as text from environment variables, and typed from files; --set does not tell which of them a configuration expects.
func textValue(err error, values map[string]any) string {
	if err == nil {
		return ""
	}
	if m := typeErrors.FindStringSubmatch(err.Error()); m != nil {
		for _, field := range fieldName.FindAllStringSubmatch(m[1], -1) {
			if _, text := values[field[1]].(string); values[field[1]] != nil && !text {
				return field[1]
			}
		}
	}
	return ""
}

var fieldName = regexp.MustCompile(`\.([A-Za-z_]\w*)`)

// valueNames returns the names of the values that a template reads as .NAME, in order of first use.
func valueNames(t *parse.Tree) (names []string) {
	walk(t.Root, func(n parse.Node) {
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

// functionUse is a call of a function in a template. line counts from 1.
type functionUse struct {
	name string
	line int
}

// unknownFunctions returns the calls of functions that known does not accept, sorted by line.
func unknownFunctions(text string, known func(string) bool) (all []functionUse, err error) {
	t := parse.New("t")
	t.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := t.Parse(text, "", "", trees); err != nil {
		return nil, err
	}
	trees["t"] = t
	for _, tree := range trees {
		if tree.Root == nil {
			continue
		}
		walk(tree.Root, func(n parse.Node) {
			id, ok := n.(*parse.IdentifierNode)
			if !ok || known(id.Ident) {
				return
			}
			use := functionUse{id.Ident, 1 + strings.Count(text[:min(int(id.Pos), len(text))], "\n")}
			if !slices.Contains(all, use) {
				all = append(all, use)
			}
		})
	}
	slices.SortFunc(all, func(a, b functionUse) int { return a.line - b.line })
	return all, nil
}

// parseTree parses a template that may call unknown functions.
func parseTree(text string) (*parse.Tree, error) {
	t := parse.New("t")
	t.Mode = parse.SkipFuncCheck
	return t.Parse(text, "", "", map[string]*parse.Tree{})
}

// walk calls visit for each node of a template, children first.
func walk(n parse.Node, visit func(parse.Node)) {
	pipe := func(p *parse.PipeNode) {
		if p == nil {
			return
		}
		for _, c := range p.Cmds {
			walk(c, visit)
		}
	}
	branch := func(b *parse.BranchNode) {
		pipe(b.Pipe)
		walk(b.List, visit)
		if b.ElseList != nil {
			walk(b.ElseList, visit)
		}
	}
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, child := range n.Nodes {
			walk(child, visit)
		}
		return
	case *parse.ActionNode:
		pipe(n.Pipe)
	case *parse.TemplateNode:
		pipe(n.Pipe)
	case *parse.PipeNode:
		pipe(n)
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	case *parse.CommandNode:
		for _, arg := range n.Args {
			walk(arg, visit)
		}
	case *parse.ChainNode:
		walk(n.Node, visit)
	}
	visit(n)
}

// ParseValues parses NAME=VALUE pairs of the flag --set. Whole numbers without leading zeros, true and false are typed, as helm does
// it. Other numbers are typed only if fractions is set. All other values are strings.
func ParseValues(pairs []string, fractions bool) (map[string]any, error) {
	values := map[string]any{}
	for _, pair := range pairs {
		name, text, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--set %s: must be NAME=VALUE", pair)
		}
		values[name] = typedValue(text, fractions)
	}
	return values, nil
}

func typedValue(text string, fractions bool) any {
	switch text {
	case "true":
		return true
	case "false":
		return false
	}
	if n, err := strconv.Atoi(text); err == nil && strconv.Itoa(n) == text {
		return n
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && fractions {
		return n
	}
	return text
}
