package controlplane

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/stormglass/stormglass/controlplane/process"
	"github.com/stormglass/stormglass/controlplane/topology"
)

// minDescriptors is the smallest limit of open files, per process, that a
// plane starts with. The API server holds one descriptor per connection; the
// built-in scenarios make 500 kubelets with one connection each and 2,000
// watches with a hundred on each, and its own about 200 to etcd and itself.
// Even a client with a connection for every watch (HTTP/1.1) fits: the next
// power of two above 2,700 is taken. A smaller limit is an incident to
// reproduce on purpose, not a state to start in.
const minDescriptors = 4096

// minFreeBytes is the disk space that a start needs: etcd preallocates two WAL
// segments of 64 MB, and its backend, the logs and a margin come on top.
const minFreeBytes = 256 << 20

func checkResources(dir string, resumed bool) error {
	limit, err := process.RaiseDescriptors()
	if err != nil {
		return err
	}
	if limit < minDescriptors {
		return fmt.Errorf("too few descriptors: the hard limit of open files is %d, %d short of the %d that a control plane needs (raise it: ulimit -Hn %d, as root or in limits.conf)",
			limit, minDescriptors-limit, minDescriptors, minDescriptors)
	}
	need := uint64(minFreeBytes)
	if resumed { // its WAL is preallocated already
		need /= 2
	}
	free, err := process.FreeBytes(dir)
	if err != nil {
		return err
	}
	if free < need {
		return fmt.Errorf("%s: disk full: %d MB free, %d MB short of the %d MB that a control plane needs (free some, or choose another --dir)",
			dir, free>>20, (need-free+1<<20-1)>>20, need>>20)
	}
	return nil
}

// PickPorts picks a free loopback port for each listener, the last start's
// where they are free. Another process may still take one before its
// component listens; the start is then tried again.
func PickPorts(last topology.Ports) (topology.Ports, error) {
	ports := last
	var held []net.Listener // all at once, so that no port is picked twice
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	for _, port := range ports.All() {
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", topology.Host, *port))
		if err != nil && *port != 0 {
			l, err = net.Listen("tcp", topology.Host+":0")
		}
		if err != nil {
			return ports, fmt.Errorf("find a free port on %s: %w", topology.Host, err)
		}
		held = append(held, l)
		*port = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// portsFile remembers the ports of the last start.
const portsFile = "ports.json"

func lastPorts(dir string) topology.Ports {
	var p topology.Ports
	data, err := os.ReadFile(filepath.Join(dir, portsFile))
	if err != nil || json.Unmarshal(data, &p) != nil {
		return topology.Ports{} // any free ports do as well
	}
	return p
}
