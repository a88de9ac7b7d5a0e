package render

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// clusterLabel is the label for the cluster in the built-in rules and dashboards.
const clusterLabel = "cluster"

// text replaces the job names and the cluster label in an expression.
func (r *renderer) text(expr string) string {
	expr = jobMatcher.ReplaceAllStringFunc(expr, func(m string) string {
		part := jobMatcher.FindStringSubmatch(m)
		return part[1] + part[2] + `"` + r.jobs(part[2], part[3]) + `"`
	})
	if r.ClusterLabel == clusterLabel {
		return expr
	}
	expr = grouping.ReplaceAllStringFunc(expr, func(list string) string { return clusterWord.ReplaceAllString(list, r.ClusterLabel) })
	expr = clusterMatcher.ReplaceAllString(expr, r.ClusterLabel+"$1")
	return clusterValues.ReplaceAllString(expr, "${1}"+r.ClusterLabel+")")
}

var (
	jobMatcher     = regexp.MustCompile(`(\bjob\s*)(=~|!~|!=|=)\s*"([^"]*)"`)
	grouping       = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^()]*\)`)
	clusterWord    = regexp.MustCompile(`\bcluster\b`)
	clusterMatcher = regexp.MustCompile(`\bcluster(\s*(?:=~|!~|!=|=)\s*")`)
	// clusterValues matches the query of a Grafana variable for clusters.
	clusterValues = regexp.MustCompile(`^(label_values\(.*,\s*)cluster\)$`)
)

// jobs replaces the job names in the value of a job matcher with the installation's job names, and removes left-out
// jobs. If no job remains, it returns value unchanged.
func (r *renderer) jobs(op, value string) string {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	var names []string
	for _, ours := range strings.Split(value, "|") {
		theirs := r.job(ours)
		switch {
		case theirs == "":
		case op == "=~" || op == "!~":
			names = append(names, quoted.Replace(regexp.QuoteMeta(theirs)))
		default:
			names = append(names, quoted.Replace(theirs))
		}
	}
	if len(names) == 0 {
		return value
	}
	return strings.Join(names, "|")
}

// leftOut reports whether a selector cannot match any series in the installation. Either the installation scrapes none
// of the selector's jobs, or the bundle has no recording rule for the selected series.
func (r *renderer) leftOut(s *parser.VectorSelector) bool {
	if r.gone[s.Name] {
		return true
	}
	for _, m := range s.LabelMatchers {
		if m.Name == "job" && (m.Type.String() == "=" || m.Type.String() == "=~") {
			return !slices.ContainsFunc(strings.Split(m.Value, "|"), r.scraped)
		}
	}
	return false
}

// prune removes the parts of an expression that cannot match any series (see leftOut). alive is false if no part
// remains.
func (r *renderer) prune(e parser.Expr) (left parser.Expr, alive bool) {
	switch e := e.(type) {
	case *parser.VectorSelector:
		return e, !r.leftOut(e)
	case *parser.MatrixSelector:
		_, alive = r.prune(e.VectorSelector)
		return e, alive
	case *parser.SubqueryExpr:
		e.Expr, alive = r.prune(e.Expr)
		return e, alive
	case *parser.ParenExpr:
		e.Expr, alive = r.prune(e.Expr)
		return e, alive
	case *parser.UnaryExpr:
		e.Expr, alive = r.prune(e.Expr)
		return e, alive
	case *parser.AggregateExpr:
		e.Expr, alive = r.prune(e.Expr)
		return e, alive
	case *parser.Call:
		alive = true
		for i := range e.Args {
			pruned, ok := r.prune(e.Args[i])
			e.Args[i], alive = pruned, alive && ok
		}
		return e, alive
	case *parser.BinaryExpr:
		return r.pruneBinary(e)
	}
	return e, true
}

func (r *renderer) pruneBinary(e *parser.BinaryExpr) (parser.Expr, bool) {
	left, leftAlive := r.prune(e.LHS)
	right, rightAlive := r.prune(e.RHS)
	e.LHS, e.RHS = left, right
	switch e.Op {
	case parser.LOR:
		switch {
		case leftAlive && rightAlive:
			return e, true
		case rightAlive && selects(right): // drop the right operand if it reads no series, as in "or vector(0)"
			return right, true
		}
		return left, leftAlive
	case parser.LUNLESS:
		if leftAlive && !rightAlive {
			return left, true
		}
		return e, leftAlive
	}
	return e, leftAlive && rightAlive
}

// selects reports whether an expression reads series.
func selects(e parser.Expr) bool {
	found := false
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		_, ok := n.(*parser.VectorSelector)
		found = found || ok
		return nil
	})
	return found
}

// expr renders the expression of a rule. alive is false if the expression cannot match any series (see leftOut).
func (r *renderer) expr(text string) (out string, alive bool, err error) {
	parsed, err := r.parser.ParseExpr(text)
	if err != nil {
		return "", false, err
	}
	whole := parsed.String()
	pruned, alive := r.prune(parsed)
	if !alive {
		return "", false, nil
	}
	if pruned.String() != whole {
		text = pruned.Pretty(0) + "\n"
	}
	if text, err = r.selected(text, text); err != nil {
		return "", false, err
	}
	return r.text(text), true, nil
}

// selected inserts Options.Selector into each selector of a scraped series in an expression. parsable is the expression
// as valid PromQL, with the selectors at the same positions.
func (r *renderer) selected(text, parsable string) (string, error) {
	if r.Selector == "" {
		return text, nil
	}
	parsed, err := r.parser.ParseExpr(parsable)
	if err != nil {
		return "", err
	}
	at := map[int]string{} // text to insert, by byte offset in the expression
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok || strings.Contains(s.Name, ":") || strings.HasPrefix(s.Name, "ALERTS") {
			return nil
		}
		end := int(s.PosRange.Start)
		for end < len(text) && isNameByte(text[end]) {
			end++
		}
		open := end
		for open < len(text) && (text[open] == ' ' || text[open] == '\n') {
			open++
		}
		if open < len(text) && text[open] == '{' {
			at[open+1] = r.Selector + ", "
		} else {
			at[end] = "{" + r.Selector + "}"
		}
		return nil
	})
	var b strings.Builder
	for i := 0; i <= len(text); i++ {
		b.WriteString(at[i])
		if i < len(text) {
			b.WriteByte(text[i])
		}
	}
	if _, err := r.parser.ParseExpr(masked(b.String())); err != nil {
		return "", fmt.Errorf("add the selector %s to an expression: %w", r.Selector, err)
	}
	return b.String(), nil
}

func isNameByte(c byte) bool {
	return c == '_' || c == ':' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// masked returns a dashboard query as valid PromQL of the same length: it replaces Grafana's interval variables with durations.
func masked(expr string) string {
	for _, name := range []string{"$__rate_interval", "$__interval", "$__range"} {
		expr = strings.ReplaceAll(expr, name, strings.Repeat("0", len(name)-2)+"5m")
	}
	return expr
}
