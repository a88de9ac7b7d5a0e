package template

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"time"
)

// Bounds limit the memory and time of the templates in one file or one import. They protect against mistyped numbers
// and malicious templates. They are not safe for concurrent use.
type Bounds struct {
	steps    int
	deadline time.Time
}

const (
	// maxSteps is the maximum number of loop iterations, template calls and function calls.
	maxSteps = 1_000_000
	// maxElements is the maximum number of elements of a list or map, including nested ones.
	maxElements = 1_000_000
	// maxProduct is the maximum product of the sizes of a function's two largest arguments, in bytes. It limits the size
	// of the results of functions such as replace.
	maxProduct = 256 << 20
	// maxMatched takes the place of maxProduct for functions that match a regular expression, because even a short
	// expression can take microseconds per byte of the text.
	maxMatched = 1 << 20
	// maxCompared and maxComparedText limit each argument of a quadratic function: the number of elements, and the
	// total size of their text in bytes.
	maxCompared     = 10_000
	maxComparedText = 1 << 20
	// longest is the maximum total time since NewBounds or Begin.
	longest = 20 * time.Second
)

// quadratic lists the functions that take time proportional to the square of the size of their arguments.
var quadratic = []string{"uniq", "mustUniq", "without", "mustWithout", "addf", "subf", "mulf", "divf"}

// NewBounds returns Bounds whose time limit starts now. With zero Bounds, the time limit has already passed.
func NewBounds() *Bounds { return &Bounds{deadline: time.Now().Add(longest)} }

// Another returns Bounds with the same deadline, and with a separate count of steps.
func (b *Bounds) Another() *Bounds { return &Bounds{deadline: b.deadline} }

// Begin sets the steps to zero and restarts the time limit. Call it before each execution of a template that is executed
// repeatedly.
func (b *Bounds) Begin() { b.steps, b.deadline = 0, time.Now().Add(longest) }

// Step counts n steps. It returns an error if there are too many steps, or if the time is over.
func (b *Bounds) Step(n int) error {
	if b.steps += n; b.steps > maxSteps {
		return &Error{Msg: fmt.Sprintf("the template's loops run more than %d iterations", maxSteps)}
	}
	return b.Late()
}

// Late returns an error if the time is over.
func (b *Bounds) Late() error {
	if time.Now().After(b.deadline) {
		return &Error{Msg: fmt.Sprintf("rendering the templates takes longer than %v", longest)}
	}
	return nil
}

// stepName and lateName are the names of two template functions. Count inserts calls of them: the first counts steps,
// the second checks the time.
const (
	stepName = "stormglassStep"
	lateName = "stormglassLate"
)

// Functions returns the functions in all, and the printing functions of text/template, with limits on their arguments
// and results.
func (b *Bounds) Functions(all template.FuncMap) template.FuncMap {
	out := template.FuncMap{
		"print": fmt.Sprint, "println": fmt.Sprintln, "printf": printf,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	}
	maps.Copy(out, all)
	for name, f := range out {
		out[name] = b.bound(name, f)
	}
	out[stepName], out[lateName] = b.turns, func() (bool, error) { return false, b.Late() }
	return out
}

// turns counts one step. If v is not empty, it adds one step for each iteration of a loop over v[0], and returns v[0].
func (b *Bounds) turns(v ...any) (any, error) {
	if len(v) == 0 {
		return nil, b.Step(1)
	}
	n := 1
	switch of := reflect.ValueOf(v[0]); of.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map, reflect.String:
		n += of.Len()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n += int(min(max(of.Int(), 0), maxSteps))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n += int(min(of.Uint(), maxSteps))
	}
	return v[0], b.Step(n)
}

// wide matches a formatting verb whose width or precision has at least four digits or is an argument.
var wide = regexp.MustCompile(`%[^a-zA-Z%]*(\*|[0-9]{4})`)

func printf(format string, args ...any) (string, error) {
	if wide.MatchString(strings.ReplaceAll(format, "%%", "")) {
		return "", fmt.Errorf("printf %.40q: the width is too large", format)
	}
	// A formatting verb writes up to 5 bytes for each byte of a string. It writes up to about 1000 bytes (its width)
	// for each element.
	if verbs := 1 + strings.Count(format, "%"); !within(reflect.ValueOf(args), maxProduct/5/verbs, maxProduct/1000/verbs) {
		return "", tooLarge()
	}
	return fmt.Sprintf(format, args...), nil
}

func tooLarge() error { return &Error{Msg: "the arguments of a function are too large"} }

