package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// DeviceClass returns the name of the DeviceClass of the simulated nodes, or "" if the nodes have no devices. Setup creates
// the class. Its name is the name of the run's namespace, because that is unique in the cluster.
func (t *Target) DeviceClass() string {
	if !t.devices {
		return ""
	}
	return t.Namespace
}

func (t *Target) makeDeviceClass(ctx context.Context, client kubernetes.Interface) error {
	if t.DeviceClass() == "" {
		return nil
	}
	ours := resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", scenario.DeviceDriver)}}
	class := &resourcev1.DeviceClass{
		ObjectMeta: t.clusterMeta(t.DeviceClass()), Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{ours}},
	}
	_, err := client.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("create deviceclass %s: %w (nodes.devices needs %s, which requires Kubernetes 1.34 or newer)", class.Name, err, resourcev1.SchemeGroupVersion)
	case err != nil:
		return fmt.Errorf("create deviceclass %s: %w", class.Name, err)
	}
	return nil
}

// removeDevices removes the nodes' ResourceSlices and the DeviceClass. The garbage collector would delete the slices
// too, but later.
func (c *cleaner) removeDevices(ctx context.Context) error {
	if !c.devices {
		return nil
	}
	client := c.client.ResourceV1()
	of := func(plural string, err error) error {
		if apierrors.IsNotFound(err) { // the cluster does not serve this resource
			return nil
		}
		return c.noteUnseen(plural, err)
	}
	return errors.Join(
		of("resourceslices", removeListed(ctx, c, "ResourceSlice", "resourceslices", client.ResourceSlices(), c.owned, nil, &c.removed.ResourceSlices)),
		of("deviceclasses", removeListed(ctx, c, "DeviceClass", "deviceclasses", client.DeviceClasses(), c.owned, nil, &c.removed.ClusterObjects)),
	)
}

// hasDevices reports whether any simulated nodes have devices.
func hasDevices(s *plan.Plan) bool {
	return s.Nodes.Count > 0 && slices.ContainsFunc(s.Nodes.AllPools(), func(p scenario.NodePool) bool { return p.Devices > 0 })
}
