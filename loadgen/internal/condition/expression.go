package condition

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
)

// setsHint shows how to write expressions over sets of objects.
const setsHint = `write count(pods where status.phase == "Running") >= 950, or as CEL pods.filter(p, p.status.phase == "Running").size() >= 950`

// Parse parses an expression over sets of objects. The expression is CEL, in which the name of a resource is the list
// of its objects:
//
//	pods.filter(p, p.status.phase == "Running").size() >= 950 && nodes.all(n, !has(n.spec.unschedulable))
//
// Shorter forms are count(RESOURCE where EXPR) and all(RESOURCE where EXPR), in which EXPR uses the fields of an object
// as variables. On a list, only size(), filter(...).size(), all, exists and exists_one are allowed, because Tallies
// suffice to compute them. A test that cannot be evaluated, for example because a field is missing, is false. If schema
// is nil, the names of resources and fields are not checked.
func Parse(text string, schema Schema) (*Condition, error) {
	if len(text) > maxText {
		return nil, tooLong(text)
	}
	x := &expression{schema: schema}
	rest, err := x.replaceWhere(text)
	if err != nil {
		return nil, err
	}
	env, err := language().Extend(cel.ClearMacros())
	if err != nil {
		return nil, fmt.Errorf("CEL: %w", err)
	}
	parsed, issues := env.Parse(rest)
	if err := refused(text, "", issues); err != nil {
		return nil, err
	}
	root, info := parsed.NativeRep().Expr(), parsed.NativeRep().SourceInfo()
	if err := x.replaceSets(root, info); err != nil {
		return nil, err
	}
	if len(x.counts) == 0 {
		return nil, fail(setsHint, "%s does not refer to any objects", text)
	}
	if rest, err = cel.ExprToString(root, info); err != nil {
		return nil, fail("", "%s is not valid CEL:  %v", text, err)
	}
	var variables []cel.EnvOption
	for i, v := range x.values {
		variables = append(variables, cel.Variable(variable(i), v.kind))
	}
	holds, err := program(language(), rest, setsHint, variables...)
	if err != nil {
		return nil, x.restored(err)
	}
	values := x.values
	return &Condition{Text: text, Counts: x.counts, holds: func(tallies []Tally) (bool, error) {
		all := make(map[string]any, len(values))
		for i, v := range values {
			all[variable(i)] = v.of(tallies[i])
		}
		return holds(all)
	}}, nil
}

// expression collects the sets of objects in an expression, and replaces each of them by a variable.
type expression struct {
	schema Schema
	counts []Count
	values []value
}

// value describes a variable: how to compute its value from the Tally of its Count.
type value struct {
	kind *cel.Type
	of   func(Tally) any
	text string // the source text that the variable replaces
}

func variable(i int) string { return fmt.Sprintf("set_%d", i) }

func size(t Tally) any { return t.Holds }

// add adds a variable for a count and returns the variable's name. `of` computes the variable's value.
func (x *expression) add(c Count, text string, kind *cel.Type, of func(Tally) any) string {
	x.counts, x.values = append(x.counts, c), append(x.values, value{kind, of, text})
	return variable(len(x.values) - 1)
}

// restored replaces the names of variables in an error by the source text for which they stand.
func (x *expression) restored(err error) error {
	e := AsError(err)
	for i, v := range slices.Backward(x.values) {
		e.Msg = strings.ReplaceAll(e.Msg, variable(i), v.text)
	}
	return e
}

// whereForm matches the start of count(RESOURCE where EXPR) and all(RESOURCE where EXPR).
var whereForm = regexp.MustCompile(`\b(count|all)\(\s*([a-z0-9][-a-z0-9.]*)\s*(\swhere\s|\))`)

// replaceWhere replaces count(RESOURCE where EXPR) and all(RESOURCE where EXPR) by variables.
func (x *expression) replaceWhere(text string) (string, error) {
	var b strings.Builder
	for from := 0; ; {
		m := whereForm.FindStringSubmatchIndex(text[from:])
		if m == nil {
			return b.String() + text[from:], nil
		}
		for i := range m {
			m[i] += from
		}
		if quoted(text[:m[0]]) || m[0] > 0 && text[m[0]-1] == '.' || text[m[2]:m[3]] == "all" && text[m[6]:m[7]] == ")" {
			b.WriteString(text[from:m[3]])
			from = m[3]
			continue
		}
		form, resource, end := text[m[2]:m[3]], text[m[4]:m[5]], m[1]
		if x.schema != nil {
			if err := x.schema.Resource(resource); err != nil {
				return "", err
			}
		}
		c := Count{Set: Set{Resource: resource}, noun: resource}
		if text[m[6]:m[7]] != ")" {
			length := closing(text[end:])
			if length < 0 {
				return "", fail("add a ) after the expression", "%s has no closing parenthesis", text[m[0]:])
			}
			test := strings.TrimSpace(text[end : end+length])
			var err error
			if c.Test, err = fieldTest(resource, test, x.schema); err != nil {
				return "", err
			}
			c.noun += " where " + test
			end += length + 1
		}
		kind, of := cel.IntType, size
		if form == "all" {
			// For an empty set, all(...) is false, because no object exists yet.
			kind, of = cel.BoolType, func(t Tally) any { return t.Selected > 0 && t.Holds == t.Selected }
		}
		b.WriteString(text[from:m[0]] + x.add(c, text[m[0]:end], kind, of))
		from = end
	}
}

