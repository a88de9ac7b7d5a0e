package importer

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

type stage struct {
	spec *fields
	name string
	item *item

	kind       string // kind of the resource
	delay      span
	weight     int
	deletes    bool
	template   string // template of the status that the stage writes
	templateAt Remark
	own        map[string]map[string]string // required labels and annotations, by "labels" or "annotations" and by key
	owner      string                       // required kind of the pods' owner; empty for any
	deleting   bool                         // whether the stage selects pods that are being deleted
	unselected []Remark                     // parts of the selector that scenarios do not support
	role       string                       // part of the pod's lifecycle: "end", "stop" or "init" (see newLife)
	untilGrace bool                         // whether the delay can last until the grace period of a pod ends
	lost       []Remark                     // effects of the stage that simulated nodes do not have
	into       func() string                // returns the scenario field that contains the delay, as text; may be nil
}

func newStage(f *fields, item *item) *stage {
	spec := f.sub("spec")
	s := &stage{spec: spec, name: f.sub("metadata").text("name", "stage"), item: item, own: map[string]map[string]string{"labels": {}, "annotations": {}}}
	ref := spec.sub("resourceRef")
	s.kind = ref.text("kind", "")
	if group := ref.text("apiGroup", "v1"); group != "v1" {
		s.kind += " of " + group
	}
	s.weight = spec.integer("weight", 0)
	d := spec.sub("delay")
	milliseconds := func(key string) time.Duration {
		v := d.number(key, 0)
		if most := float64(maxLength / time.Millisecond); v < 0 || v > most {
			d.fail(key, "%g is not a valid delay (from 0 to %.0f, which is 24h)", v, most)
			return 0
		}
		return time.Duration(v * float64(time.Millisecond))
	}
	s.delay = span{milliseconds("durationMilliseconds"), milliseconds("durationMilliseconds")}
	if d.has("jitterDurationMilliseconds") {
		jitter := milliseconds("jitterDurationMilliseconds")
		s.delay = span{min(s.delay.from, jitter), jitter}
	}
	if d.sub("jitterDurationFrom").text("expressionFrom", "") == ".metadata.deletionTimestamp" {
		s.untilGrace = true
		s.delay.to = max(s.delay.from, gracePeriod)
	}
	s.effects()
	s.selector()
	return s
}

// gracePeriod is the Kubernetes default for a pod's terminationGracePeriodSeconds.
const gracePeriod = 30 * time.Second

// effects reads which changes the stage makes to an object.
func (s *stage) effects() {
	next := s.spec.sub("next")
	s.deletes = next.flag("delete", false)
	template := func(f *fields, key string) {
		if f.has(key) {
			s.templateAt = f.at(key)
			s.template += "\n" + f.text(key, "")
		}
	}
	template(next, "statusTemplate")
	steps := next.list("patches")
	for _, step := range s.spec.list("steps") {
		s.deletes = s.deletes || step.flag("delete", false)
		if step.has("patch") {
			steps = append(steps, step.sub("patch"))
		}
		s.event(step)
	}
	for _, patch := range steps {
		template(patch, "template")
		patch.ignore("subresource", "root", "type")
	}
	next.ignore("patches")
	s.event(next)
	if of := next.text("statusSubresource", "status"); of != "status" {
		s.lost = append(s.lost, next.at("statusSubresource"))
	}
}

// event reads the Event of a stage or step. Simulated nodes post the Events of a kubelet.
func (s *stage) event(f *fields) {
	e := f.sub("event")
	e.ignore("type", "message")
	if reason := e.text("reason", "Created"); !slices.Contains([]string{"Pulling", "Pulled", "Created", "Started", "Killing"}, reason) {
		s.lost = append(s.lost, e.at("reason"))
	}
}

// These are the jq expressions that the selectors of Stages may contain.
var (
	jqOwn   = regexp.MustCompile(`^\.metadata\.(labels|annotations)\["([^"]+)"\]$`)
	jqOwner = regexp.MustCompile(`^\.metadata\.ownerReferences\.?\[\]\.kind$`)
)

