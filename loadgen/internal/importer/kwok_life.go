package importer

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

var exitCode = regexp.MustCompile(`exitCode: *(\d+)`)

// podStage converts a stage for pods to a setting for all pods, or to an entry of podLives for the pods that the stage
// selects.
func (k *stages) podStage(s *stage) {
	phase := lastWord(s.template, "phase:")
	inits := strings.Contains(s.template, "initContainerStatuses")
	starts := phase == "Running" || phase == "Pending" && (!inits || strings.Contains(s.template, "podIP"))
	narrow := s.narrowness() > 0
	switch {
	case s.deletes && s.deleting && narrow:
		k.newLife(s, "stop").set("stopAfter", s.delay.orAtOnce().spread())
	case s.deletes && s.deleting:
		k.stop = k.stop.plus(s.delay)
		s.into = func() string { return "stopAfter " + k.stop.spread() }
	case s.deletes || s.deleting:
		k.leaveOut(s, s.spec.at(""), "pods are deleted by requests, not by simulated nodes")
	case phase == "Running" && k.ready != nil && same(k.ready, s):
		k.leaveOut(s, s.spec.at("weight"), "all pods start as in stage %s", k.ready.name)
	case starts && narrow:
		k.leaveOut(s, s.spec.at("selector"), "all pods take the same time to start")
	case starts:
		if phase == "Running" {
			k.ready = s
		}
		k.start = k.start.plus(s.delay)
		s.into = func() string { return "podStart " + k.start.spread() }
	case phase == "" && inits && narrow:
		k.newLife(s, "init").set("init", flow("runFor", s.delay.orAtOnce().spread()))
	case phase == "" && inits:
		k.init = k.init.plus(s.delay)
		s.into = func() string { return "init runFor " + k.init.spread() }
	case phase != "Succeeded" && phase != "Failed":
		k.leaveOut(s, s.spec.at(""), "simulated nodes do not write its status")
	default:
		k.life(s, phase == "Failed")
	}
}

// life adds an entry of podLives for the pods that a stage ends. If the stage describes a pod whose init containers have failed while
// its other containers still wait, the entry ends an init container.
func (k *stages) life(s *stage, failed bool) {
	code := 0
	for _, m := range exitCode.FindAllStringSubmatch(s.template, -1) {
		code, _ = strconv.Atoi(m[1])
	}
	if failed {
		code = cmp.Or(code, 1)
	}
	l := k.newLife(s, "end")
	if s.owner != "Job" || code != 0 {
		s.item.remark(l.Node, s.templateAt, "stage %s: a pod's restartPolicy decides whether its containers start again; KWOK ends the pod", s.name)
	}
	run := l
	if failed && strings.Contains(s.template, "initContainerStatuses") && strings.Contains(s.template, "PodInitializing") {
		run = newMapping()
		l.set("init", run)
	}
	run.add("runFor", s.delay.orAtOnce().spread(), "exitCode", code, "reason", when(strings.Contains(s.template, "OOMKilled"), "OOMKilled"))
	if strings.Contains(s.template, "exitCode: {{") || strings.Contains(s.template, "reason: {{") {
		s.item.remark(l.Node, s.templateAt, "stage %s: simulated nodes do not evaluate the template of exit code and reason", s.name)
	}
}

// newLife adds an entry of podLives for the pods that a stage selects. role is the part of the pod's lifecycle that the
// stage describes: "end", "stop" or "init".
func (k *stages) newLife(s *stage, role string) *mapping {
	s.role = role
	match := flow().add("owner", s.owner)
	for _, key := range []string{"labels", "annotations"} {
		node := toNode(s.own[key])
		node.Style = yaml.FlowStyle
		match.add(key, when(len(s.own[key]) > 0, node))
	}
	l := block("name", unique(s.name, k.names), "match", when(len(match.Content) > 0, match))
	k.lives = append(k.lives, l)
	k.of[phaseName(l)] = s
	s.into = func() string { return "podLives " + fieldsText(l.Node) }
	return l
}

// fieldsText returns the fields of a mapping without the selector, such as "name a, runFor 5s".
func fieldsText(n *yaml.Node) string {
	var parts []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch key, value := n.Content[i].Value, n.Content[i+1]; {
		case key == "match":
		case value.Kind == yaml.MappingNode:
			parts = append(parts, key+" "+fieldsText(value))
		default:
			parts = append(parts, key+" "+value.Value)
		}
	}
	return strings.Join(parts, ", ")
}

// same reports whether two stages select the same pods. KWOK then uses the weights of the stages to choose one.
func same(a, b *stage) bool {
	return a.owner == b.owner && reflect.DeepEqual(a.own, b.own) && a.deleting == b.deleting
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
		share := float64(max(0, own.weight)) / float64(total)
		if even { // KWOK chooses each stage with equal probability
			share = 1 / float64(rivals)
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
	return s.deleting == other.deleting && (s.owner == "" || s.owner == other.owner) && selects(s.own["labels"], other.own["labels"]) &&
		selects(s.own["annotations"], other.own["annotations"])
}

// narrowness returns how narrow a stage's selector is: 2 for each label and annotation, and 1 for an owner.
func (s *stage) narrowness() int {
	n := 2 * (len(s.own["labels"]) + len(s.own["annotations"]))
	if s.owner != "" {
		n++
	}
	return n
}

// lastWord returns the word after the last occurrence of key in text.
func lastWord(text, key string) string {
	at := strings.LastIndex(text, "\n"+key) + 1
	if at == 0 {
		if at = strings.LastIndex(text, key); at < 0 {
			return ""
		}
	}
	words := append(strings.Fields(text[at+len(key):]), "")
	return strings.Trim(words[0], `"'`)
}
