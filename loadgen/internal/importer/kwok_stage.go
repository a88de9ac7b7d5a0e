package importer

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

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
	own        map[string]map[string]string // required values of metadata: by "labels" and "annotations", and by key
	owner      string                       // required kind of the pods' owner; empty for any
	deleting   bool                         // whether the stage selects pods that are being deleted
	unselected []Remark                     // parts of the selector that scenarios do not support
	role       string                       // role passed to newLife
	untilGrace bool                         // whether the delay can last until the grace period of a pod ends
	lost       []Remark                     // parts of its effects that simulated nodes do not have
	into       func() string                // describes the part of the scenario that has the delay; may be nil
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

// jq expressions in the selectors of Stages.
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
		own := jqOwn.FindStringSubmatch(key)
		switch {
		case e.has("cel"):
			if !s.celSelector(strings.TrimSpace(e.sub("cel").text("expression", ""))) {
				s.unselected = append(s.unselected, e.at("cel"))
			}
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

// These are CEL expressions in the selectors of Stages. Tests of the status are accepted but not converted, because the
// simulated kubelet decides the order of a pod's states.
var (
	celStatus = regexp.MustCompile(`^!?\(?(has\()?self\.status\.[^&|?]*$`)
	celOwn    = regexp.MustCompile(`^self\.metadata\.(labels|annotations)\[['"]([^'"]+)['"]\] *== *['"]([^'"]*)['"]$`)
)

// celSelector reads a CEL expression of the selector. It returns false if the expression is not supported.
func (s *stage) celSelector(text string) bool {
	own := celOwn.FindStringSubmatch(text)
	switch {
	case text == "has(self.metadata.deletionTimestamp)":
		s.deleting = true
	case text == "!has(self.metadata.deletionTimestamp)", text == "!has(self.metadata.finalizers)", celStatus.MatchString(text):
	case own != nil:
		s.own[own[1]][own[2]] = own[3]
	default:
		return false
	}
	return true
}

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
	case s.kind == "Node":
		k.nodeStage(s)
	default:
		k.podStage(s)
	}
	s.rest()
}

// leaveOut records that a stage is left out, and why.
func (k *stages) leaveOut(s *stage, at Remark, why string, args ...any) {
	k.lose("Stage", s.name)
	s.item.remark(nil, at, "stage %s is left out: %s", s.name, fmt.Sprintf(why, args...))
}

// rest adds remarks about settings of a stage that simulated nodes and pods do not support.
func (s *stage) rest() {
	d := s.spec.sub("delay")
	ownDelay := d.has("durationFrom") || d.has("jitterDurationFrom") && !s.untilGrace
	ownWeight := s.spec.has("weightFrom")
	switch {
	case ownDelay && ownWeight:
		s.item.remark(nil, d.at(""), "stage %s: annotations do not set an object's delay or weight; all objects use the stage's values", s.name)
	case ownDelay:
		s.item.remark(nil, d.at(""), "stage %s: annotations do not set an object's delay; all objects use the stage's delay", s.name)
	case ownWeight:
		s.item.remark(nil, s.spec.at("weightFrom"), "stage %s: annotations do not set an object's weight", s.name)
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

// nodeStage sets the interval of status reports to the delay of a stage for heartbeats.
func (k *stages) nodeStage(s *stage) {
	failing := strings.Contains(s.template, `status: "False"`)
	switch {
	case failing || s.narrowness() > 0:
		s.item.remark(nil, s.spec.at(""), "stage %s: to make nodes fail, add a fault to a phase: faults: [{kind: nodeFailure, fraction: 0.1}]", s.name)
	case s.delay.to >= time.Second:
		k.report = (s.delay.from + s.delay.to) / 2
		s.into = func() string { return "statusReport " + scenario.Duration(k.report).String() }
		if s.delay.to < time.Minute {
			s.item.remark(k.nodes.Node, s.spec.at("delay"), "nodes also renew their Leases, as kubelets do, and do not only report their status")
		}
	}
}