func (s *stage) selector() {
	sel := s.spec.sub("selector")
	maps.Copy(s.own["labels"], sel.strings("matchLabels"))
	maps.Copy(s.own["annotations"], sel.strings("matchAnnotations"))
	for _, e := range sel.list("matchExpressions") {
		jq := e
		if e.has("jq") {
			jq = e.sub("jq")
		}
		key, operator, values := jq.text("key", ""), jq.text("operator", ""), jq.texts("values")
		operators := []string{"", "In", "NotIn", "Exists", "DoesNotExist"}
		jq.check(slices.Contains(operators, operator), "operator", "KWOK has no operator %q (%s)", operator, strings.Join(operators[1:], ", "))
		cel := strings.TrimSpace(e.sub("cel").text("expression", ""))
		own, ownCEL := jqOwn.FindStringSubmatch(key), celOwn.FindStringSubmatch(cel)
		switch {
		case cel == "has(self.metadata.deletionTimestamp)":
			s.deleting = true
		case cel == "!has(self.metadata.deletionTimestamp)", cel == "!has(self.metadata.finalizers)", celStatus.MatchString(cel):
		case ownCEL != nil:
			s.own[ownCEL[1]][ownCEL[2]] = ownCEL[3]
		case e.has("cel"):
			s.unselected = append(s.unselected, e.at("cel"))
		case own != nil && operator == "In" && len(values) == 1:
			s.own[own[1]][own[2]] = values[0]
		case jqOwner.MatchString(key) && operator == "In" && len(values) == 1:
			s.owner = values[0]
		case key == ".metadata.deletionTimestamp":
			s.deleting = operator == "Exists"
		case strings.HasPrefix(key, ".status."), key == ".metadata.finalizers": // the simulated kubelet decides the order of states
		default:
			s.unselected = append(s.unselected, jq.at("key"))
		}
	}
}

// These are the CEL expressions that the selectors of Stages may contain. Tests of the status are accepted but not
// converted, because the simulated kubelet decides the order of a pod's states.
var (
	celStatus = regexp.MustCompile(`^!?\(?(has\()?self\.status\.[^&|?]*$`)
	celOwn    = regexp.MustCompile(`^self\.metadata\.(labels|annotations)\[['"]([^'"]+)['"]\] *== *['"]([^'"]*)['"]$`)
)

// stage converts a stage to settings of the simulated nodes. It leaves out a stage if scenarios cannot express the
// selector of the stage.
func (k *stages) stage(s *stage) {
	switch {
	case s.kind != "Node" && s.kind != "Pod":
		k.leaveOut(s, s.spec.at(""), "only nodes and pods are simulated, not %s", cmp.Or(s.kind, "resource"))
		return
	case len(s.unselected) > 0:
		at := s.unselected[0]
		k.leaveOut(s, at, "the field %s of its selector has no equivalent", at.Field[strings.LastIndexByte(at.Field, '.')+1:])
		return
	case s.kind == "Pod":
		k.podStage(s)
	case s.narrowness() > 0 || strings.Contains(s.template, `status: "False"`):
		s.item.remark(nil, s.spec.at(""), "stage %s: to make nodes fail, add a fault to a phase: faults: [{kind: nodeFailure, fraction: 0.1}]", s.name)
	case s.delay.to >= time.Second: // a heartbeat
		k.report = (s.delay.from + s.delay.to) / 2
		s.into = func() string { return "statusReport " + scenario.Duration(k.report).String() }
		if s.delay.to < time.Minute {
			s.item.remark(k.nodes.Node, s.spec.at("delay"), "nodes also renew their Leases, as kubelets do, and do not only report their status")
		}
	}
	// These settings have no counterpart in simulated nodes and pods.
	d := s.spec.sub("delay")
	at, ownDelay := s.spec.at("weightFrom"), d.has("durationFrom") || d.has("jitterDurationFrom") && !s.untilGrace
	if ownDelay {
		at = d.at("")
	}
	if ownDelay || s.spec.has("weightFrom") {
		s.item.remark(nil, at, "stage %s: delays and weights from an object's annotations are not supported; all objects use the values of the stage", s.name)
	}
	if s.untilGrace {
		s.item.remark(nil, d.at("jitterDurationFrom"), "stage %s: all pods are assumed to have a grace period of %s", s.name, gracePeriod)
	}
	for _, at := range s.lost {
		s.item.remark(nil, at, "stage %s: simulated nodes write the status and the Events of a kubelet, and nothing else", s.name)
	}
	d.ignore("durationFrom", "jitterDurationFrom")
	s.spec.ignore("immediateNextStage", "weightFrom")
}

