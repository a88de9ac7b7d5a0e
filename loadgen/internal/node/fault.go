package node

import (
	"fmt"
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Fault describes a fault of nodes. Begin starts it.
type Fault struct {
	// Kind is one of the following kinds of package control:
	//
	//   - NodeFailure: nodes that are up stop immediately. They send nothing more and, unless the fidelity is "shared",
	//     reset their connections
	//   - InstancesVanish: like NodeFailure; the cloud also loses the nodes' instances
	//   - NodeShutdown: nodes that are up shut down gracefully, like a kubelet with shutdownGracePeriod: the node
	//     reports Ready=False, ends its pods with phase Failed, rejects new pods, and continues its heartbeats. When it
	//     has reported everything, or after 30 s, it stops and counts as failed
	//   - SlowKubelet: each node that is up and not slow yet delays its statuses, token requests and Events by Delay,
	//     and keeps their order. The interval between Lease renewals grows by Delay; the delay alone makes no renewal
	//     count as missed
	//   - KubeletUnreachable: the kubelet API of nodes that are up and reachable hangs; the nodes' requests continue
	//   - NodeScaleUp: registers the nodes that Start left out, at Spec.RegisterRate per second; logs the nodes that
	//     cannot register
	//   - NodeRecovery: ends the other faults. Requests that slow nodes have already delayed still arrive late. Nodes
	//     that are down come back as restarted kubelets: each registers again, however long that takes, reports Ready
	//     and reads its pods; nodes that the API server refuses are logged
	Kind string `json:"kind"`
	// Fraction is the fraction of the present nodes that the fault hits; it must be above 0. Begin rounds the number of
	// nodes to the nearest integer. If fewer nodes are eligible (see Able), the fault hits all eligible nodes.
	Fraction float64 `json:"fraction,omitempty"`
	// Delay is the delay of a SlowKubelet. With 0, a SlowKubelet hits no node.
	Delay time.Duration `json:"delay,omitempty"`
}

// Begin starts a fault and returns the names of the nodes that it hits. It does not wait for the effects of the fault.
func (f *Fleet) Begin(fault Fault) ([]string, error) { return f.chooser.begin(fault) }

// Able returns the numbers of the nodes that a fault of the given kind may hit now, in ascending order.
func (f *Fleet) Able(kind string) ([]int, error) {
	var able []int
	for _, k := range f.kubelets {
		if k.able(kind) {
			able = append(able, k.index)
		}
	}
	return able, nil
}

func (k *kubelet) able(kind string) bool {
	switch kind {
	case control.SlowKubelet:
		return k.is(up) && k.delay.Load() == 0
	case control.KubeletUnreachable:
		return k.is(up) && k.Unreachable() == nil
	}
	return k.is(up)
}

// Hit starts a fault on the nodes with these numbers, which must come from Able. It ignores the numbers of nodes in
// other processes. NodeScaleUp and NodeRecovery ignore the numbers and apply to all nodes.
func (f *Fleet) Hit(fault Fault, numbers []int) error {
	switch fault.Kind {
	case control.NodeRecovery:
		f.recover()
		return nil
	case control.NodeScaleUp:
		f.join()
		return nil
	}
	for _, n := range numbers {
		k := f.byName[f.plan.nodeName(n)]
		switch {
		case k == nil:
		case fault.Kind == control.NodeShutdown:
			k.shutdown()
		case fault.Kind == control.SlowKubelet:
			k.slow(fault.Delay)
		case fault.Kind == control.KubeletUnreachable:
			k.isolate(true)
		case fault.Kind == control.NodeFailure || fault.Kind == control.InstancesVanish:
			k.fail()
		default:
			return fmt.Errorf("nodes have no fault %q", fault.Kind)
		}
	}
	return nil
}

func (f *Fleet) recover() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.generation++
	generation := f.generation
	var back sync.WaitGroup
	for _, k := range f.present() {
		k.slow(0)
		k.isolate(false)
		if k.is(up) || k.is(joining) {
			continue
		}
		k.hasten()
		f.ledger.failed.Add(-1)
		life := k.wake(f.ctx, generation)
		back.Add(1)
		if !f.workers.run(func() {
			defer back.Done()
			if err := k.run(life, math.MaxInt64); err != nil && !life.over() { // no time limit: a real kubelet retries forever
				f.plan.Log("node %s did not recover: %v", k.name, err)
			}
		}) {
			back.Done()
		}
	}
	f.workers.run(func() {
		back.Wait()
		f.relist()
	})
}

