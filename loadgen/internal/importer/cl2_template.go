package importer

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/stormglass/stormglass/internal/userfile"
	bounds "github.com/stormglass/stormglass/loadgen/internal/template"
)

// cl2Templates renders the template files of a ClusterLoader2 test.
type cl2Templates struct {
	files  fs.FS
	limits *bounds.Bounds // for the whole import
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

// decideByValues changes the conditions of if, with and range actions: they use the values of symbols instead of the
// symbols.
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

// maxIndexes is the maximum number of indexes for which object renders the template to find differences between
// objects.
const maxIndexes = 1000

// maxVariants is the maximum number of different texts of a template that object compares and returns.
const maxVariants = 20

// indexExpr returns the template expression that computes an object's index from the load's replica number. Replica
// numbers start at 1, indexes at first.
func indexExpr(first int) string {
	switch first {
	case 0:
		return "sub .Replica 1"
	case 1:
		return ".Replica"
	}
	return fmt.Sprintf("add .Replica %d", first-1)
}

// object returns the template with which a load creates the objects of a bundle, with indexes from first. Values that
// depend on the index become template expressions. If the structure of an object depends on the index, the template
// contains each variant and selects one by the index.
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
