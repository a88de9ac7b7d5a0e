package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// evictedReason is the status reason of a pod that a kubelet has evicted or rejected under pressure
// (pkg/kubelet/eviction).
const evictedReason = "Evicted"

// systemCritical is the minimum priority of pods that kubelets never evict (pkg/apis/scheduling).
const systemCritical = 2_000_000_000

// pressure is the state of a pressure condition of a node, such as MemoryPressure.
type pressure struct {
	until    time.Time
	life     string // name of the PodLife whose eviction caused the pressure
	reported bool
}

// pressureTexts are the strings that a kubelet reports for a pressure condition (pkg/kubelet/nodestatus,
// pkg/kubelet/eviction).
type pressureTexts struct {
	resource, reason, event, message string // texts while the node is under pressure
	relieved                         string // reason of the Event when the pressure ends
}

func textsOf(condition corev1.NodeConditionType) pressureTexts {
	switch condition {
	case corev1.NodeDiskPressure:
		return pressureTexts{"ephemeral-storage", "KubeletHasDiskPressure", "NodeHasDiskPressure", "kubelet has disk pressure", "NodeHasNoDiskPressure"}
	case corev1.NodePIDPressure:
		return pressureTexts{"pids", "KubeletHasInsufficientPID", "NodeHasInsufficientPID", "kubelet has insufficient PID available", "NodeHasSufficientPID"}
	}
	return pressureTexts{"memory", "KubeletHasInsufficientMemory", "NodeHasInsufficientMemory", "kubelet has insufficient memory available", "NodeHasSufficientMemory"}
}

// armEviction sets the timer that evicts the pod, if its PodLife has an eviction. ran is how long the pod has been
// running.
func (l *lifecycle) armEviction(ran time.Duration) {
	l.mayBeEvicted = true
	if after := l.drawn(l.of.Evict.After, -1, "evict"); after > 0 && !critical(l.model.pod) {
		l.after(timerKey{-1, evicts}, after-ran, l.evict)
	}
}

func critical(pod *corev1.Pod) bool {
	return pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCritical
}

// evict ends a pod as a kubelet under pressure does. The pod's containers get minGrace to end. If all of them end
// successfully in that time, the pod's phase is Succeeded.
func (l *lifecycle) evict() {
	k, condition := l.k, corev1.NodeConditionType(l.of.Evict.Condition)
	l.cancel()
	l.model.evicted = fmt.Sprintf("The node was low on resource: %s. ", textsOf(condition).resource)
	l.count(lifeEvicted)
	l.announcePod("", corev1.EventTypeWarning, evictedReason, l.model.evicted)
	l.killing()
	k.press(l.life, condition, l.of)
	takes, code := l.stopping(minGrace)
	l.afterOrNow(timerKey{-1, evicts}, takes, func() {
		l.exitAll(code)
		l.complete()
	})
}

// press starts a pressure condition of the node, or extends it. The PodLife `of` says how long the condition lasts. The
// caller holds k.mu.
func (k *kubelet) press(life *life, condition corev1.NodeConditionType, of *scenario.PodLife) {
	until := life.clock.Now().Add(of.Evict.For.D())
	if p := k.pressures[condition]; p != nil {
		if until.After(p.until) {
			p.until, p.life = until, of.Name
		}
		return
	}
	if k.pressures == nil {
		k.pressures = map[corev1.NodeConditionType]*pressure{}
	}
	k.pressures[condition] = &pressure{until: until, life: of.Name}
	texts := textsOf(condition)
	k.announceNode(life, corev1.EventTypeWarning, "EvictionThresholdMet", "Attempting to reclaim "+texts.resource, 1)
	// A kubelet updates its conditions every 10 s.
	life.after(time.Duration(life.float()*float64(statusUpdate)), func() { k.late(life, func() { k.reportPressure(life, condition, 0) }) })
	life.after(of.Evict.For.D(), func() { k.relieve(life, condition) })
}