func (k *kubelet) hasten() {
	k.mu.Lock()
	life := k.life
	k.mu.Unlock()
	k.leave(life)
}

func (k *kubelet) is(s nodeState) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state == s
}

func (k *kubelet) fail() {
	k.mu.Lock()
	k.silence()
	k.mu.Unlock()
	k.drop(true)
}

// leave ends all activity of a node that is shutting down. It does nothing if the node has recovered or failed since
// the shutdown began.
func (k *kubelet) leave(life *life) {
	k.mu.Lock()
	leaves := k.state == shuttingDown && k.life == life
	if leaves {
		k.silence()
	}
	k.mu.Unlock()
	if leaves {
		k.drop(false)
	}
}

// silence ends all activity of the kubelet and counts the node as failed. The caller holds mu.
func (k *kubelet) silence() {
	k.endLocked()
	k.state = down
	k.ledger.failed.Add(1)
}

func (k *kubelet) drop(abrupt bool) {
	k.fleet.api.reset(k)
	if !k.plan.own() {
		return
	}
	k.link.Drop(abrupt)
	if k.proxy != nil {
		k.proxy.Drop(abrupt)
	}
}

func (k *kubelet) slow(d time.Duration) {
	old := time.Duration(k.delay.Swap(int64(d)))
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.heartbeat != nil && old != d {
		k.heartbeat.slow(d)
	}
}

const (
	// shutdownGrace is the simulated kubelet's shutdownGracePeriod, a commonly used value. A kubelet's default is 0;
	// the fault NodeFailure simulates a kubelet with this default.
	shutdownGrace = 30 * time.Second
	// statusTries is the number of attempts to report a node's status (a kubelet's nodeStatusUpdateRetry).
	statusTries = 5
)

// shutdown begins an orderly shutdown of the node. Containers stop immediately.
func (k *kubelet) shutdown() {
	k.mu.Lock()
	defer k.mu.Unlock()
	life := k.life
	if life == nil || life.over() { // the node is not running
		k.silence()
		return
	}
	k.state = shuttingDown
	k.reports = 1
	k.late(life, func() { life.spawn(func() { k.reportShutdown(life, 1) }) })
	for _, p := range k.pods {
		if p.state > running {
			continue
		}
		if p.state == running {
			k.ledger.podsRunning.Add(-1)
		}
		p.state = ended
		k.dereference(p)
		k.reports++
		k.queue(life, func() error { return k.writeShutdown(life, p) })
	}
	// After shutdownGrace the machine switches off. Reports that are still pending are never sent.
	life.after(shutdownGrace, func() { k.leave(life) })
}

// reported counts one finished status report of a shutdown. After the last report, the node sends nothing more.
func (k *kubelet) reported(life *life) {
	k.mu.Lock()
	k.reports--
	last := k.reports == 0
	k.mu.Unlock()
	if last {
		k.leave(life)
	}
}

func (k *kubelet) reportShutdown(life *life, try int) {
	body, err := k.readyPatch(life.clock.Now(), notReady("node is shutting down"))
	if err == nil {
		err = k.patchStatus(life, body)
	}
	if err != nil && try < statusTries {
		life.after(life.backoff(registerBackoff, registerBackoffMax, try), func() { k.reportShutdown(life, try+1) })
		return
	}
	k.mu.Lock()
	if !life.over() {
		k.setReady(false)
	}
	k.mu.Unlock()
	k.reported(life)
}

// writeShutdown reads a pod of a node that is shutting down, and reports the pod as Failed.
func (k *kubelet) writeShutdown(life *life, p *pod) error {
	spec := &corev1.Pod{}
	err := k.get(life.ctx, "pods", p.path(), spec)
	if err == nil && spec.UID == p.uid && !finished(spec.Status.Phase) {
		k.announceEvents(life, spec, killingEvents(spec))
		status := shutdownStatus(spec, life.clock.Now())
		status.EphemeralContainerStatuses = k.endEphemeral(p)
		var body []byte
		if body, err = statusPatch(p.uid, status); err == nil {
			_, err = k.patchStatusOf(life.ctx, p, body)
		}
	}
	if err == nil || gone(err) {
		k.reported(life)
	}
	return err
}

// reject rejects a pod that was bound to the node during the node's shutdown. The caller holds k.mu.
func (k *kubelet) reject(p *pod, spec *corev1.Pod) {
	life := k.life
	k.reports++
	k.write(life, func() {
		_, _ = k.patchPodStatus(life.ctx, p, rejectedStatus(spec, life.clock.Now())) // errors are counted; the node soon stops
		k.reported(life)
	})
}
