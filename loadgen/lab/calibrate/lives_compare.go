package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

type lived struct {
	statuses []line
	events   map[string]int
	requests counts
}

// line is a status of a pod as text. `after` is the number of seconds between the pod's first status and this status.
type line struct {
	after float64
	text  string
}

// linesOf returns a line for each status of a pod that differs from the previous status.
func linesOf(all []stamped) (lines []line) {
	for _, s := range all {
		text := describe(s.pod)
		if len(lines) == 0 || lines[len(lines)-1].text != text {
			lines = append(lines, line{s.at.Sub(all[0].at).Seconds(), text})
		}
	}
	return lines
}

// shown lists the pod conditions that the function describe prints, with short names.
var shown = []struct {
	kind corev1.PodConditionType
	name string
}{
	{corev1.PodReadyToStartContainers, "sandbox"}, {corev1.PodInitialized, "initialized"}, {corev1.ContainersReady, "containers"},
	{corev1.PodReady, "ready"}, {corev1.DisruptionTarget, "disrupted"},
}

// describe returns the status of a pod in one line: the phase, the conditions that are True or have a reason, and
// each container with its state, restarts and last termination.
func describe(p *corev1.Pod) string {
	parts := []string{string(p.Status.Phase)}
	if p.Status.Reason != "" {
		parts[0] += "/" + p.Status.Reason
	}
	if p.DeletionTimestamp != nil {
		parts[0] += " (deleted)"
	}
	var conditions []string
	for _, s := range shown {
		for _, c := range p.Status.Conditions {
			switch {
			case c.Type != s.kind:
			case c.Status == corev1.ConditionTrue && c.Reason == "":
				conditions = append(conditions, s.name)
			case c.Status == corev1.ConditionTrue:
				conditions = append(conditions, s.name+":"+c.Reason)
			case c.Reason != "":
				conditions = append(conditions, "-"+s.name+":"+c.Reason)
			}
		}
	}
	parts = append(parts, "["+strings.Join(conditions, " ")+"]")
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		parts = append(parts, c.Name+"="+describeContainer(c))
	}
	return strings.Join(parts, " ")
}

func describeContainer(c corev1.ContainerStatus) string {
	text := "none"
	switch {
	case c.State.Waiting != nil:
		text = c.State.Waiting.Reason
	case c.State.Terminated != nil:
		text = endOf(c.State.Terminated)
	case c.State.Running != nil:
		text = "running"
		if c.Started != nil && *c.Started {
			text += "+started"
		}
	}
	if c.Ready {
		text += "+ready"
	}
	if c.RestartCount > 0 {
		text += fmt.Sprintf(" x%d", c.RestartCount)
	}
	if last := c.LastTerminationState.Terminated; last != nil {
		text += " after " + endOf(last)
	}
	return text
}

func endOf(t *corev1.ContainerStateTerminated) string {
	return fmt.Sprintf("%s(%d)", t.Reason, t.ExitCode)
}

// eventsOf returns the number of Events about a pod, by type, reason and container.
func eventsOf(all []corev1.Event, pod string) map[string]int {
	of := map[string]int{}
	for _, e := range all {
		if e.InvolvedObject.Name == pod {
			of[strings.TrimSpace(e.Type+" "+e.Reason+" "+e.InvolvedObject.FieldPath)] += int(max(e.Count, 1))
		}
	}
	return of
}

// podOf returns the name of the pod that a request is about, or "" if it is not about a pod.
func podOf(e *auditv1.Event) string {
	switch {
	case e.ObjectRef == nil:
		return ""
	case e.ObjectRef.Resource == "pods":
		return e.ObjectRef.Name
	case e.ObjectRef.Resource != "events":
		return ""
	case e.Verb == "create" && e.RequestObject != nil:
		var event corev1.Event
		if json.Unmarshal(e.RequestObject.Raw, &event) == nil && event.InvolvedObject.Kind == "Pod" {
			return event.InvolvedObject.Name
		}
		return ""
	}
	if i := strings.LastIndexByte(e.ObjectRef.Name, '.'); i > 0 {
		return e.ObjectRef.Name[:i]
	}
	return ""
}

// pair is a status of the real pod, the simulated pod or both. The line of a pod that did not have the status is nil.
type pair struct{ real, simulated *line }

// align returns the statuses of both pods in order. It pairs as many equal statuses as possible (longest common
// subsequence).
func align(real, simulated []line) (pairs []pair) {
	common := make([][]int, len(real)+1) // common[i][j] is the length of the subsequence for real[i:] and simulated[j:]
	for i := range common {
		common[i] = make([]int, len(simulated)+1)
	}
	for i := len(real) - 1; i >= 0; i-- {
		for j := len(simulated) - 1; j >= 0; j-- {
			if real[i].text == simulated[j].text {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(real) || j < len(simulated) {
		switch {
		case i < len(real) && j < len(simulated) && real[i].text == simulated[j].text:
			pairs = append(pairs, pair{&real[i], &simulated[j]})
			i, j = i+1, j+1
		case j == len(simulated) || i < len(real) && common[i+1][j] >= common[i][j+1]:
			pairs = append(pairs, pair{&real[i], nil})
			i++
		default:
			pairs = append(pairs, pair{nil, &simulated[j]})
			j++
		}
	}
	return pairs
}

// printLife prints the comparison of a case. It returns 1 if the pods differ in a status or in an Event, otherwise 0.
func printLife(to io.Writer, says string, real, simulated lived) (off int) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\n  real\tsimulated\t\n", says)
	at := func(l *line) string {
		if l == nil {
			off = 1
			return "-"
		}
		return fmt.Sprintf("%.1f s", l.after)
	}
	for _, p := range align(real.statuses, simulated.statuses) {
		text := p.real
		if text == nil {
			text = p.simulated
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", at(p.real), at(p.simulated), text.text)
	}
	for _, key := range union(real.events, simulated.events) {
		if real.events[key] == 0 || simulated.events[key] == 0 {
			off = 1
		}
		fmt.Fprintf(w, "  %d\t%d\tEvents %s\n", real.events[key], simulated.events[key], key)
	}
	for _, key := range union(real.requests, simulated.requests) {
		fmt.Fprintf(w, "  %d\t%d\t%s\n", real.requests[key], simulated.requests[key], key)
	}
	fmt.Fprintln(w)
	_ = w.Flush() // to standard output
	return off
}

func union[M ~map[string]int](a, b M) []string {
	all := maps.Clone(a)
	if all == nil {
		all = M{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}
