package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/clientcmd"
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

// startProxy starts kube-proxy in a network namespace of its own, so that its rules are not this machine's. There
// the API server is behind a relay.
func (l *lab) startProxy(ctx context.Context, binary string) error {
	identity, err := l.identities.ForProxies(ctx)
	if err != nil {
		return err
	}
	server, err := url.Parse(identity.Host)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(l.dir, "kube-proxy.kubeconfig")
	settings, err := l.file("kube-proxy.yaml", fmt.Sprintf(proxyConfig, kubeconfig))
	if err != nil {
		return err
	}
	started, ended := make(chan error), make(chan struct{})
	l.undo = append(l.undo, func() { close(ended) })
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine, and with it kube-proxy
		started <- func() error {
			relay, err := listenApart()
			if err != nil {
				return fmt.Errorf("a network namespace of kube-proxy's own: %w", err)
			}
			go serveRelay(relay, server.Host)
			identity.Host = "https://" + relay.Addr().String()
			if err := clientcmd.WriteToFile(*fileOf(identity), kubeconfig); err != nil {
				return err
			}
			_, err = l.start(binary, "--config", settings, "--v", "2")
			return err
		}()
		<-ended
	}()
	return <-started
}

// listenApart moves the calling thread to a new network namespace and listens on its loopback.
func listenApart() (net.Listener, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(socket)
	loopback, err := unix.NewIfreq("lo")
	if err != nil {
		return nil, err
	}
	loopback.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, loopback); err != nil {
		return nil, os.NewSyscallError("bring up lo", err)
	}
	return net.Listen("tcp", "127.0.0.1:0")
}

// serveRelay copies what comes on connections to an address of this machine, and back.
func serveRelay(l net.Listener, to string) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer in.Close()
			out, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer out.Close()
			go func() {
				_, _ = io.Copy(out, in)
				out.Close()
			}()
			_, _ = io.Copy(in, out)
		}()
	}
}

// proxyUser is one for the kube-proxies of all nodes: the real one's requests are told by their agent.
const proxyUser = "system:kube-proxy"

func proxyOf(node string) string { return proxyUser + " of " + node }

// sender names the node, or the kube-proxy of a node, that made a request. Nodes that only register count as those
// that stay.
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
