package cloud

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	cloudprovider "k8s.io/cloud-provider"

	"github.com/stormglass/stormglass/controlplane/internal/service"
)

type routes struct{ *Provider }

func (r routes) ListRoutes(ctx context.Context, _ string) ([]*cloudprovider.Route, error) {
	var have map[string]service.Route
	if err := r.call(ctx, http.MethodGet, service.RoutesPath, nil, &have); err != nil {
		return nil, err
	}
	all := make([]*cloudprovider.Route, 0, len(have))
	for name, one := range have {
		all = append(all, &cloudprovider.Route{Name: name, TargetNode: types.NodeName(one.Instance), DestinationCIDR: one.CIDR})
	}
	return all, nil
}

// CreateRoute names the route after its node: each node has one route.
func (r routes) CreateRoute(ctx context.Context, _, _ string, route *cloudprovider.Route) error {
	made := service.Route{Instance: string(route.TargetNode), CIDR: route.DestinationCIDR}
	return r.call(ctx, http.MethodPut, named(service.RoutesPath, made.Instance), made, &made)
}

func (r routes) DeleteRoute(ctx context.Context, _ string, route *cloudprovider.Route) error {
	return r.call(ctx, http.MethodDelete, named(service.RoutesPath, route.Name), nil, &struct{}{})
}
