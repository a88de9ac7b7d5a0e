package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
bindAddress: 127.0.0.1
hostnameOverride: ` + realNode + `
clientConnection: {kubeconfig: %q}
conntrack: {maxPerCore: 0, min: 0, tcpCloseWaitTimeout: 0s, tcpEstablishedTimeout: 0s}
healthzBindAddress: ""
metricsBindAddress: ""
`

// startProxy starts kube-proxy in the node, so that it does not change the iptables rules of this machine.
func (l *lab) startProxy(ctx context.Context, binary string) error {
	identity, err := l.identities.ForProxies(ctx)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(l.dir, "kube-proxy.kubeconfig")
	if err := l.node.WriteKubeconfig(identity, kubeconfig); err != nil {
		return err
	}
	settings, err := l.file("kube-proxy.yaml", fmt.Sprintf(proxyConfig, kubeconfig))
	if err != nil {
		return err
	}
	_, err = l.node.Run(binary, "--config", settings, "--v", "2")
	return err
}

// proxyUser is the user name of the kube-proxies of all nodes. In the audit log, only the user agent distinguishes the
// real kube-proxy from the simulated one.
const proxyUser = "system:kube-proxy"

func proxyOf(node string) string { return proxyUser + " of " + node }

// sender returns the sender of a request as a key for counts: the user of a node, or proxyOf(node) for a kube-proxy.
// Nodes that only register have the key of the node of their kind that keeps running.
func sender(name, agent string) string {
	switch {
	case strings.HasPrefix(name, user(moreReal)):
		return user(realNode)
	case strings.HasPrefix(name, user(moreSimulated)):
		return user(simulatedNode)
	case name != proxyUser:
		return name
	case strings.HasPrefix(agent, "kube-proxy/"):
		return proxyOf(realNode)
	}
	return proxyOf(simulatedNode)
}
