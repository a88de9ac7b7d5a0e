package node

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	nodes              = "/api/v1/nodes"
	csiNodes           = "/apis/storage.k8s.io/v1/csinodes"
	registerBackoff    = 100 * time.Millisecond
	registerBackoffMax = 7 * time.Second
	// registerPatience is how long a node tries to register. If the server answers 429, as it may with thousands of
	// nodes, the node tries for registerThrottled instead.
	registerPatience  = time.Minute
	registerThrottled = 10 * time.Minute
	// In every lateEvery-th start, a kubelet reads the Node once more, because its watch has not delivered the Node yet.
	// In every informedEvery-th start, a kubelet already knows the disk's capacity and posts no Event about it. Both
	// values were measured on a real kubelet (loadgen/lab/records/calibration.md).
	lateEvery, informedEvery = 3, 4
)

// run registers the node, and returns when the API server has acknowledged the node as Ready. It retries failed
// attempts for the time `patience`, but not after a permanent error.
func (k *kubelet) run(life *life, patience time.Duration) error {
	began := life.clock.Now()
	wiped := k.introduce(life)
	for failures := 1; ; failures++ {
		err := k.register(life, wiped)
		if err == nil {
			return nil
		}
		if life.over() {
			return life.ctx.Err()
		}
		within := patience
		if apierrors.IsTooManyRequests(err) {
			within = max(within, registerThrottled)
		}
		// With several API servers, some may not have seen the new RBAC rules yet.
		refused := k.plan.restricted() && apierrors.IsForbidden(err)
		if final(err) && !refused || life.clock.Since(began) > within {
			return fmt.Errorf("register node %s: %w", k.name, err)
		}
		if !life.wait(life.ctx, life.backoff(registerBackoff, registerBackoffMax, failures)) {
			return life.ctx.Err()
		}
	}
}

// final reports whether the error of a registration is permanent.
func final(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		errors.As(err, new(*strangerError)) || isCertificateError(err)
}

type strangerError struct{ node string }

func (e *strangerError) Error() string {
	return fmt.Sprintf("create nodes: %q already exists, but without this run's labels (choose a different name prefix)", e.node)
}

// introduce sends the requests that a starting kubelet sends before it creates its Node. It ignores the responses. It
// closes the channel `wiped` when the request that deletes the node's old ResourceSlices has ended.
func (k *kubelet) introduce(life *life) (wiped <-chan struct{}) {
	done := make(chan struct{})
	if !k.plan.everyRequest() {
		close(done)
		return done
	}
	k.lives++
	k.announceNode(life, corev1.EventTypeNormal, "Starting", "Starting kubelet.", 1)
	if k.proxy != nil {
		k.announce(life, k.proxy, "kube-proxy", corev1.EventTypeNormal, "Starting", "", 1)
	}
	if k.order()%informedEvery != 0 {
		k.announceNode(life, corev1.EventTypeWarning, "InvalidDiskCapacity", "invalid capacity 0 on image filesystem", 1)
	}
	k.look(life, "csinodes", csiNodes+"/"+k.name)
	for range 4 {
		k.look(life, "nodes", nodes+"/"+k.name)
	}
	k.link.start(life.ctx, call{
		verb: "deletecollection", resource: "resourceslices", path: resourceSlices + "?" + fields("spec.nodeName="+k.name).Encode(), urgent: true, blind: true,
	}, func([]byte, error) { close(done) }) // errors are counted
	for _, reason := range []string{"NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"} {
		k.announceNode(life, corev1.EventTypeNormal, reason, statusIsNow(k.name, reason), 3)
	}
	return done
}

// order returns the kubelet's index plus its number of starts. It increases with each start of the kubelet.
// lateEvery and informedEvery use it to choose every Nth start.
func (k *kubelet) order() int { return k.index + k.lives }

func statusIsNow(node, reason string) string { return "Node " + node + " status is now: " + reason }