// quoted reports whether the end of text is within a string literal.
func quoted(text string) bool {
	var quote rune
	escaped := false
	for _, r := range text {
		switch {
		case escaped:
			escaped = false
		case quote != 0 && r == '\\':
			escaped = true
		case quote == r:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		}
	}
	return quote != 0
}

// closing returns the index in text of the parenthesis that closes a parenthesis before text, or -1 if there is no such
// parenthesis.
func closing(text string) int {
	depth := 0
	for i, r := range text {
		if (r != '(' && r != ')') || quoted(text[:i]) {
			continue
		}
		if r == '(' {
			depth++
		} else if depth--; depth < 0 {
			return i
		}
	}
	return -1
}

// replaceSets replaces each use of a set in e by a variable. The macros in e must not be expanded.
func (x *expression) replaceSets(e ast.Expr, info *ast.SourceInfo) error {
	if e.Kind() == ast.IdentKind || e.Kind() == ast.SelectKind {
		base, path := chain(e)
		if base != nil {
			return x.replaceSets(base, info)
		}
		return x.alone(path)
	}
	if e.Kind() == ast.CallKind {
		name, err := x.asked(e.AsCall(), info)
		if err != nil {
			return err
		}
		if name != "" {
			e.SetKindCase(ast.NewExprFactory().NewIdent(e.ID(), name))
			return nil
		}
	}
	var err error
	for _, part := range parts(e) {
		if err == nil {
			err = x.replaceSets(part, info)
		}
	}
	return err
}

// alone returns an error if path is an unknown name, or a resource without a function such as size.
func (x *expression) alone(path []string) error {
	name := strings.Join(path, ".")
	for i := range x.values {
		if name == variable(i) {
			return nil
		}
	}
	if _, issues := language().Compile(name); issues.Err() == nil {
		return nil // a type
	}
	if x.schema != nil {
		if err := x.schema.Resource(name); err != nil {
			return err
		}
	}
	return fail(setsHint+"; CEL's all, exists and exists_one also work", "the expression names %s but does not count them", name)
}

// asked replaces a call of size, all, exists or exists_one on a set of objects by a variable. It returns the name of
// the variable, or "" if the call is not of that form.
func (x *expression) asked(call ast.CallExpr, info *ast.SourceInfo) (name string, err error) {
	of, args := call.Target(), call.Args()
	if call.FunctionName() == "size" && !call.IsMemberFunction() && len(args) == 1 {
		of, args = args[0], nil
	}
	if of == nil {
		return "", nil
	}
	if call.FunctionName() == "size" && of.Kind() == ast.CallKind {
		if inner := of.AsCall(); inner.FunctionName() == "filter" && inner.IsMemberFunction() && len(inner.Args()) == 2 {
			return x.count(inner.Target(), inner.Args(), info, ".filter(%s, %s).size()", cel.IntType, size)
		}
		return "", nil
	}
	switch call.FunctionName() {
	case "size":
		return x.count(of, nil, info, ".size()", cel.IntType, size)
	case "all":
		return x.count(of, args, info, ".all(%s, %s)", cel.BoolType, func(t Tally) any { return t.Holds == t.Selected })
	case "exists":
		return x.count(of, args, info, ".exists(%s, %s)", cel.BoolType, func(t Tally) any { return t.Holds > 0 })
	case "exists_one", "existsOne":
		return x.count(of, args, info, ".exists_one(%s, %s)", cel.BoolType, func(t Tally) any { return t.Holds == 1 })
	}
	return "", nil
}

// count adds a variable for a macro on a set of objects and returns the variable's name, or "" if set is not a set of
// objects. args holds the two arguments of the macro. If args is nil, the variable counts all objects. form is the
// format of the macro's source text, for messages.
func (x *expression) count(set ast.Expr, args []ast.Expr, info *ast.SourceInfo, form string, kind *cel.Type, of func(Tally) any) (string, error) {
	base, path := chain(set)
	if base != nil || strings.HasPrefix(path[0], "set_") {
		return "", nil
	}
	c := Count{Set: Set{Resource: strings.Join(path, ".")}}
	c.noun = c.Resource
	if x.schema != nil {
		if err := x.schema.Resource(c.Resource); err != nil {
			return "", err
		}
	}
	if args == nil {
		return x.add(c, c.Resource+form, kind, of), nil
	}
	if len(args) != 2 || args[0].Kind() != ast.IdentKind {
		return "", fail(setsHint, "%s takes two arguments: a variable name and an expression", c.Resource+strings.Split(form, "(")[0])
	}
	name := args[0].AsIdent()
	text, err := cel.ExprToString(args[1], info)
	if err != nil {
		return "", fail("", "%s: not valid CEL:  %v", c.Resource, err)
	}
	if c.Test, err = objectTest(c.Resource, text, name, x.schema); err != nil {
		return "", err
	}
	c.noun += " where " + text
	return x.add(c, c.Resource+fmt.Sprintf(form, name, text), kind, of), nil
}

// parts returns the subexpressions of an expression.
func parts(e ast.Expr) (all []ast.Expr) {
	switch e.Kind() {
	case ast.CallKind:
		if e.AsCall().IsMemberFunction() {
			all = append(all, e.AsCall().Target())
		}
		return append(all, e.AsCall().Args()...)
	case ast.ListKind:
		return e.AsList().Elements()
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			all = append(all, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	}
	return all
}
