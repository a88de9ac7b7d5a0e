package node

import (
	"net/http"
	"time"
)

func (k *kubelet) patchStatus(life *life, body []byte) error {
	_, err := k.link.do(life.ctx, call{
		verb: "patch", resource: "nodes/status", method: http.MethodPatch, path: "/api/v1/nodes/" + k.name + "/status",
		contentType: strategic, body: body, urgent: true,
	})
	if err == nil {
		k.ledger.statusWrites.Add(1)
	}
	return err
}

// reportStatus is the report of an unchanged status, each StatusReport (5 minutes)
// after the first, whose time is drawn as a kubelet's is.
func (k *kubelet) reportStatus(life *life) {
	life.after(k.plan.Spec.StatusReport.D(), func() { k.late(life, func() { k.reportStatus(life) }) })
	if body, err := heartbeatPatch(life.clock.Now()); err == nil {
		_ = k.patchStatus(life, body) // counted; the next report is as good
	}
}

// nodeSink lets a kubelet see its own Node.
type nodeSink struct {
	noSink
	kubelet *kubelet
}

func (s nodeSink) event(_ string, _ []byte, v view) { s.kubelet.sawNode(string(v.ready) == "True") }

// sawNode compares the Ready condition with our own: the node lifecycle
// controller sets it to Unknown when heartbeats stay out, and a kubelet that
// is alive sets it right at its next look.
func (k *kubelet) sawNode(ready bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.life == nil || k.life.over() || !k.settled || k.state != up {
		return
	}
	k.setReady(ready)
	if !ready && !k.mending {
		k.mending = true
		life := k.life
		life.after(time.Duration(life.float()*float64(statusUpdate)), func() { k.late(life, func() { k.mend(life) }) })
	}
}

func (k *kubelet) mend(life *life) {
	body, err := readyPatch(life.clock.Now(), isReadyNow())
	if err == nil {
		err = k.patchStatus(life, body)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if life.over() || k.state != up {
		return
	}
	if err != nil {
		life.after(statusUpdate, func() { k.mend(life) })
		return
	}
	k.mending = false
	k.setReady(true)
}

// setReady is called with mu held.
func (k *kubelet) setReady(ready bool) {
	if k.ready == ready {
		return
	}
	k.ready = ready
	if ready {
		k.ledger.ready.Add(1)
	} else {
		k.ledger.ready.Add(-1)
	}
}
