package cloud

import (
	"context"
	"errors"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	cloudprovider "k8s.io/cloud-provider"

	"github.com/stormglass/stormglass/controlplane/internal/service"
)

// pollInterval is the interval at which EnsureLoadBalancer polls a load balancer until it has an address.
const pollInterval = time.Second

type balancers struct{ *Provider }

func (b balancers) GetLoadBalancerName(_ context.Context, _ string, s *corev1.Service) string {
	return cloudprovider.DefaultLoadBalancerName(s)
}

func (b balancers) GetLoadBalancer(ctx context.Context, _ string, s *corev1.Service) (*corev1.LoadBalancerStatus, bool, error) {
	lb, err := b.do(ctx, http.MethodGet, s, nil)
	if errors.Is(err, errNotFound) {
		return nil, false, nil
	}
	return status(lb), err == nil, err
}

// EnsureLoadBalancer creates a load balancer and waits until the load balancer has an address, like the providers of
// real clouds. The wait occupies a worker of the service controller.
func (b balancers) EnsureLoadBalancer(ctx context.Context, _ string, s *corev1.Service, nodes []*corev1.Node) (*corev1.LoadBalancerStatus, error) {
	lb, err := b.put(ctx, s, nodes)
	for err == nil && lb.Address == "" {
		timer := time.NewTimer(pollInterval)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		lb, err = b.do(ctx, http.MethodGet, s, nil)
	}
	if err != nil {
		return nil, err
	}
	return status(lb), nil
}

func (b balancers) UpdateLoadBalancer(ctx context.Context, _ string, s *corev1.Service, nodes []*corev1.Node) error {
	_, err := b.put(ctx, s, nodes)
	return err
}

func (b balancers) EnsureLoadBalancerDeleted(ctx context.Context, _ string, s *corev1.Service) error {
	_, err := b.do(ctx, http.MethodDelete, s, nil)
	return err
}

func (b balancers) put(ctx context.Context, s *corev1.Service, nodes []*corev1.Node) (service.LoadBalancer, error) {
	hosts := make([]string, 0, len(nodes))
	for _, n := range nodes {
		hosts = append(hosts, n.Name)
	}
	return b.do(ctx, http.MethodPut, s, service.LoadBalancer{Hosts: hosts})
}

func (b balancers) do(ctx context.Context, method string, s *corev1.Service, in any) (lb service.LoadBalancer, err error) {
	err = b.call(ctx, method, named(service.LoadBalancersPath, b.GetLoadBalancerName(ctx, "", s)), in, &lb)
	return lb, err
}

// status returns the status of a Service with this load balancer. It is empty until the load balancer has an address.
func status(lb service.LoadBalancer) *corev1.LoadBalancerStatus {
	if lb.Address == "" {
		return &corev1.LoadBalancerStatus{}
	}
	return &corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: lb.Address}}}
}
