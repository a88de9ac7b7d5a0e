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

// reportStatus reports the unchanged status every StatusReport, from a drawn time on.
func (k *kubelet) reportStatus(life *life) {
	life.after(k.plan.Spec.StatusReport.D(), func() { k.late(life, func() { k.reportStatus(life) }) })
	if body, err := heartbeatPatch(life.clock.Now()); err == nil {
		_ = k.patchStatus(life, body) // counted; the next report is as good
	}
}

type nodeSink struct {
	noSink
	kubelet *kubelet
}

func (s nodeSink) event(_ string, _ []byte, v view) { s.kubelet.sawNode(string(v.ready) == "True") }

// sawNode takes in the Ready condition: one that the node lifecycle controller set to Unknown is set right at the
// kubelet's next look.
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
