package importer

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// podStage converts a stage for pods to a setting for all pods, or to an entry of podLives for the pods that the stage
// selects.
func (k *stages) podStage(s *stage) {
	phase := lastWord(s.template, "phase:")
	inits := strings.Contains(s.template, "initContainerStatuses")
	code, _ := strconv.Atoi(lastMatch(exitCode, s.template))
	narrow := s.narrowness() > 0
	switch {
	case s.deletes && s.deleting && narrow:
		l := k.newLife(s, "stop")
		l.set("stopAfter", s.delay.orAtOnce().spread())
		return
	case s.deletes && s.deleting:
		k.stop = k.stop.plus(s.delay)
		return
	case s.deletes || s.deleting:
		k.leaveOut(s, s.spec.at(""), "pods are deleted by requests, not by simulated nodes")
		return
	case phase == "Running" || phase == "Pending" && !inits || phase == "Pending" && strings.Contains(s.template, "podIP"):
		switch {
		case k.ready != nil && phase == "Running" && same(k.ready, s):
			k.leaveOut(s, s.spec.at("weight"), "all pods start as in stage %s", k.ready.name)
			return
		case narrow:
			k.leaveOut(s, s.spec.at("selector"), "all pods take the same time to start")
			return
		}
		if phase == "Running" {
			k.ready = s
		}
		k.start = k.start.plus(s.delay)
		return
	case phase == "" && inits && narrow:
		l := k.newLife(s, "init")
		l.set("init", flow("runFor", s.delay.orAtOnce().spread()))
		return
	case phase == "" && inits:
		k.init = k.init.plus(s.delay)
		return
	case phase != "Succeeded" && phase != "Failed":
		k.leaveOut(s, s.spec.at(""), "simulated nodes do not write its status")
		return
	}
	if phase == "Failed" && code == 0 {
		code = 1
	}
	k.life(s, code, phase == "Failed" && failsInit(s.template))
}

// failsInit reports whether a status template describes a pod whose init containers have failed while its other
// containers still wait.
func failsInit(template string) bool {
	return strings.Contains(template, "initContainerStatuses") && strings.Contains(template, "PodInitializing")
}

// life adds an entry of podLives for the pods that a stage ends. code is the exit code. init means that an init
// container ends with it, not a regular container.
func (k *stages) life(s *stage, code int, init bool) {
	l := k.newLife(s, "end")
	if s.owner != "Job" || code != 0 {
		s.item.remark(l.Node, s.templateAt, "stage %s: a pod's restartPolicy decides whether its containers start again; KWOK ends the pod", s.name)
	}
	run := l
	if init {
		run = newMapping()
		l.set("init", run)
	}
	run.set("runFor", s.delay.orAtOnce().spread())
	if code != 0 {
		run.set("exitCode", code)
	}
	if strings.Contains(s.template, "OOMKilled") {
		run.set("reason", "OOMKilled")
	}
	if strings.Contains(s.template, "exitCode: {{") || strings.Contains(s.template, "reason: {{") {
		s.item.remark(l.Node, s.templateAt, "stage %s: simulated nodes do not evaluate the template of exit code and reason", s.name)
	}
}

// newLife adds an entry of podLives for the pods that a stage selects. role is the part of the pod's lifecycle that the
// stage describes: "end", "stop" or "init".
func (k *stages) newLife(s *stage, role string) *mapping {
	s.role = role
	l := newMapping()
	l.set("name", unique(s.name, k.names))
	if match := s.match(); len(match.Content) > 0 {
		l.set("match", match)
	}
	k.lives = append(k.lives, l)
	k.of[phaseName(l)] = s
	return l
}

// match returns the stage's pod selector in the format of podLives.
func (s *stage) match() *mapping {
	m := flow()
	if s.owner != "" {
		m.set("owner", s.owner)
	}
	for i, of := range []map[string]string{s.labels, s.annotations} {
		if len(of) > 0 {
			node := toNode(of)
			node.Style = yaml.FlowStyle
			m.set([]string{"labels", "annotations"}[i], node)
		}
	}
	return m
}

// same reports whether two stages select the same pods. KWOK then uses the weights of the stages to choose one.
func same(a, b *stage) bool {
	return a.owner == b.owner && maps.Equal(a.labels, b.labels) && maps.Equal(a.annotations, b.annotations) && a.deleting == b.deleting
}

// shares converts the weights of stages to fractions of pods (shares) in podLives. It sorts the entries from narrow to
// wide selectors. If several stages select a pod, the share of the narrowest is its fraction of the total weight of
// these stages. The other pods get the next entry that matches.
func (k *stages) shares() {
	stageOf := func(l *mapping) *stage { return k.of[phaseName(l)] }
	slices.SortStableFunc(k.lives, func(a, b *mapping) int { return stageOf(b).narrowness() - stageOf(a).narrowness() })
	var never []string
	for _, l := range k.lives {
		own := stageOf(l)
		total, rivals, even := 0, 0, true
		for _, other := range k.lives {
			if o := stageOf(other); o.role == own.role && o.selectsAll(own) {
				total += max(0, o.weight)
				rivals++
				even = even && o.weight <= 0
			}
		}
		share := 1.0
		switch {
		case even: // KWOK chooses each stage with equal probability
			share = 1 / float64(rivals)
		default:
			share = float64(max(0, own.weight)) / float64(total)
		}
		switch {
		case share == 0:
			never = append(never, phaseName(l))
			k.top = append(k.top, fmt.Sprintf("Stage %s has weight 0 and others do not: KWOK never selects it.", own.name))
		case share < 1:
			l.set("share", fmt.Sprintf("%.4g%%", 100*share))
		}
		if own.role != "end" && slices.ContainsFunc(k.lives, func(other *mapping) bool { return stageOf(other).role != own.role }) {
			own.item.remark(l.Node, own.spec.at(""), "stage %s: a pod follows one entry of podLives; pods that an earlier entry selects do not follow this one", own.name)
		}
	}
	k.lives = slices.DeleteFunc(k.lives, func(l *mapping) bool { return slices.Contains(never, phaseName(l)) })
}

// selectsAll reports whether a stage selects every pod that another stage selects.
func (s *stage) selectsAll(other *stage) bool {
	return s.deleting == other.deleting && (s.owner == "" || s.owner == other.owner) && selects(s.labels, other.labels) && selects(s.annotations, other.annotations)
}

// narrowness returns how narrow a stage's selector is: 2 for each label and annotation, and 1 for an owner.
func (s *stage) narrowness() int {
	n := 2 * (len(s.labels) + len(s.annotations))
	if s.owner != "" {
		n++
	}
	return n
}

// lastWord returns the word after the last occurrence of key in text.
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
