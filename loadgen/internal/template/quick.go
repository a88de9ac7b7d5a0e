package template

import (
	"fmt"
	"strconv"
	"text/template"
	"text/template/parse"
)

// quick gives the values of a template whose actions are values by name and functions of one number, as {{.Replica}} and
// {{randAlphaNum 20}}, without text/template's reflection, which costs more than all else of such a rendering.
type quick []action

// action is one of a template: the value of that name or, with draw, what draw makes of n.
type action struct {
	name string
	draw func(int) (string, error)
	n    int
}

// newQuick is nil for a template with other actions.
func newQuick(parsed *template.Template, functions template.FuncMap) quick {
	if parsed.Tree == nil { // of definitions alone
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
		return action{draw: draw, n: int(number.Int64)}, ok && number.Int64 <= mostRepeated
	}
	return a, false
}

// values appends what the actions give. Not ok: a value is missing, or none that is written by itself.
func (q quick) values(b []string, values map[string]any) (slots []string, ok bool) {
	for i := range q {
		a := &q[i]
		if a.draw != nil {
			drawn, _ := a.draw(a.n) // its number is no error
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
