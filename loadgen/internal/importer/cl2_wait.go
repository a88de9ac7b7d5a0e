package importer

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// selectorOf returns the labels for which the measurement's label selector requires one value. It ignores each other
// requirement, and adds a remark about it.
func (c *cl2) selectorOf(m call) map[string]string {
	text := m.text("labelSelector", "")
	all := map[string]string{}
	s, err := labels.Parse(text)
	if err != nil {
		m.item.remark(c.lastPhase(), m.at("labelSelector"), "all objects are counted, because %q is not a label selector", text)
		return nil
	}
	requirements, _ := s.Requirements()
	for _, r := range requirements {
		if values := r.Values().List(); len(values) == 1 && (r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals || r.Operator() == selection.In) {
			all[r.Key()] = values[0]
			continue
		}
		m.item.remark(c.lastPhase(), m.at("labelSelector"), "objects without %q count too", r.String())
	}
	return all
}

// notAwaited records that the run does not wait for what a measurement waits for. what names it, and the reason. key is the
// parameter that is the reason.
func (c *cl2) notAwaited(m call, key, what string, args ...any) {
	c.lose("measurement", m.id)
	m.item.remark(c.lastPhase(), m.at(key), "the run does not wait for %s", fmt.Sprintf(what, args...))
}

// finishedJobs returns the condition for WaitForFinishedJobs: all Jobs are complete or have failed.
func (c *cl2) finishedJobs(m call) []string {
	c.asked.waits = append(c.asked.waits, "jobs.batch")
	return []string{allOf("jobs.batch", c.selectorOf(m), conditionTest("Complete", "True")+" || "+conditionTest("Failed", "True"))}
}

// controlled returns the conditions for WaitForControlledPodsRunning: the pods of all controllers of a kind are
// running. If the test has deleted all these controllers, the condition is that they and their pods are gone.
func (c *cl2) controlled(m call) []string {
	kind := m.text("kind", "")
	resource := resourceOf(m.text("apiVersion", ""), kind)
	of := c.selectorOf(m)
	test := readyTest(kind)
	if kind == "Job" {
		test = "(has(o.status.ready) ? o.status.ready : 0) + (has(o.status.succeeded) ? o.status.succeeded : 0) >= o.spec.parallelism"
	}
	wanted := len(c.asked.waits)
	c.asked.waits = append(c.asked.waits, resource)
	if test == "" || !celName.MatchString(resource) {
		c.notAwaited(m, "kind", "the pods of a %s", kind)
		return nil
	}
	if updated := updatedTest(kind); updated != "" && m.flag("checkIfPodsAreUpdated", true) {
		test = fmt.Sprintf("o.status.observedGeneration == o.metadata.generation && %s && (%s)", updated, test)
	}
	left := 0
	for key, made := range c.made {
		if made.kind == kind && selects(of, made.labels) {
			left += c.replicas[key]
		}
	}
	if left > 0 {
		return []string{allOf(resource, of, test)}
	}
	c.asked.waits[wanted] = "no " + resource
	gone := []string{noneOf(resource, of)}
	for key, made := range c.made {
		if made.kind == kind && c.replicas[key] == 0 && len(of) > 0 && selects(of, made.pods) {
			c.asked.waits = append(c.asked.waits, "no pods")
			return append(gone, noneOf("pods", of))
		}
	}
	return gone
}

// counted returns the condition that at least n objects pass a test, where n is the value of the parameter key. If n is
// 0, the condition is that no object exists.
func (c *cl2) counted(m call, resource, test, key string) []string {
	want := int(m.number(key, 0))
	of := c.selectorOf(m)
	if want == 0 {
		c.asked.waits = append(c.asked.waits, "no "+resource)
		return []string{noneOf(resource, of)}
	}
	c.asked.waits = append(c.asked.waits, resource)
	return []string{fmt.Sprintf("%s >= %d", countOf(resource, of, test), want)}
}

// nodeCount returns the conditions for WaitForNodes: the number of nodes is in a range.
func (c *cl2) nodeCount(m call) []string {
	c.asked.waits = append(c.asked.waits, "nodes")
	count, of := "nodes.size()", c.selectorOf(m)
	if len(of) > 0 {
		count = countOf("nodes", of)
	}
	all := []string{fmt.Sprintf("%s >= %d", count, int(m.number("minDesiredNodeCount", 0)))}
	if m.has("maxDesiredNodeCount") {
		all = append(all, fmt.Sprintf("%s <= %d", count, int(m.number("maxDesiredNodeCount", 0))))
	}
	return all
}

// generic returns the conditions for WaitForGenericK8sObjects: a minimum number of objects with any of the successful
// or failed conditions, and a maximum number with a failed condition. Without such conditions, all objects count.
func (c *cl2) generic(m call) []string {
	m.ignore("objectGroup", "objectVersion", "objectResource", "successfulConditions", "failedConditions", "minDesiredObjectCount", "maxFailedObjectCount")
	r := m.sub("namespaceRange")
	from, to, own := r.integer("min", 1), r.integer("max", c.namespaces), r.has("basename")
	if from > 1 || to < c.namespaces || own {
		m.item.remark(c.lastPhase(), m.at("namespaceRange"), "objects in all namespaces of the run count, not only those in namespaces %d to %d", from, to)
	}
	resource := strings.TrimSuffix(m.text("objectResource", "")+"."+m.text("objectGroup", ""), ".")
	c.asked.waits = append(c.asked.waits, resource)
	switch {
	case !celName.MatchString(resource):
		c.notAwaited(m, "objectResource", "these objects: CEL cannot read the name %s", resource)
		return nil
	case scenario.IsCustom(resource) && !c.options.OwnCluster:
		c.notAwaited(m, "objectResource", "these objects: a bundled control plane has no controller of %s", resource)
		return nil
	}
	tests := func(key string) (all []string) {
		for _, one := range m.texts(key) {
			kind, status, _ := strings.Cut(one, "=")
			all = append(all, strings.Replace(conditionTest(kind, status), "o.status", "status", 1))
		}
		return all
	}
	succeeded, failed, of := tests("successfulConditions"), tests("failedConditions"), c.selectorOf(m)
	count := func(tests []string) string {
		if len(tests) == 0 {
			return countOf(resource, of)
		}
		return countOf(resource, of, "("+strings.Join(tests, " || ")+")")
	}
	waits := []string{fmt.Sprintf("%s >= %d", count(append(succeeded, failed...)), int(m.number("minDesiredObjectCount", 0)))}
	if len(failed) > 0 {
		waits = append(waits, fmt.Sprintf("%s <= %d", count(failed), int(m.number("maxFailedObjectCount", 0))))
	}
	return waits
}
