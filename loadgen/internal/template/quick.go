package template

import (
	"fmt"
	"strconv"
	"text/template"
	"text/template/parse"
)

// quick is the list of actions in a simple template. Such a template only inserts named values, such as {{.Replica}},
// and calls functions with one number, such as {{randAlphaNum 20}}. Evaluating a quick is much faster than
// text/template, which uses reflection.
type quick []action

// action is one action of a template. It inserts the value called name or, if draw is not nil, the result of draw(n).
type action struct {
	name string
	draw func(int) (string, error)
	n    int
}

// newQuick returns the actions of a template, or nil if the template is not simple.
func newQuick(parsed *template.Template, functions template.FuncMap) quick {
	if parsed.Tree == nil { // the template has only definitions, so it has no tree
		return nil
	}
	all := quick{}
	for _, n := range parsed.Root.Nodes {
		switch n := n.(type) {
		case *parse.TextNode, *parse.CommentNode:
		case *parse.ActionNode:
			a, ok := actionOf(n.Pipe, functions)
			if !ok {
				return nil
			}
			all = append(all, a)
		default:
			return nil
		}
	}
	return all
}

func actionOf(p *parse.PipeNode, functions template.FuncMap) (a action, ok bool) {
	if len(p.Decl) > 0 || len(p.Cmds) != 1 {
		return a, false
	}
	switch args := p.Cmds[0].Args; len(args) {
	case 1:
		field, isField := args[0].(*parse.FieldNode)
		if !isField || len(field.Ident) != 1 {
			return a, false
		}
		return action{name: field.Ident[0]}, true
	case 2:
		function, isFunction := args[0].(*parse.IdentifierNode)
		number, isNumber := args[1].(*parse.NumberNode)
		if !isFunction || !isNumber || !number.IsInt {
			return a, false
		}
		draw, ok := functions[function.Ident].(func(int) (string, error))
		return action{draw: draw, n: int(number.Int64)}, ok && number.Int64 <= maxRepeated
	}
	return a, false
}

// values returns b with the values of all actions appended. ok is false if a value is missing or has an unsupported
// type.
func (q quick) values(b []string, values map[string]any) (slots []string, ok bool) {
	for i := range q {
		a := &q[i]
		if a.draw != nil {
			drawn, _ := a.draw(a.n) // actionOf has checked n
			b = append(b, drawn)
			continue
		}
		switch v := values[a.name].(type) {
		case string:
			b = append(b, v)
		case int:
			b = append(b, strconv.Itoa(v))
		case bool, float64:
			b = append(b, fmt.Sprint(v))
		default:
			return nil, false
		}
	}
	return b, true
}
