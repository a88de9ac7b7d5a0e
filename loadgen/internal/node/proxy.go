package node

import "net/url"

// kubeProxy makes the requests of a kube-proxy after its start: watches (cmd/kube-proxy/app/server.go,
// pkg/proxy/node.go).
type kubeProxy struct {
	fleet *Fleet
	node  string
	link  *link
}

func (p *kubeProxy) watch(life *life) {
	for _, w := range []struct {
		resource, path string
		selector       url.Values
		optional       bool
	}{
		{"nodes", "/api/v1/nodes", url.Values{"fieldSelector": {"metadata.name=" + p.node}}, false},
		{"services", "/api/v1/services", url.Values{
			"fieldSelector": {"spec.clusterIP!=None"}, "labelSelector": {"!service.kubernetes.io/service-proxy-name"},
		}, false},
		{"endpointslices", "/apis/discovery.k8s.io/v1/endpointslices", url.Values{
			"labelSelector": {"!service.kubernetes.io/headless"},
		}, false},
		{"servicecidrs", "/apis/networking.k8s.io/v1/servicecidrs", nil, true},
	} {
		one := p.fleet.watcher(life, p.link, w.resource, w.path, w.selector)
		one.optional = w.optional
		one.start()
	}
}
