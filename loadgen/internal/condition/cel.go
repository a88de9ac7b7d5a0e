package condition

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// costLimit is the maximum cost of one evaluation, in CEL's cost units. It is a tenth of the API server's limit for a
// rule of a ValidatingAdmissionPolicy, which corresponds to 100 ms (PerCallLimit of k8s.io/apiserver/pkg/apis/cel).
const costLimit = 100_000

// objectName is the name of the variable that holds the whole object.
const objectName = "object"

// language returns the CEL environment of Kubernetes 1.37, which adds functions to standard CEL.
func language() *cel.Env {
	return environment.MustBaseEnvSet(version.MajorMinor(1, 37)).NewExpressionsEnv()
}

// CEL returns the Test for a CEL expression on objects of a resource. In the expression, the variable "object" holds
// the object. If schema is nil, the fields in the expression are not checked.
func CEL(resource, text string, schema Schema) (Test, error) {
	return objectTest(resource, text, objectName, schema)
}

// objectTest is like CEL, but the variable that holds the object has the given name.
func objectTest(resource, text, name string, schema Schema) (Test, error) {
	env := language()
	refs, err := references(env, text)
	if err != nil {
		return Test{}, err
	}
	for _, path := range refs {
		if path[0] != name || schema == nil {
			continue
		}
		if err := schema.Field(resource, path[1:]); err != nil {
			return Test{}, err
		}
	}
	hint := ""
	if name == objectName {
		hint = "the variable is named object, as in object.status.phase"
	}
	holds, err := program(env, text, hint, cel.Variable(name, cel.DynType))
	return Test{Text: celForm + text, holds: func(o Object) (bool, error) { return holds(map[string]any{name: o}) }}, err
}

// fieldTest returns the Test for an expression that uses an object's fields as variables, such as status.phase ==
// "Running".
func fieldTest(resource, text string, schema Schema) (Test, error) {
	env := language()
	refs, err := references(env, text)
	if err != nil {
		return Test{}, err
	}
	roots := map[string]bool{objectName: true}
	for _, path := range refs {
		roots[path[0]] = true
		if path[0] == objectName {
			path = path[1:]
		}
		if schema == nil {
			continue
		}
		if err := schema.Field(resource, path); err != nil {
			return Test{}, err
		}
	}
	var variables []cel.EnvOption
	for _, name := range slices.Sorted(maps.Keys(roots)) {
		variables = append(variables, cel.Variable(name, cel.DynType))
	}
	holds, err := program(env, text, "", variables...)
	return Test{Text: text, holds: func(o Object) (bool, error) { return holds(fields(o)) }}, err
}

// fields provides the fields of an object as variables. A missing field is an empty map, so that an expression may call
// has() on fields of the missing field.
type fields Object

func (f fields) ResolveName(name string) (any, bool) {
	if name == objectName {
		return Object(f), true
	}
	if v, ok := f[name]; ok {
		return v, true
	}
	return map[string]any{}, true
}

func (f fields) Parent() cel.Activation { return nil }

// program compiles a boolean expression. Errors about unknown names contain the hint.
func program(env *cel.Env, text, hint string, variables ...cel.EnvOption) (func(activation any) (bool, error), error) {
	env, err := env.Extend(variables...)
	if err != nil {
		return nil, fmt.Errorf("CEL: %w", err)
	}
	checked, issues := env.Compile(text)
	if err := refused(text, hint, issues); err != nil {
		return nil, err
	}
	if is := checked.OutputType(); !is.IsExactType(cel.BoolType) && !is.IsExactType(cel.DynType) {
		return nil, fail("compare it, for example with == or >=", "%s is of type %s, but must be true or false", text, cel.FormatCELType(is))
	}
	run, err := env.Program(checked, cel.CostLimit(costLimit))
	if err != nil {
		return nil, fmt.Errorf("CEL: %w", err)
	}
	return func(activation any) (bool, error) {
		out, _, err := run.Eval(activation)
		if err != nil {
			return false, err
		}
		is, ok := out.(types.Bool)
		if !ok {
			return false, fmt.Errorf("%s is neither true nor false", text)
		}
		return bool(is), nil
	}, nil
}