// leaveOut records that a stage is left out, and why.
func (k *stages) leaveOut(s *stage, at Remark, why string, args ...any) {
	k.lose("Stage", s.name)
	s.item.remark(nil, at, "stage %s is left out: %s", s.name, fmt.Sprintf(why, args...))
}

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
		k.delays("stopAfter", s)
	case s.deletes || s.deleting:
		k.leaveOut(s, s.spec.at(""), "pods are deleted by requests, not by simulated nodes")
	case phase == "Running" && k.ready != nil && k.ready.selectsAll(s) && k.ready.narrowness() == s.narrowness(): // KWOK chooses between the two stages by weight
		k.leaveOut(s, s.spec.at("weight"), "all pods start as in stage %s", k.ready.name)
	case starts && narrow:
		k.leaveOut(s, s.spec.at("selector"), "all pods take the same time to start")
	case starts:
		if phase == "Running" {
			k.ready = s
		}
		k.delays("podStart", s)
	case phase == "" && inits && narrow:
		k.newLife(s, "init").set("init", flow("runFor", s.delay.orAtOnce().spread()))
	case phase == "" && inits:
		k.delays("init runFor", s)
	case phase != "Succeeded" && phase != "Failed":
		k.leaveOut(s, s.spec.at(""), "simulated nodes do not write its status")
	default:
		k.life(s, phase == "Failed")
	}
}

// delays adds the delay of a stage to the sum k.times[what], which applies to all pods.
func (k *stages) delays(what string, s *stage) {
	k.times[what] = k.times[what].plus(s.delay)
	s.into = func() string { return what + " " + k.times[what].spread() }
}

// life adds an entry of podLives for the pods that a stage ends. failed means that the stage sets pods to Failed. If it
// does so because an init container has failed while the other containers wait, the entry ends the init container.
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

// fieldsText returns the fields of a mapping, without the selector, as text such as "name a, runFor 5s".
func fieldsText(n *yaml.Node) string {
	var parts []string
	for key, value := range pairs(n) {
		switch {
		case key.Value == "match":
		case value.Kind == yaml.MappingNode:
			parts = append(parts, key.Value+" "+fieldsText(value))
		default:
			parts = append(parts, key.Value+" "+value.Value)
		}
	}
	return strings.Join(parts, ", ")
}

// shares converts the weights of stages to fractions of pods (shares) in podLives. It sorts the entries from narrow to
// wide selectors. If several stages select a pod, the share of the narrowest stage is its fraction of their total
// weight. The other pods get the next entry that matches.
func (k *stages) shares() {
	stageOf := func(l *mapping) *stage { return k.of[phaseName(l)] }
	slices.SortStableFunc(k.lives, func(a, b *mapping) int { return stageOf(b).narrowness() - stageOf(a).narrowness() })
	never := map[*mapping]bool{}
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
			never[l] = true
			addComment(&k.top, fmt.Sprintf("Stage %s has weight 0 and others do not: KWOK never selects it.", own.name))
		case share < 1:
			l.set("share", fmt.Sprintf("%.4g%%", 100*share))
		}
		if own.role != "end" && slices.ContainsFunc(k.lives, func(other *mapping) bool { return stageOf(other).role != own.role }) {
			own.item.remark(l.Node, own.spec.at(""), "stage %s: a pod follows one entry of podLives; pods that an earlier entry selects do not follow this one", own.name)
		}
	}
	k.lives = slices.DeleteFunc(k.lives, func(l *mapping) bool { return never[l] })
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
		at = strings.LastIndex(text, key)
	}
	if at < 0 {
		return ""
	}
	words := append(strings.Fields(text[at+len(key):]), "")
	return strings.Trim(words[0], `"'`)
}
