package importer

import (
	"fmt"
	"strings"
)

// labelRange selects objects by labels: by the labels in labels, and by a range of iterations and of replicas.
type labelRange struct {
	labels   map[string]string
	from, to int // first and last iteration
	// low and high are the first and last replica, counted from 1. If low is 0, all replicas match.
	low, high int
}

// rangesOf returns the ranges that select n objects of a template, starting with object number from. Objects are
// numbered in the order of their creation: iteration by iteration, with the given number of replicas in each. step is
// the difference between consecutive iteration labels.
func rangesOf(from, n, replicas, step int) (all []labelRange) {
	add := func(first, last, low, high int) {
		all = append(all, labelRange{from: first * step, to: last * step, low: low, high: high})
	}
	end := from + n
	first, last := from/replicas, end/replicas
	low, high := from%replicas, end%replicas // in the first and in the last iteration; high is exclusive
	if first == last {
		add(first, first, low+1, high)
		return all
	}
	if low > 0 {
		add(first, first, low+1, replicas)
		first++
	}
	if first < last {
		add(first, last-1, 0, 0)
	}
	if high > 0 {
		add(last, last, 1, high)
	}
	return all
}

// text formats the range as a label selector.
func (r labelRange) text() string {
	parts := []string{selector(r.labels)}
	r.bounds(func(label string, low, high, least int) {
		switch {
		case low == high:
			parts = append(parts, fmt.Sprintf("%s=%d", label, low))
			return
		case low > least:
			parts = append(parts, fmt.Sprintf("%s>%d", label, low-1))
		}
		parts = append(parts, fmt.Sprintf("%s<%d", label, high+1))
	})
	return strings.Join(parts, ",")
}

// test formats the range as a CEL expression over an object's fields.
func (r labelRange) test() string {
	parts := labelTests(r.labels)
	r.bounds(func(label string, low, high, _ int) {
		if low == high {
			parts = append(parts, fmt.Sprintf(`metadata.labels[%q] == "%d"`, label, low))
			return
		}
		parts = append(parts, fmt.Sprintf("int(metadata.labels[%q]) >= %d", label, low), fmt.Sprintf("int(metadata.labels[%q]) <= %d", label, high))
	})
	return strings.Join(parts, " && ")
}

// bounds calls use for each label whose value is in a range. least is the least value that the label has.
func (r labelRange) bounds(use func(label string, low, high, least int)) {
	use(iterationLabel, r.from, r.to, 0)
	if r.low > 0 {
		use(replicaLabel, r.low, r.high, 1)
	}
}
