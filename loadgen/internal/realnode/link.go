package realnode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// link is the network between a node with its pods and this machine. The zero value means that there is no network.
type link struct {
	device     string // network device on this machine
	host, node netip.Addr
	pods       netip.Prefix
}

// maxNodes is the maximum number of nodes on this machine that can have their own network at the same time.
const maxNodes = 256

// nodeAddresses configures the network in the node: its address $0, the default route through this machine's address
// $1, and the address $2 at which pods reach the API server.
const nodeAddresses = `ip address add "$0/25" dev eth0 && ip link set eth0 up && ip route add default via "$1" &&
ip address add "$2/32" dev lo && echo 1 >/proc/sys/net/ipv4/ip_forward`

// connect connects a node with this machine. It uses the first network that no other node uses.
func connect(ctx context.Context, s *namespaces, service netip.Addr) (link, error) {
	pid := strconv.Itoa(s.first.Process.Pid)
	for k := range maxNodes {
		l := link{
			device: fmt.Sprintf("sgnode%d", k),
			host:   netip.AddrFrom4([4]byte{10, 213, byte(k), 1}),
			node:   netip.AddrFrom4([4]byte{10, 213, byte(k), 2}),
			pods:   netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 213, byte(k), 128}), 25),
		}
		if _, err := os.Stat(filepath.Join("/sys/class/net", l.device)); err == nil {
			continue
		}
		if err := ip(ctx, "link", "add", l.device, "type", "veth", "peer", "name", "eth0", "netns", pid); err != nil {
			if errors.Is(err, os.ErrExist) { // another program created the device in the meantime
				continue
			}
			return link{}, err
		}
		return l, l.configure(ctx, s, service)
	}
	return link{}, fmt.Errorf("this machine already runs %d nodes, the maximum", maxNodes)
}

func (l link) configure(ctx context.Context, s *namespaces, service netip.Addr) error {
	err := s.run(ctx, "sh", "-c", nodeAddresses, l.node.String(), l.host.String(), service.String())
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"address", "add", l.host.String() + "/25", "dev", l.device},
		{"link", "set", l.device, "up"},
		{"route", "add", l.pods.String(), "via", l.node.String()},
	} {
		if err := ip(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// remove removes the network of a node whose processes have ended. The kernel would also remove it, but later.
func (l link) remove() error {
	if l.device == "" {
		return nil
	}
	err := ip(context.Background(), "link", "delete", l.device)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func ip(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput()
	switch {
	case err == nil:
		return nil
	case bytes.Contains(out, []byte("File exists")):
		return fmt.Errorf("ip %s: %w", args, os.ErrExist)
	case bytes.Contains(out, []byte("Cannot find device")):
		return fmt.Errorf("ip %s: %w", args, os.ErrNotExist)
	}
	return fmt.Errorf("ip %s: %w: %s", args, err, bytes.TrimSpace(out))
}

// relay forwards connections from the node to the API server. It listens in the node at the address of the Service
// kubernetes, for pods, and at a loopback address, for the node's own programs. It returns the loopback URL, because
// kube-proxy refuses connections to a Service without endpoints.
func (n *Node) relay(service netip.AddrPort) (server string, err error) {
	to, err := url.Parse(n.cluster.Server)
	if err != nil {
		return "", err
	}
	for _, at := range []string{service.String(), "127.0.0.1:0"} {
		var l net.Listener
		err := n.spaces.within(func() (err error) {
			l, err = net.Listen("tcp", at)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("forward connections from the node to the API server: %w", err)
		}
		n.relays = append(n.relays, l)
		go serveRelay(l, to.Host)
		server = "https://" + l.Addr().String()
	}
	return server, nil
}

// serveRelay forwards connections to l to the address `to` of this machine, in both directions, until l is closed.
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
