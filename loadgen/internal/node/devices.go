package node

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	resourceGroup  = "resource.k8s.io/v1"
	resourceSlices = "/apis/" + resourceGroup + "/resourceslices"
	// claimRetry is the time after which a kubelet syncs a pod again if it could not prepare the pod's claims. The
	// kubelet adds a random jitter of up to half of claimRetry (pkg/kubelet/pod_workers.go).
	claimRetry = 10 * time.Second
)

// publishDevices creates the node's ResourceSlice, as the kubelet plugin of a DRA driver does
// (k8s.io/dynamic-resource-allocation/resourceslice). It first waits until `wiped` is closed, which means that the
// slices from before the kubelet's restart have been deleted. On a node without devices it does nothing.
func (k *kubelet) publishDevices(life *life, owner metav1.OwnerReference, wiped <-chan struct{}) error {
	count := k.plan.poolOf(k.index).Devices
	if count == 0 {
		return nil
	}
	select {
	case <-wiped:
	case <-life.ctx.Done():
		return life.ctx.Err()
	}
	k.look(life, "nodes", nodes+"/"+k.name) // a driver reads the Node that will own the slice
	body, err := encode(resourceGroup, "ResourceSlice", newSlice(owner, k.plan.Labels, count))
	if err != nil {
		return err
	}
	_, err = k.link.do(life.ctx, call{verb: "create", resource: "resourceslices", path: resourceSlices, body: body, urgent: true})
	if apierrors.IsAlreadyExists(err) { // created before a restart
		return nil
	}
	return err
}

// newSlice returns the ResourceSlice of a node's devices. The slice's name ends with a part of the Node's UID, so that
// a recreated Node gets a slice with a new name. The garbage collector deletes the old slice. A real driver uses a
// random suffix.
func newSlice(owner metav1.OwnerReference, labels map[string]string, count int) *resourcev1.ResourceSlice {
	controller := true
	owner.Controller = &controller
	s := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name:   fmt.Sprintf("00000-%s-%s-%.8s", scenario.DeviceDriver, owner.Name, owner.UID),
			Labels: labels, OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: scenario.DeviceDriver, NodeName: &owner.Name,
			Pool: resourcev1.ResourcePool{Name: owner.Name, Generation: 1, ResourceSliceCount: 1},
		},
	}
	model := "simulated"
	for i := range count {
		index, name := int64(i), "gpu-"+strconv.Itoa(i)
		uuid := owner.Name + "-" + name
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{
			Name: name,
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"index": {IntValue: &index}, "model": {StringValue: &model}, "uuid": {StringValue: &uuid},
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
				"memory": {Value: *resource.NewQuantity(80<<30, resource.BinarySI)},
			},
		})
	}
	return s
}

// prepareClaims waits until each ResourceClaim of a pod is allocated on this node and reserved for the pod. It returns
// false if the pod ends first. A kubelet also waits for this before it creates a pod's sandbox (pkg/kubelet/cm/dra).
func (k *kubelet) prepareClaims(life *life, p *pod, spec *corev1.Pod) bool {
	return k.until(life, p, func() time.Duration {
		err := k.readClaims(life.ctx, spec)
		if err == nil {
			return 0
		}
		k.announceWarning(life, spec, "FailedPrepareDynamicResources", fmt.Sprintf("Failed to prepare dynamic resources: %v", err))
		return claimRetry + time.Duration(life.float()*float64(claimRetry)/2)
	})
}

func (k *kubelet) readClaims(ctx context.Context, pod *corev1.Pod) error {
	var names []string
	for i := range pod.Spec.ResourceClaims {
		name, owned, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil {
			return err
		}
		if name == nil { // this entry needs no ResourceClaim
			continue
		}
		claim, err := k.readClaim(ctx, pod.Namespace, *name)
		if err != nil {
			return err
		}
		if err := k.usable(claim, pod, owned); err != nil {
			return err
		}
		names = append(names, *name)
	}
	if !k.plan.everyRequest() {
		return nil
	}
	for _, name := range names { // the driver reads each claim too
		if _, err := k.readClaim(ctx, pod.Namespace, name); err != nil {
			return err
		}
	}
	return nil
}

func (k *kubelet) readClaim(ctx context.Context, namespace, name string) (*resourcev1.ResourceClaim, error) {
	claim := &resourcev1.ResourceClaim{}
	return claim, k.get(ctx, "resourceclaims", "/apis/"+resourceGroup+"/namespaces/"+namespace+"/resourceclaims/"+name, claim)
}

// usable returns nil if a pod may use a claim on this node, and otherwise an error with the reason. If owned is true,
// the pod must be the owner of the claim.
func (k *kubelet) usable(claim *resourcev1.ResourceClaim, pod *corev1.Pod, owned bool) error {
	if owned {
		if err := resourceclaim.IsForPod(pod, claim, false); err != nil {
			return err
		}
	}
	if !resourceclaim.IsReservedForPod(pod, claim, false) {
		return fmt.Errorf("pod %s (%s) is not allowed to use ResourceClaim %s (%s)", pod.Name, pod.UID, claim.Name, claim.UID)
	}
	if claim.Status.Allocation == nil {
		return fmt.Errorf("ResourceClaim %s: not allocated", claim.Name)
	}
	for _, d := range claim.Status.Allocation.Devices.Results {
		if d.Driver != scenario.DeviceDriver || k.plan.poolOf(k.index).Devices == 0 {
			return fmt.Errorf("DRA driver %s is not registered", d.Driver)
		}
	}
	return nil
}
