package render

import (
	"cmp"
	"slices"
	"strings"
)

// condition says for which sets of scraped jobs something remains: for every set that includes
// one of its sets. It holds only the smallest sets. An empty condition means never, a set
// without jobs always.
type condition [][]string

// always is the condition of parts that depend on no job.
func always() condition { return condition{nil} }

// smallest is the condition of sets of jobs: a set that includes another says nothing.
func smallest(sets [][]string) condition {
	sets = slices.Clone(sets)
	slices.SortFunc(sets, func(a, b []string) int { return cmp.Or(len(a)-len(b), slices.Compare(a, b)) })
	var c condition
	for _, set := range sets {
		includes := func(other []string) bool {
			return !slices.ContainsFunc(other, func(job string) bool { return !slices.Contains(set, job) })
		}
		if !slices.ContainsFunc(c, includes) {
			c = append(c, set)
		}
	}
	return c
}

func (c condition) or(d condition) condition { return smallest(slices.Concat(c, d)) }

func (c condition) and(d condition) condition {
	var sets [][]string
	for _, a := range c {
		for _, b := range d {
			both := slices.Concat(a, b)
			slices.Sort(both)
			sets = append(sets, slices.Compact(both))
		}
	}
	return smallest(sets)
}

// isAlways reports whether the condition holds for any set of scraped jobs.
func (c condition) isAlways() bool { return len(c) > 0 && len(c[0]) == 0 }

// helm is the condition as an argument in a Helm template, in which the variable of a job is
// its name, or empty.
func (c condition) helm() string {
	var sets []string
	for _, set := range c {
		sets = append(sets, call("and", variables(set)))
	}
	return call("or", sets)
}

// call is the call of a function of several arguments, or the only argument.
func call(function string, args []string) string {
	if len(args) == 1 {
		return args[0]
	}
	return "(" + function + " " + strings.Join(args, " ") + ")"
}

// variables are the names of jobs' variables in Helm templates.
func variables(jobs []string) (all []string) {
	for _, job := range jobs {
		all = append(all, variable(job))
	}
	return all
}

// variable is the variable of a job: $kubeScheduler.
func variable(job string) string {
	words := strings.Split(job, "-")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return "$" + strings.Join(words, "")
}
