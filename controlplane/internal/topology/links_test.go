package topology_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// TestLinks: every way between two components that may be cut is one route,
// and none has two.
func TestLinks(t *testing.T) {
	var got []string
	for _, proxy := range build(t, configs()["ha"]).Proxies {
		for _, to := range proxy.Targets {
			got = append(got, proxy.From+">"+to.To)
		}
	}
	slices.Sort(got)
	want := "etcd-0>etcd-1 etcd-0>etcd-2 etcd-1>etcd-0 etcd-1>etcd-2 etcd-2>etcd-0 etcd-2>etcd-1 " +
		"kube-apiserver-0>etcd-0 kube-apiserver-0>etcd-1 kube-apiserver-0>etcd-2 kube-apiserver-1>etcd-0 kube-apiserver-1>etcd-1 kube-apiserver-1>etcd-2"
	if strings.Join(got, " ") != want {
		t.Errorf("links: %v", got)
	}
}

// TestPeersKeepTheirNames: what etcd keeps of its members on disk does not
// depend on the ports of a start.
func TestPeersKeepTheirNames(t *testing.T) {
	cfg := control.Config{Etcd: control.Etcd{Members: 3}}
	first := topology.InitialCluster(cfg, topology.Ports{"etcd-0/peer": 1, "etcd-1/peer": 2, "etcd-2/peer": 3})
	if second := topology.InitialCluster(cfg, topology.Ports{"etcd-0/peer": 4, "etcd-1/peer": 5, "etcd-2/peer": 6}); first != second {
		t.Errorf("the members' URLs changed with the ports: %s, %s", first, second)
	}
}

// TestListeners: a plane of one of each listens nowhere that it did not before,
// and no listener is named twice.
func TestListeners(t *testing.T) {
	one := topology.Listeners(control.Config{})
	if want := "etcd-0 kube-apiserver-0 kube-scheduler-0 kube-controller-manager-0 etcd-0/peer"; strings.Join(one, " ") != want {
		t.Errorf("listeners of a plane of one: %v", one)
	}
	all := topology.Listeners(configs()["ha"])
	slices.Sort(all)
	if len(all) != len(slices.Compact(slices.Clone(all))) {
		t.Errorf("named twice: %v", all)
	}
}

// TestOverlay: flags of one start replace a process's own and leave them as
// they are for the next.
func TestOverlay(t *testing.T) {
	own := []string{"--name=etcd-0", "--quota-backend-bytes=8589934592"}
	over := topology.Overlay(own, control.Flags{"quota-backend-bytes": "16777216", "auto-compaction-retention": "1"})
	if got := strings.Join(over, " "); got != "--name=etcd-0 --auto-compaction-retention=1 --quota-backend-bytes=16777216" {
		t.Errorf("laid over: %s", got)
	}
	if got := strings.Join(own, " "); got != "--name=etcd-0 --quota-backend-bytes=8589934592" {
		t.Errorf("the flags of the plan's process changed to %s", got)
	}
}
