package cloud

import (
	"context"
	"errors"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	cloudprovider "k8s.io/cloud-provider"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/service"
)

type instances struct{ *Provider }

// get returns the instance of a node. managed is false for a node without a providerID of this cloud, such as a
// control-plane node; get does not call the cloud for such a node.
func (i instances) get(ctx context.Context, node *corev1.Node) (instance control.Instance, managed bool, err error) {
	name, managed := strings.CutPrefix(node.Spec.ProviderID, control.ProviderName+"://")
	if !managed {
		return instance, false, nil
	}
	err = i.call(ctx, http.MethodGet, named(service.InstancesPath, name), nil, &instance)
	if errors.Is(err, errNotFound) {
		err = cloudprovider.InstanceNotFound
	}
	return instance, true, err
}

// InstanceExists returns true for a node without a providerID of this cloud, because the cloud does not manage it.
func (i instances) InstanceExists(ctx context.Context, node *corev1.Node) (bool, error) {
	_, _, err := i.get(ctx, node)
	if errors.Is(err, cloudprovider.InstanceNotFound) {
		return false, nil
	}
	return err == nil, err
}

// InstanceShutdown returns false, because an instance either runs or does not exist.
func (i instances) InstanceShutdown(ctx context.Context, node *corev1.Node) (bool, error) {
	_, _, err := i.get(ctx, node)
	return false, err
}

// InstanceMetadata returns empty metadata for a node without a providerID of this cloud.
func (i instances) InstanceMetadata(ctx context.Context, node *corev1.Node) (*cloudprovider.InstanceMetadata, error) {
	instance, managed, err := i.get(ctx, node)
	if err != nil {
		return nil, err
	}
	if !managed {
		return &cloudprovider.InstanceMetadata{}, nil
	}
	return &cloudprovider.InstanceMetadata{
		ProviderID: instance.ProviderID(), InstanceType: instance.Type, Zone: instance.Zone, Region: service.Region,
		NodeAddresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: instance.Address}},
	}, nil
}
