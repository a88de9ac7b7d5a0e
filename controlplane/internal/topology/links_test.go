package topology_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// TestLinks checks that there is exactly one link for each connection that a fault can cut.
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
		t.Errorf("links = %v, want %s", got, want)
	}
}

// TestPeersKeepTheirNames checks that the member addresses that etcd stores on disk do not depend on the ports of a
// start.
func TestPeersKeepTheirNames(t *testing.T) {
	cfg := control.Config{Etcd: control.Etcd{Members: 3}}
	first := topology.InitialCluster(cfg, topology.Ports{"etcd-0/peer": 1, "etcd-1/peer": 2, "etcd-2/peer": 3})
	if second := topology.InitialCluster(cfg, topology.Ports{"etcd-0/peer": 4, "etcd-1/peer": 5, "etcd-2/peer": 6}); first != second {
		t.Errorf("the members' URLs depend on the ports: %s, %s", first, second)
	}
}

// TestListeners checks that a plane with one component of each kind has only the expected listeners, and that no two
// listeners have the same name.
func TestListeners(t *testing.T) {
	one := topology.Listeners(control.Config{})
	if want := "etcd-0 kube-apiserver-0 kube-scheduler-0 kube-controller-manager-0 etcd-0/peer"; strings.Join(one, " ") != want {
		t.Errorf("listeners of a plane with one component of each kind = %v, want %s", one, want)
	}
	all := topology.Listeners(configs()["ha"])
	slices.Sort(all)
	if len(all) != len(slices.Compact(slices.Clone(all))) {
		t.Errorf("listeners with the same name: %v", all)
	}
}

// TestOverlay checks that Overlay replaces flags for one start, and does not change the process's own flags.
func TestOverlay(t *testing.T) {
	own := []string{"--name=etcd-0", "--quota-backend-bytes=8589934592"}
	over := topology.Overlay(own, control.Flags{"quota-backend-bytes": "16777216", "auto-compaction-retention": "1"})
	if got := strings.Join(over, " "); got != "--name=etcd-0 --auto-compaction-retention=1 --quota-backend-bytes=16777216" {
		t.Errorf("Overlay = %s, want the new quota after the other flags", got)
	}
	if got := strings.Join(own, " "); got != "--name=etcd-0 --quota-backend-bytes=8589934592" {
		t.Errorf("the process's own flags changed to %s", got)
	}
}
