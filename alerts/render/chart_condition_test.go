package render

import (
	"cmp"
	"slices"
	"strings"
)

// condition says for which sets of scraped jobs a part of the rules or dashboards remains. A condition is a list of
// sets: the part remains if the scraped jobs include all jobs of at least one set. Only minimal sets are listed. An
// empty condition never holds; a condition with the empty set always holds.
type condition [][]string

func always() condition { return condition{nil} }

// smallest returns the condition of the given sets of jobs. It drops each set that includes another set.
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

// helm returns the condition as an argument in a Helm template. The template has a variable for each job, which is
// empty if the job is not scraped.
func (c condition) helm() string {
	var sets []string
	for _, set := range c {
		sets = append(sets, call("and", variables(set)))
	}
	return call("or", sets)
}

// call returns a function call with the arguments, or the argument itself if there is only one.
func call(function string, args []string) string {
	if len(args) == 1 {
		return args[0]
	}
	return "(" + function + " " + strings.Join(args, " ") + ")"
}

func variables(jobs []string) (all []string) {
	for _, job := range jobs {
		all = append(all, variable(job))
	}
	return all
}

// variable returns the name of the variable of a job in Helm templates, such as $kubeScheduler.
func variable(job string) string {
	words := strings.Split(job, "-")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return "$" + strings.Join(words, "")
}
