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
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// minDescriptors is the smallest limit of open files, per process, that a
// plane starts with. The API server holds one descriptor per connection; the
// built-in scenarios make 500 kubelets with one connection each and 2,000
// watches with a hundred on each, and its own about 200 to etcd and itself.
// Even a client with a connection for every watch (HTTP/1.1) fits: the next
// power of two above 2,700 is taken. A smaller limit is an incident to
// reproduce on purpose (apiServer.descriptors), not a state to start in. The
// load balancer holds two descriptors for each connection.
const minDescriptors = 4096

// What a start needs of the disk: each member preallocates two WAL segments of
// 64 MB; its backend, the logs and a margin come on top.
const (
	minFreePerMember = 128 << 20
	minFreeBesides   = 128 << 20
)

// need is what a plane needs to start.
type need struct {
	descriptors, disk, memory uint64
}

// machine is what there is.
type machine struct {
	// descriptors is the limit of open files, disk what is free where the plane's
	// directory is and memory what new processes can have, in bytes. Memory is
	// zero where the system does not tell.
	descriptors, disk, memory uint64
}

// needOf is what a plane of a config needs. A resumed one has its WAL already.
func needOf(cfg control.Config, resumed bool) need {
	n := need{descriptors: minDescriptors, disk: minFreeBesides, memory: memoryShared}
	if cfg.Count(control.KindAPIServer) > 1 {
		n.descriptors *= 2
	}
	n.descriptors = max(n.descriptors, uint64(cfg.APIServer.Descriptors))
	if !resumed {
		n.disk += uint64(cfg.Count(control.KindEtcd)) * minFreePerMember
	}
	for _, kind := range control.Kinds() {
		n.memory += uint64(cfg.Count(kind)) * memoryOf(kind)
	}
	return n
}

// memoryShared is what the components of a plane share, the pages of their one
// executable; memoryOf is what one of a kind has to itself when a plane has just
// become ready, as `controlplane status` tells it, and some.
const memoryShared = 128 << 20

func memoryOf(kind string) uint64 {
	switch kind {
	case control.KindAPIServer:
		return 256 << 20
	case control.KindControllerManager:
		return 64 << 20
	}
	return 48 << 20
}

func checkResources(dir string, cfg control.Config, resumed bool) error {
	limit, err := process.RaiseDescriptors()
	if err != nil {
		return err
	}
	free, err := process.FreeBytes(dir)
	if err != nil {
		return err
	}
	return needOf(cfg, resumed).check(dir, machine{descriptors: limit, disk: free, memory: process.AvailableMemory()})
}

// check says what is missing, and how much of it.
func (n need) check(dir string, m machine) error {
	if m.descriptors < n.descriptors {
		return fmt.Errorf("too few descriptors: the hard limit of open files is %d, %d short of the %d that this control plane needs (raise it: ulimit -Hn %d, as root or in limits.conf)",
			m.descriptors, n.descriptors-m.descriptors, n.descriptors, n.descriptors)
	}
	if m.disk < n.disk {
		return fmt.Errorf("%s: disk full: %d MB free, %d MB short of the %d MB that this control plane needs (free some, or choose another --dir)",
			dir, m.disk>>20, megabytes(n.disk-m.disk), n.disk>>20)
	}
	if m.memory > 0 && m.memory < n.memory {
		return fmt.Errorf("too little memory: %d MB are available, %d MB short of the %d MB that this control plane needs to start (end other programs, or take fewer replicas)",
			m.memory>>20, megabytes(n.memory-m.memory), n.memory>>20)
	}
	return nil
}

// megabytes rounds up: so much more is enough.
func megabytes(bytes uint64) uint64 { return (bytes + 1<<20 - 1) >> 20 }

// PickPorts picks a free loopback port for each listener, the last start's
// (those that are not zero) where they are free. Another process may still take
// one before its component listens; the start is then tried again.
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
	for _, name := range slices.Sorted(maps.Keys(last)) { // those of old first: a new one must not take theirs
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

// portsFile remembers the ports of the last start.
const portsFile = "ports.json"

func lastPorts(dir string) topology.Ports {
	var p topology.Ports
	data, err := os.ReadFile(filepath.Join(dir, portsFile))
	if err != nil || json.Unmarshal(data, &p) != nil {
		return nil // any free ports do as well
	}
	return p
}