// relieve ends a pressure condition, or waits longer if press has extended it.
func (k *kubelet) relieve(life *life, condition corev1.NodeConditionType) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.pressures[condition]
	if p == nil || life.over() {
		return
	}
	if left := p.until.Sub(life.clock.Now()); left > 0 {
		life.after(left, func() { k.relieve(life, condition) })
		return
	}
	delete(k.pressures, condition)
	if p.reported {
		k.late(life, func() { life.spawn(func() { k.reportPressure(life, condition, 0) }) })
	}
}

// reportPressure reports the current state of a pressure condition, in the node's status and as an Event.
func (k *kubelet) reportPressure(life *life, condition corev1.NodeConditionType, failures int) {
	k.mu.Lock()
	p, event := k.pressures[condition], textsOf(condition).relieved
	if k.state != up || life.over() {
		k.mu.Unlock()
		return
	}
	if p != nil {
		p.reported, event = true, textsOf(condition).event
	}
	k.mu.Unlock()
	now := life.clock.Now()
	body, err := nodeStatusPatch(k.conditionsNow(now, isReadyNow(), condition))
	if err == nil {
		err = k.patchStatus(life, body)
	}
	if err != nil {
		life.after(life.backoff(registerBackoff, registerBackoffMax, failures+1), func() { k.reportPressure(life, condition, failures+1) })
		return
	}
	k.announceNode(life, corev1.EventTypeNormal, event, statusIsNow(k.name, event), 1)
}

// conditionsNow returns the node's conditions, including current pressure conditions. If `only` is not empty, it
// returns just the conditions of the types in `only`.
func (k *kubelet) conditionsNow(now time.Time, r readiness, only ...corev1.NodeConditionType) []corev1.NodeCondition {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := nodeConditions(now, r)
	for i := range all {
		if k.pressures[all[i].Type] != nil {
			texts := textsOf(all[i].Type)
			all[i].Status, all[i].Reason, all[i].Message = corev1.ConditionTrue, texts.reason, texts.message
		}
	}
	if len(only) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(c corev1.NodeCondition) bool { return !slices.Contains(only, c.Type) })
}

// refusal returns the message with which a node under pressure rejects a pod, or "" if the node admits the pod (Admit
// in pkg/kubelet/eviction). life is the name of the PodLife that caused the pressure. The caller holds k.mu.
func (k *kubelet) refusal(pod *corev1.Pod) (message, life string) {
	if len(k.pressures) == 0 || critical(pod) {
		return "", ""
	}
	var types []string
	for _, t := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		if p := k.pressures[t]; p != nil {
			types, life = append(types, string(t)), p.life
		}
	}
	memoryOnly := len(types) == 1 && types[0] == string(corev1.NodeMemoryPressure)
	if memoryOnly && (!bestEffort(pod) || tolerates(pod, corev1.TaintNodeMemoryPressure)) {
		return "", ""
	}
	return fmt.Sprintf("The node had condition: [%s]. ", strings.Join(types, " ")), life
}

// bestEffort reports whether no container of a pod has a request or limit of CPU or memory.
func bestEffort(pod *corev1.Pod) bool {
	best := true
	eachContainer(pod, func(_ int, c *corev1.Container, _ string) {
		for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if q, ok := list[name]; ok && !q.IsZero() {
					best = false
				}
			}
		}
	})
	return best
}

func tolerates(pod *corev1.Pod, key string) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		exists := t.Operator == corev1.TolerationOpExists
		return (t.Key == key || t.Key == "" && exists) && (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule) && (exists || t.Value == "")
	})
}

// refused rejects a pod if the pressure on the node requires it, and reports whether it did. The caller holds k.mu.
func (k *kubelet) refused(p *pod, pod *corev1.Pod) bool {
	message, of := k.refusal(pod)
	if message == "" {
		return false
	}
	k.ledger.lived(of, lifeRejected)
	k.refuse(p, pod, evictedReason, message)
	return true
}