// bound makes the function `name` panic if it exceeds a limit. text/template converts the panic to an error.
func (b *Bounds) bound(name string, f any) any {
	of := reflect.ValueOf(f)
	if of.Kind() != reflect.Func {
		return f
	}
	return reflect.MakeFunc(of.Type(), func(args []reflect.Value) []reflect.Value {
		if err := errors.Join(b.Step(1), fits(name, args, of.Type().IsVariadic())); err != nil {
			panic(err)
		}
		var out []reflect.Value
		if of.Type().IsVariadic() {
			out = of.CallSlice(args)
		} else {
			out = of.Call(args)
		}
		if len(out) > 0 && !within(out[0], maxRendered, maxElements) {
			panic(&Error{Msg: fmt.Sprintf("a function returns a value of more than %d MiB or %d elements", maxRendered>>20, maxElements)})
		}
		return out
	}).Interface()
}

// fits returns an error if the arguments of the function `name` are so large that its result could be too large or the
// call could take too long.
func fits(name string, args []reflect.Value, variadic bool) error {
	// The result may contain all variadic arguments, which can be the same large value many times.
	if variadic && !within(args[len(args)-1], 4*maxRendered, 4*maxElements) {
		return tooLarge()
	}
	slow := slices.Contains(quadratic, name)
	largest, second := 1, 1
	for _, v := range args {
		if slow && !within(v, maxComparedText, maxCompared) {
			return &Error{Msg: fmt.Sprintf("%s does not support more than %d elements or %d MiB", name, maxCompared, maxComparedText>>20)}
		}
		for v.IsValid() && v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		switch v.Kind() {
		case reflect.String, reflect.Slice, reflect.Map, reflect.Array:
			n := v.Len()
			if n > largest {
				largest, second = n, largest
			} else if n > second {
				second = n
			}
		}
	}
	most := float64(maxProduct)
	if strings.HasPrefix(name, "regex") || strings.HasPrefix(name, "mustRegex") {
		most = maxMatched
	}
	if float64(largest)*float64(second) > most {
		return tooLarge()
	}
	return nil
}

// within reports whether a value contains at most `text` bytes of strings and at most `elements` elements, including
// nested values.
func within(v reflect.Value, text, elements int) bool {
	var take func(v reflect.Value, depth int) bool
	take = func(v reflect.Value, depth int) bool {
		if depth > 1000 {
			return false
		}
		switch v.Kind() {
		case reflect.Interface, reflect.Pointer:
			return v.IsNil() || take(v.Elem(), depth+1)
		case reflect.String:
			text -= v.Len()
		case reflect.Slice, reflect.Array:
			kind := v.Type().Elem().Kind()
			if elements -= v.Len(); elements >= 0 && kind >= reflect.Bool && kind <= reflect.Complex128 {
				return true
			}
			for i := 0; i < v.Len() && elements >= 0; i++ {
				if !take(v.Index(i), depth+1) {
					return false
				}
			}
		case reflect.Map:
			elements -= v.Len()
			for it := v.MapRange(); elements >= 0 && it.Next(); {
				if !take(it.Key(), depth+1) || !take(it.Value(), depth+1) {
					return false
				}
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if !take(v.Field(i), depth+1) {
					return false
				}
			}
		}
		return text >= 0 && elements >= 0
	}
	return !v.IsValid() || take(v, 0)
}

// Count changes a parsed template so that its loops and template calls count steps, and each iteration of a loop checks
// the time. The template must have been parsed with the functions that Functions returns.
func (b *Bounds) Count(parsed *template.Template) {
	for _, t := range parsed.Templates() {
		if t.Tree != nil {
			count(t.Tree)
		}
	}
}

func count(tree *parse.Tree) {
	piped := func(p *parse.PipeNode, name string, at parse.Pos) *parse.PipeNode {
		f := parse.NewIdentifier(name).SetTree(tree).SetPos(at)
		command := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: at, Args: []parse.Node{f}}
		if p == nil {
			p = &parse.PipeNode{NodeType: parse.NodePipe, Pos: at}
		}
		p.Cmds = append(p.Cmds, command)
		return p
	}
	Walk(tree.Root, func(n parse.Node) {
		switch n := n.(type) {
		case *parse.RangeNode:
			n.Pipe = piped(n.Pipe, stepName, n.Pos)
			check := &parse.IfNode{BranchNode: parse.BranchNode{ // an action would also print its value
				NodeType: parse.NodeIf, Pos: n.Pos, Pipe: piped(nil, lateName, n.Pos), List: &parse.ListNode{NodeType: parse.NodeList, Pos: n.Pos},
			}}
			n.List.Nodes = slices.Insert(n.List.Nodes, 0, parse.Node(check))
		case *parse.TemplateNode:
			n.Pipe = piped(n.Pipe, stepName, n.Pos)
		}
	})
}

// Writer returns a writer that appends to a buffer and limits its size.
func (b *Bounds) Writer(to *bytes.Buffer) io.Writer { return bounded{to} }
