package importer

import (
	"fmt"
	"strings"
)

// labelRange selects objects of kube-burner's by labels, a range of iterations, and of replicas.
type labelRange struct {
	labels   map[string]string
	from, to int // iterations
	// Replicas, from 1; low 0: all.
	low, high int
}

// rangesOf select n objects of a template from a number on, in the order in which kube-burner makes them: iteration by
// iteration, each with so many replicas. The label of the iteration counts in steps.
func rangesOf(from, n, replicas, step int) (all []labelRange) {
	add := func(first, last, low, high int) {
		all = append(all, labelRange{from: first * step, to: last * step, low: low, high: high})
	}
	end := from + n
	first, last := from/replicas, end/replicas
	low, high := from%replicas, end%replicas // of the first and of the last, the last exclusive
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

// text is the range as a label selector.
func (r labelRange) text() string {
	parts := []string{selector(r.labels)}
	between := func(label string, low, high, least int) {
		if low == high {
			parts = append(parts, fmt.Sprintf("%s=%d", label, low))
			return
		}
		if low > least {
			parts = append(parts, fmt.Sprintf("%s>%d", label, low-1))
		}
		parts = append(parts, fmt.Sprintf("%s<%d", label, high+1))
	}
	between(iterationLabel, r.from, r.to, 0)
	if r.low > 0 {
		between(replicaLabel, r.low, r.high, 1)
	}
	return strings.Join(parts, ",")
}

// test is the range in CEL, over an object's fields.
func (r labelRange) test() string {
	var parts []string
	for _, key := range sortedKeys(r.labels) {
		parts = append(parts, fmt.Sprintf("metadata.labels[%q] == %q", key, r.labels[key]))
	}
	between := func(label string, low, high int) {
		if low == high {
			parts = append(parts, fmt.Sprintf(`metadata.labels[%q] == "%d"`, label, low))
			return
		}
		parts = append(parts, fmt.Sprintf("int(metadata.labels[%q]) >= %d", label, low), fmt.Sprintf("int(metadata.labels[%q]) <= %d", label, high))
	}
	between(iterationLabel, r.from, r.to)
	if r.low > 0 {
		between(replicaLabel, r.low, r.high)
	}
	return strings.Join(parts, " && ")
}
