package importer

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// podStage finds out which part of a pod's life a stage is.
func (k *stages) podStage(s *stage) {
	phase := lastWord(s.template, "phase:")
	inits := strings.Contains(s.template, "initContainerStatuses")
	code, _ := strconv.Atoi(lastMatch(exitCode, s.template))
	switch {
	case s.deletes && s.deleting:
		k.stop = k.stop.plus(s.delay)
		return
	case s.deletes || s.deleting:
		s.item.remark(nil, s.spec.at(""), "stage %s: pods are deleted by requests, and not by their nodes", s.name)
		return
	case phase == "Running" || phase == "Pending" && !inits || phase == "Pending" && strings.Contains(s.template, "podIP"):
		if k.ready != nil && phase == "Running" && same(k.ready, s) {
			s.item.remark(nil, s.spec.at("weight"), "stage %s: pods start in one way, that of stage %s", s.name, k.ready.name)
			return
		}
		if phase == "Running" {
			k.ready = s
		}
		k.start = k.start.plus(s.delay)
		return
	case phase == "" && inits:
		k.init = k.init.plus(s.delay)
		return
	case phase != "Succeeded" && phase != "Failed":
		s.item.remark(nil, s.spec.at(""), "stage %s: a status of its own is not written", s.name)
		return
	}
	if phase == "Failed" && code == 0 {
		code = 1
	}
	k.life(s, code, phase == "Failed" && failsInit(s.template))
}

// failsInit reports whether a status is of init containers that failed: the containers still wait.
func failsInit(template string) bool {
	return strings.Contains(template, "initContainerStatuses") && strings.Contains(template, "PodInitializing")
}

// life adds the pods that end by a stage.
func (k *stages) life(s *stage, code int, init bool) {
	l := newMapping()
	l.set("name", unique(s.name, k.names))
	if match := s.match(); len(match.Content) > 0 {
		l.set("match", match)
	}
	after := s.delay
	if after.to == 0 {
		after = span{time.Millisecond, time.Millisecond} // at once
	}
	run := l
	if init {
		run = newMapping()
		l.set("init", run)
	}
	run.set("runFor", after.spread())
	if code != 0 {
		run.set("exitCode", code)
	}
	if strings.Contains(s.template, "OOMKilled") {
		run.set("reason", "OOMKilled")
	}
	if strings.Contains(s.template, "exitCode: {{") || strings.Contains(s.template, "reason: {{") {
		s.item.remark(l.Node, s.templateAt, "stage %s: exit code and reason are not drawn from the template", s.name)
	}
	k.lives = append(k.lives, l)
}

// match is the selection of pods.
func (s *stage) match() *mapping {
	m := flow()
	if s.owner != "" {
		m.set("owner", s.owner)
	}
	for key, of := range map[string]map[string]string{"labels": s.labels, "annotations": s.annotations} {
		if len(of) > 0 {
			node := toNode(of)
			node.Style = yaml.FlowStyle
			m.set(key, node)
		}
	}
	return m
}

// same reports whether two stages are of the same pods, so that one is drawn by weight.
func same(a, b *stage) bool {
	return a.owner == b.owner && maps.Equal(a.labels, b.labels) && maps.Equal(a.annotations, b.annotations) && a.deleting == b.deleting
}

// shares draws the lives of the same pods by the weights of their stages, and puts narrower ones first.
func (k *stages) shares() {
	ends := map[string]*stage{}
	for _, s := range k.all {
		ends[nameOf(s.name)] = s
	}
	stageOf := func(l *mapping) *stage { return ends[phaseName(l)] }
	slices.SortStableFunc(k.lives, func(a, b *mapping) int { return stageOf(b).narrowness() - stageOf(a).narrowness() })
	for _, l := range k.lives {
		total := 0
		for _, other := range k.lives {
			if same(stageOf(l), stageOf(other)) {
				total += max(1, stageOf(other).weight)
			}
		}
		if w := max(1, stageOf(l).weight); w < total {
			l.set("share", fmt.Sprintf("%.4g%%", 100*float64(w)/float64(total)))
		}
	}
}

// narrowness orders stages by how much they ask of pods.
func (s *stage) narrowness() int {
	n := 2 * (len(s.labels) + len(s.annotations))
	if s.owner != "" {
		n++
	}
	return n
}

// lastWord is the word after the last occurrence of a key in a text.
func lastWord(text, key string) string {
	at := strings.LastIndex(text, "\n"+key)
	if at < 0 {
		at = strings.LastIndex(text, key)
		if at < 0 {
			return ""
		}
		at--
	}
	words := strings.Fields(text[at+1+len(key):])
	if len(words) == 0 {
		return ""
	}
	return strings.Trim(words[0], `"'`)
}

func lastMatch(form *regexp.Regexp, text string) string {
	all := form.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}