// register creates the Node, its Lease and its CSINode, reports Ready, publishes devices, starts the heartbeats and
// opens the watches.
func (k *kubelet) register(life *life, wiped <-chan struct{}) error {
	uid, err := k.createNode(life)
	if err != nil {
		return err
	}
	if labels := k.plan.poolOf(k.index).AdminLabels(); len(labels) > 0 && k.plan.Label != nil {
		if err := k.plan.Label(life.ctx, k.name, labels); err != nil {
			return err
		}
	}
	if k.plan.everyRequest() {
		k.look(life, "nodes", nodes+"/"+k.name)
		if k.order()%lateEvery == 0 {
			k.look(life, "nodes", nodes+"/"+k.name)
		}
		body, err := k.readyPatch(life.clock.Now(), notReady("simulated kubelet is starting"))
		if err == nil {
			err = k.patchStatus(life, body)
		}
		if err != nil {
			return err
		}
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: k.name, UID: uid}
	lease := &leaseKeeper{node: k.name, owner: owner, life: life, link: k.link, seconds: k.plan.leaseSeconds, keep: k.plan.everyRequest()}
	k.look(life, "leases", leases+"/"+k.name)
	k.look(life, "nodes", nodes+"/"+k.name) // a kubelet needs the UID for the Lease's owner
	if err := lease.create(life.ctx); err != nil {
		return err
	}
	k.look(life, "csinodes", csiNodes+"/"+k.name)
	if err := k.createCSINode(life, owner); err != nil {
		return err
	}
	body, err := k.readyPatch(life.clock.Now(), isReadyNow())
	if err != nil {
		return err
	}
	if err := k.patchStatus(life, body); err != nil {
		return err
	}
	if err := k.publishDevices(life, owner, wiped); err != nil {
		return err
	}
	k.announceNode(life, corev1.EventTypeNormal, "NodeReady", statusIsNow(k.name, "NodeReady"), 1)
	every := k.plan.Spec.LeaseRenew.D()
	renewals := &heartbeat{
		life: life, interval: every, renew: lease.renew, broken: k.reconnect,
		slot: renewalSlot(k.plan.Spec.Count, every), origin: k.fleet.origin,
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if life.over() {
		return life.ctx.Err()
	}
	k.settled, k.heartbeat = true, renewals
	k.setReady(true)
	renewals.start()
	k.watch(life)
	life.after(time.Duration((0.5+life.float())*float64(k.plan.Spec.StatusReport.D())), func() { k.reportStatus(life) })
	return nil
}

func (k *kubelet) createNode(life *life) (types.UID, error) {
	body, err := encode("v1", "Node", k.newNode(life.clock.Now()))
	if err != nil {
		return "", err
	}
	answer, err := k.link.do(life.ctx, call{verb: "create", resource: "nodes", path: nodes, body: body, urgent: true})
	existed := apierrors.IsAlreadyExists(err)
	if existed {
		answer, err = k.link.do(life.ctx, call{verb: "get", resource: "nodes", path: nodes + "/" + k.name, urgent: true})
	}
	if err != nil {
		return "", err
	}
	var n corev1.Node
	if err := decode(answer, &n); err != nil {
		return "", fmt.Errorf("create nodes: decode the response: %w", err)
	}
	if existed {
		for key, value := range k.plan.Labels {
			if n.Labels[key] != value {
				return "", &strangerError{k.name}
			}
		}
	}
	return n.UID, nil
}

// look reads an object, as a starting kubelet does, and ignores the response.
func (k *kubelet) look(life *life, resource, path string) {
	if k.plan.own() {
		k.link.start(life.ctx, call{verb: "get", resource: resource, path: path, urgent: true, blind: true},
			func([]byte, error) {}) // errors are counted
	}
}

func (k *kubelet) createCSINode(life *life, owner metav1.OwnerReference) error {
	body, err := encode("storage.k8s.io/v1", "CSINode", newCSINode(owner))
	if err != nil {
		return err
	}
	_, err = k.link.do(life.ctx, call{verb: "create", resource: "csinodes", path: csiNodes, body: body, urgent: true})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func isCertificateError(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(x509.UnknownAuthorityError))
}

// hint adds a remedy to an error that ended the registration of nodes.
func hint(err error) error {
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w (the cluster does not accept the nodes' certificates; did a different client CA sign them?)", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w (fidelity %q requires the identity system:node:NAME for each node; fidelity %q requires permissions on nodes, leases, pods, pods/status and serviceaccounts/token, and with devices also on resourceslices and resourceclaims)", err, Kubelet, Shared)
	case isCertificateError(err):
		return fmt.Errorf("%w (the kubeconfig's certificate authority does not match the server's)", err)
	}
	return err
}
