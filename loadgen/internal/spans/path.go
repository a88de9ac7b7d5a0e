package spans

import (
	"cmp"
	"iter"
	"slices"
)

// measure sets Self of the span n and of all spans below it. It returns the number of these spans.
func measure(n *Node) int {
	count, covered, until := 1, int64(0), n.Start
	for _, c := range n.Children { // by start
		count += measure(c)
		from, to := max(c.Start, until), min(c.End, n.End)
		if to > from {
			covered += to - from
			until = to
		}
	}
	n.Self = n.Duration() - covered
	return count
}

// critical finds the critical path of a span and its descendants between two times. It walks back from the end. The
// span waited for the child that ended last. Before that child began, the span waited for the child that ended last
// until then, and so on. This is the method of "CRISP: Critical Path Analysis of Large-Scale Microservice
// Architectures" (USENIX ATC 2022).
func critical(n *Node, from, to int64) {
	from, to = max(from, n.Start), min(to, n.End)
	children := slices.Clone(n.Children)
	slices.SortStableFunc(children, func(a, b *Node) int { return cmp.Compare(b.End, a.End) })
	for _, c := range children {
		if c.Start >= to || c.End <= from || c.Duration() == 0 {
			continue
		}
		n.waited(min(c.End, to), to)
		critical(c, from, min(c.End, to))
		to = max(c.Start, from)
	}
	n.waited(from, to)
}

// waited adds the time from `from` to `to` to the critical path of the span. It does nothing if this time is empty.
func (n *Node) waited(from, to int64) {
	if to > from {
		n.Critical += to - from
		n.Path = append(n.Path, Stretch{from, to})
	}
}

// waitedFor returns the time on the critical path of the span and all spans below it.
func (n *Node) waitedFor() int64 {
	total := n.Critical
	for _, c := range n.Children {
		total += c.waitedFor()
	}
	return total
}

// All returns the spans of the tree with their depth: each span before its children.
func (t *Tree) All() iter.Seq2[int, *Node] {
	return func(yield func(int, *Node) bool) {
		var walk func(n *Node, depth int) bool
		walk = func(n *Node, depth int) bool {
			if !yield(depth, n) {
				return false
			}
			for _, c := range n.Children {
				if !walk(c, depth+1) {
					return false
				}
			}
			return true
		}
		for _, root := range t.Roots {
			if !walk(root, 0) {
				return
			}
		}
	}
}

// Extent returns the earliest start and the latest end of all spans, in nanoseconds since 1970. It ignores starts of
// zero, which are unknown.
func (t *Tree) Extent() (start, end int64) {
	for _, n := range t.All() {
		if n.Start != 0 && (start == 0 || n.Start < start) {
			start = n.Start
		}
		end = max(end, n.End)
	}
	return start, end
}
