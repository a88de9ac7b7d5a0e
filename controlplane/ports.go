package controlplane

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// PickPorts picks a free loopback port for each listener: the last start's, unless it
// is zero or taken. Another process may still take one before its component listens;
// the start is then tried again.
func PickPorts(last topology.Ports) (topology.Ports, error) {
	ports := topology.Ports{}
	var held []net.Listener // all at once, so that no port is picked twice
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	pick := func(name string, port int) error {
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", topology.Host, port))
		if err == nil {
			held = append(held, l)
			ports[name] = l.Addr().(*net.TCPAddr).Port
		}
		return err
	}
	var fresh []string
	for _, name := range slices.Sorted(maps.Keys(last)) { // the last start's first: a new one must not take them
		if last[name] == 0 || pick(name, last[name]) != nil {
			fresh = append(fresh, name)
		}
	}
	for _, name := range fresh {
		if err := pick(name, 0); err != nil {
			return nil, fmt.Errorf("find a free port on %s: %w", topology.Host, err)
		}
	}
	return ports, nil
}

// portsFile holds the ports of the last start.
const portsFile = "ports.json"

func lastPorts(dir string) topology.Ports {
	var p topology.Ports
	data, err := os.ReadFile(filepath.Join(dir, portsFile))
	if err != nil || json.Unmarshal(data, &p) != nil {
		return nil // then any free ports
	}
	return p
}

// samePeers refuses new ports for etcd members that keep each other's addresses in
// their data, which without links hold their ports.
func samePeers(last, now topology.Ports, cfg control.Config) error {
	if cfg.Count(control.KindEtcd) == 1 || cfg.HasLinks() {
		return nil
	}
	for i := range cfg.Count(control.KindEtcd) {
		member := control.ComponentName(control.KindEtcd, i)
		if name := topology.PeerListener(member); now[name] != last[name] {
			return fmt.Errorf("%s: another process has port %d, by which the other members know it (end that process; with networkFaults on any port does)", member, last[name])
		}
	}
	return nil
}