// refused returns the first error in issues, with the hint, or nil if there is no error.
func refused(text, hint string, issues *cel.Issues) error {
	if issues.Err() == nil {
		return nil
	}
	first := issues.Errors()[0]
	msg, _, _ := strings.Cut(first.Message, "\n")
	msg = strings.TrimSuffix(msg, " (in container '')")
	msg, _, _ = strings.Cut(msg, " expecting {") // omit the list of all tokens in the grammar
	switch {
	case strings.HasPrefix(msg, "Syntax error: token recognition error at: '="):
		hint = "write == to compare"
	case !strings.HasPrefix(msg, "undeclared reference"):
		hint = ""
	}
	return fail(hint, "%s is not valid CEL:  %s", text, msg)
}

// references returns the paths of all fields that an expression reads, without duplicates. The path of p.status.phase
// is [p status phase]. references omits names that the expression itself defines.
func references(env *cel.Env, text string) ([][]string, error) {
	parsed, issues := env.Parse(text)
	if err := refused(text, "", issues); err != nil {
		return nil, err
	}
	r := &reader{env: env}
	r.visit(parsed.NativeRep().Expr(), nil)
	return r.paths, nil
}

// reader collects the paths of the fields that an expression reads.
type reader struct {
	env   *cel.Env
	paths [][]string
}

// use records a path, unless it starts with a name that CEL defines, such as a type.
func (r *reader) use(path []string) {
	known := func(p []string) bool { return slices.Equal(p, path) }
	if _, issues := r.env.Compile(path[0]); issues.Err() != nil && !slices.ContainsFunc(r.paths, known) {
		r.paths = append(r.paths, path)
	}
}

// visit collects the paths of fields in an expression. bound holds the names that enclosing expressions define.
func (r *reader) visit(e ast.Expr, bound []string) {
	switch e.Kind() {
	case ast.IdentKind, ast.SelectKind:
		base, path := chain(e)
		switch {
		case base != nil:
			r.visit(base, bound)
		case !slices.Contains(bound, path[0]):
			r.use(path)
		}
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() && !r.isNamespace(call) {
			r.visit(call.Target(), bound)
		}
		for _, arg := range call.Args() {
			r.visit(arg, bound)
		}
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			r.visit(item, bound)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			r.visit(entry.AsMapEntry().Key(), bound)
			r.visit(entry.AsMapEntry().Value(), bound)
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			r.visit(field.AsStructField().Value(), bound)
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		r.visit(c.IterRange(), bound)
		r.visit(c.AccuInit(), bound)
		within := append(slices.Clone(bound), c.IterVar(), c.AccuVar())
		if c.HasIterVar2() {
			within = append(within, c.IterVar2())
		}
		for _, part := range []ast.Expr{c.LoopCondition(), c.LoopStep(), c.Result()} {
			r.visit(part, within)
		}
	}
}

// isNamespace reports whether the target of a call is part of the function's name, such as sets in sets.contains(a, b).
func (r *reader) isNamespace(call ast.CallExpr) bool {
	base, path := chain(call.Target())
	return base == nil && r.env.HasFunction(strings.Join(path, ".")+"."+call.FunctionName())
}

// chain returns the path of a field selection such as a.b.c: [a b c]. If the innermost operand is not a name, chain
// returns only that operand, as base.
func chain(e ast.Expr) (base ast.Expr, path []string) {
	for e.Kind() == ast.SelectKind {
		path = append(path, e.AsSelect().FieldName())
		e = e.AsSelect().Operand()
	}
	if e.Kind() != ast.IdentKind {
		return e, nil
	}
	path = append(path, e.AsIdent())
	slices.Reverse(path)
	return nil, path
}
