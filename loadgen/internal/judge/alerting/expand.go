package alerting

import (
	"regexp"
	"slices"
	"strconv"
	"text/template/parse"
)

// maxTemplate is the maximum size, in bytes, of a template that is expanded; a larger template is shown unchanged. The
// limit also bounds the text that one call of a function can write.
const maxTemplate = 2 << 10

// cheap returns a template that is cheap to expand: text itself or, if expanding text may be expensive, a template that
// only writes text unchanged. Prometheus expands the templates in labels and annotations without limits, so a short
// template can need any amount of memory, for example by doubling a string repeatedly.
func cheap(text string) string {
	tree := parse.New("")
	tree.Mode = parse.SkipFuncCheck
	// variables declares the variables of Prometheus, so that templates that use them parse.
	const variables = "{{$labels := 0}}{{$externalLabels := 0}}{{$externalURL := 0}}{{$value := 0}}"
	if len(text) <= maxTemplate {
		_, err := tree.Parse(variables+text, "", "", map[string]*parse.Tree{})
		if err == nil && tree.Root != nil && len(tree.Root.Nodes) >= 4 && cheapNodes(tree.Root.Nodes[4:]) {
			return text
		}
	}
	return "{{" + strconv.Quote(text) + "}}"
}

func cheapAll(texts map[string]string) map[string]string {
	all := map[string]string{}
	for name, text := range texts {
		all[name] = cheap(text)
	}
	return all
}

// cheapNodes reports whether the nodes contain no loops, and each action calls at most one function that can lengthen
// text. The value of a {{with}} must call no such function, because nested {{with}} actions would multiply the length.
func cheapNodes(nodes []parse.Node) bool {
	lists := func(b *parse.BranchNode, calls int) bool {
		return lengthening(b.Pipe) <= calls && cheapNodes(b.List.Nodes) && (b.ElseList == nil || cheapNodes(b.ElseList.Nodes))
	}
	return !slices.ContainsFunc(nodes, func(n parse.Node) bool {
		switch n := n.(type) {
		case *parse.TextNode, *parse.CommentNode:
			return false
		case *parse.ActionNode:
			return lengthening(n.Pipe) > 1
		case *parse.IfNode:
			return !lists(&n.BranchNode, 1)
		case *parse.WithNode:
			return !lists(&n.BranchNode, 0)
		}
		return true
	})
}

// wide matches a printf format that may have a large width.
var wide = regexp.MustCompile(`\*|[0-9]{4}`)

// lengthening counts the function calls in a pipeline that may return text longer than their arguments. If the pipeline
// declares variables, or calls printf with an unknown or large width, it returns 2 or more, which is too many.
func lengthening(p *parse.PipeNode) (calls int) {
	calls = 2 * len(p.Decl)
	for _, c := range p.Cmds {
		for i, arg := range c.Args {
			if chain, ok := arg.(*parse.ChainNode); ok {
				arg = chain.Node
			}
			switch arg := arg.(type) {
			case *parse.PipeNode:
				calls += lengthening(arg)
			case *parse.IdentifierNode:
				switch arg.Ident {
				case "print", "println", "html", "js", "urlquery", "urlQueryEscape", "graphLink", "tableLink", "reReplaceAll":
					calls++
				case "printf":
					calls++
					if i+1 == len(c.Args) {
						return 2
					}
					if format, ok := c.Args[i+1].(*parse.StringNode); !ok || wide.MatchString(format.Text) {
						return 2
					}
				}
			}
		}
	}
	return calls
}
