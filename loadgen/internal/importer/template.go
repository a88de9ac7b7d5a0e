package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/stormglass/stormglass/internal/userfile"
	bounds "github.com/stormglass/stormglass/loadgen/internal/template"
)

// cl2Templates renders the template files of a ClusterLoader2 test.
type cl2Templates struct {
	files  fs.FS
	limits *bounds.Bounds // limits of the rendering of templates, for the whole import
}

// render executes a template file with values. It returns the result, and the template itself as source.
func (t cl2Templates) render(file string, values map[string]any) (text, source string, err error) {
	if err := t.limits.Step(1); err != nil { // a template without loops and functions counts no steps itself
		return "", "", fmt.Errorf("%s: %w", file, err)
	}
	name := path.Clean(strings.TrimPrefix(file, "/"))
	data, err := fs.ReadFile(t.files, name)
	if err != nil {
		return "", "", fmt.Errorf("%s: cannot read it: %w", file, userfile.Cause(err))
	}
	parsed, err := template.New(name).Funcs(t.limits.Functions(cl2Functions(t.files))).Parse(string(data))
	if err != nil {
		return "", "", templateError(err)
	}
	for _, one := range parsed.Templates() {
		if one.Tree != nil && one.Root != nil {
			decideByValues(one.Tree)
		}
	}
	t.limits.Count(parsed) // after decideByValues, to count loops over symbols
	var b bytes.Buffer
	if err := parsed.Execute(t.limits.Writer(&b), values); err != nil {
		return "", "", templateError(err)
	}
	return b.String(), string(data), nil
}

// decideByValues changes the conditions of if, with and range actions: the conditions use the values of symbols instead
// of the symbols.
func decideByValues(tree *parse.Tree) {
	ask := func(p *parse.PipeNode) {
		f := parse.NewIdentifier("concrete").SetTree(tree).SetPos(p.Pos)
		p.Cmds = append(p.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: p.Pos, Args: []parse.Node{f}})
	}
	bounds.Walk(tree.Root, func(n parse.Node) {
		switch n := n.(type) {
		case *parse.IfNode:
			ask(n.Pipe)
		case *parse.WithNode:
			ask(n.Pipe)
		case *parse.RangeNode:
			ask(n.Pipe)
		}
	})
}

// maxIndexes is the maximum number of indexes for which the method `object` renders a template to find differences
// between objects.
const maxIndexes = 1000

// maxVariants is the maximum number of different texts of a template that the method `object` compares and returns.
const maxVariants = 20

// indexExpr returns the template expression that computes an object's index from the load's replica number. Replica
// numbers start at 1, indexes at `first`.
func indexExpr(first int) string {
	switch first {
	case 0:
		return "sub .Replica 1"
	case 1:
		return ".Replica"
	}
	return fmt.Sprintf("add .Replica %d", first-1)
}

// object returns the template with which a load creates the objects of a bundle, whose indexes start at `first`. Values
// that depend on the index become template expressions. If the structure of an object depends on the index, the
// template contains each variant and selects one by the index.
func (t cl2Templates) object(file, basename string, first, replicas int, values map[string]any) (string, error) {
	var texts []string
	indexes := map[string][]int{}
	indexExpr := indexExpr(first)
	for i := first; i < first+min(replicas, maxIndexes); i++ {
		of := map[string]any{}
		maps.Copy(of, values)
		of["BaseName"], of["Index"] = basename, symbol{expr: indexExpr, value: i}
		of["Name"], of["Namespace"] = basename+"-{{"+indexExpr+"}}", "{{.Namespace}}"
		text, _, err := t.render(file, of)
		if err != nil {
			return "", err
		}
		text = tidy(text)
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
		if len(texts) > maxVariants {
			return "", fmt.Errorf("its text has more than %d variants that depend on the index, which is too many", maxVariants)
		}
		indexes[text] = append(indexes[text], i)
	}
	if len(texts) < 2 {
		return strings.Join(texts, ""), nil
	}
	if slices.Contains(texts, "") {
		return "", fmt.Errorf("the template renders nothing for some of the %d objects", replicas)
	}
	if replicas > maxIndexes {
		return "", fmt.Errorf("its text has %d variants that depend on the index among %d objects, which is too many", len(texts), replicas)
	}
	slices.SortStableFunc(texts, func(a, b string) int { return len(indexes[a]) - len(indexes[b]) })
	var b strings.Builder
	fmt.Fprintf(&b, "{{- $i := int (%s) }}\n", indexExpr)
	branch := "if"
	for _, text := range texts[:len(texts)-1] {
		fmt.Fprintf(&b, "{{- %s has $i (list %s) }}\n%s", branch, strings.Trim(fmt.Sprint(indexes[text]), "[]"), text)
		branch = "else if"
	}
	fmt.Fprintf(&b, "{{- else }}\n%s{{- end }}\n", texts[len(texts)-1])
	return b.String(), nil
}

var blockScalar = regexp.MustCompile(`(?m)[|>][-+0-9]*\s*$`)

// tidy removes blank lines and comment lines. Text with a block scalar is only trimmed at both ends, because such lines
// may be part of the scalar.
func tidy(text string) string {
	if blockScalar.MatchString(text) {
		return strings.TrimSpace(text) + "\n"
	}
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		if t := strings.TrimSpace(line); t != "" && !strings.HasPrefix(t, "#") {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	return b.String()
}

// renderConfig renders a configuration file of kube-burner with its values. It stops when the time limit is over.
// Random functions return the same values in each import. The function env reads from values.
func renderConfig(limits *bounds.Bounds, file string, text []byte, values map[string]any) (string, error) {
	if err := limits.Late(); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	limits = limits.Another()
	functions := bounds.Functions(rand.New(rand.NewPCG(1, 1)))
	functions["env"] = func(name string) string {
		if v, ok := values[name]; ok {
			return fmt.Sprint(v)
		}
		return ""
	}
	t, err := template.New(file).Option("missingkey=error").Funcs(limits.Functions(functions)).Parse(string(text))
	if err != nil {
		return "", templateError(err)
	}
	limits.Count(t)
	var lack []string
	for _, name := range bounds.Names(string(text)) {
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

// executing matches the text that text/template inserts after the line of an error: column, file and function.
var executing = regexp.MustCompile(`:\d+: executing "[^"]*" at (<.*?>): (?:error calling \w+: )?`)

// templateError returns an error of text/template in one line. If a limit was exceeded, it omits the name of the
// function that noticed this.
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

// typeErrors matches errors of text/template about a value of a wrong type.
var typeErrors = regexp.MustCompile(`<([^>]*)>: .*(?:incompatible types for comparison|wrong type for value; expected string|len of type)`)

// textValue returns the name of a number or bool that a template uses as text, if this caused err. kube-burner reads
// values as text from environment variables, but typed from files. --set cannot know which form a configuration
// expects.
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

// ParseValues parses NAME=VALUE pairs of the flag --set. Whole numbers without leading zeros, true and false are typed,
// as in helm. Other numbers are typed only if fractions is set. All other values are strings.
func ParseValues(pairs []string, fractions bool) (map[string]any, error) {
	values := map[string]any{}
	for _, pair := range pairs {
		name, text, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--set %s: must be NAME=VALUE", pair)
		}
		n, notWhole := strconv.Atoi(text)
		f, notNumber := strconv.ParseFloat(text, 64)
		switch {
		case text == "true" || text == "false":
			values[name] = text == "true"
		case notWhole == nil && strconv.Itoa(n) == text:
			values[name] = n
		case notNumber == nil && fractions:
			values[name] = f
		default:
			values[name] = text
		}
	}
	return values, nil
}
