package controlplane_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/planetest"
)

// TestHighlyAvailable runs a plane with replicas. One component of each kind fails in turn, and the plane must keep
// serving. Then the test partitions the plane, restores a snapshot, and resumes the plane on other ports.
func TestHighlyAvailable(t *testing.T) {
	dir := filepath.Join(planetest.Dir(t), "plane")
	config := filepath.Join(t.TempDir(), "ha.yaml")
	// The leases have upstream's duration: on a busy machine, a leader may fail to renew a shorter lease, and exit.
	if err := os.WriteFile(config, []byte(`
etcd: {members: 3}
apiServer: {replicas: 2}
scheduler: {replicas: 2}
controllerManager: {replicas: 2}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	ok(t, "up", "--detach", "--dir", dir, "--config", config)
	t.Cleanup(func() {
		run(t, "down", "--dir", dir)
		if messages, err := os.ReadFile(filepath.Join(dir, "logs", "supervisor.log")); t.Failed() {
			t.Logf("messages of the supervisor (%v):\n%s", err, messages)
		}
	})
	p := &haPlane{t: t, dir: dir}
	p.reload()
	t.Run("status tells who does what", func(t *testing.T) { p.roles(t) })
	t.Run("an etcd member is lost", func(t *testing.T) { p.loseEtcdLeader(t) })
	t.Run("an API server is lost", func(t *testing.T) { p.loseAPIServer(t) })
	t.Run("a leader is lost", func(t *testing.T) { p.loseControllerManager(t) })
	t.Run("the etcd leader is cut off from its peers", func(t *testing.T) { p.partition(t) })
	t.Run("etcd goes back to a snapshot", func(t *testing.T) { p.restore(t) })
	t.Run("the plane resumes on other ports", func(t *testing.T) { p.resume(t) })
}

// whole waits until every component has its role again, because an earlier failure may have cost other components their
// leases.
func (p *haPlane) whole(t *testing.T) {
	t.Helper()
	for kind, want := range map[string]string{
		control.KindEtcd:              "map[follower:2 leader:1]",
		control.KindAPIServer:         "map[serving:2]",
		control.KindScheduler:         "map[leader:1 standby:1]",
		control.KindControllerManager: "map[leader:1 standby:1]",
	} {
		eventually(t, time.Minute, kind+" is "+want, func() bool { return fmt.Sprint(p.count(t, kind)) == want })
	}
}

func (p *haPlane) roles(t *testing.T) {
	p.whole(t)
	for _, want := range []string{"leader, term ", "follower, term ", "serving, ", "standby"} {
		// A component that does not respond within a second has no role.
		eventually(t, time.Minute, "status says "+want, func() bool { return strings.Contains(ok(t, "status", "--dir", p.dir), want) })
	}
	controlPlanePod(t, p.kube, "etcd-control-plane-2", "is Ready", podReady)
	controlPlanePod(t, p.kube, "kube-apiserver-control-plane-1", "is Ready", podReady)
	wantKubernetesEndpoint(t, p.cluster)
	members := ok(t, "etcdctl", "--dir", p.dir, "member", "list")
	if strings.Count(members, "started") != 3 || !strings.Contains(members, "https://etcd-2.stormglass.invalid:2380") {
		t.Errorf("member list does not contain three started members with their names:\n%s", members)
	}
	// A snapshot comes from one member: the member with the given name, or any ready member.
	dir := t.TempDir()
	ok(t, "etcdctl", "--dir", p.dir, "snapshot", "save", filepath.Join(dir, "any.db"))
	ok(t, "etcdctl", "--dir", p.dir, "--member", "etcd-1", "snapshot", "save", filepath.Join(dir, "first.db"))
	ok(t, "etcdctl", "--dir", p.dir, "snapshot", "save", filepath.Join(dir, "last.db"), "--member=etcd-2")
	if status := ok(t, "etcdctl", "--dir", p.dir, "endpoint", "status", "--member", "etcd-1"); strings.Count(status, "\n") != 1 {
		t.Errorf("endpoint status of one member printed several lines:\n%s", status)
	}
}

func (p *haPlane) loseEtcdLeader(t *testing.T) {
	p.whole(t)
	before := p.last(t)
	fault := p.begin(t, control.Fault{Kind: control.FaultKill, Components: []string{"etcd-leader"}})
	lost := fault.On[0]
	p.elected(t, before, fault)
	p.write(t, 30*time.Second)
	if c := p.status(t)[lost]; !strings.Contains(c.Exit, "SIGKILL") || c.Ready {
		t.Errorf("status of the killed member %s = %+v, want SIGKILL and not ready", lost, c)
	}
	p.clear(t, fault.ID)
	p.back(t, lost)
	if c := p.status(t)[lost]; c.Restarts != 1 || c.Exit != "" {
		t.Errorf("status of the restarted member %s = %+v, want one restart", lost, c)
	}
	p.reload() // cluster.json describes the new process
	i := slices.IndexFunc(p.cluster.Components, func(c control.Component) bool { return c.Name == lost })
	if pid := p.cluster.Components[i].PID; !alive(pid) || pid != p.status(t)[lost].PID {
		t.Errorf("%s has process %d in cluster.json, which is not the running process", lost, pid)
	}
}

func (p *haPlane) loseAPIServer(t *testing.T) {
	p.whole(t)
	const lost = "kube-apiserver-0"
	fault := p.begin(t, control.Fault{Kind: control.FaultKill, Components: []string{lost}})
	for range 10 {
		p.write(t, 30*time.Second)
	}
	eventually(t, 30*time.Second, "the balancer knows", func() bool {
		return fmt.Sprint(p.count(t, control.KindAPIServer)) == "map[out:1 serving:1]"
	})
	// The pod of the second API server leads to that server, not to the killed one.
	i := slices.IndexFunc(p.cluster.Components, func(c control.Component) bool { return c.Name == "kube-apiserver-1" })
	scrape := p.cluster.Components[i].Scrape
	scraper := https(t, scrape.CAFile, control.KeyPair{CertFile: scrape.CertFile, KeyFile: scrape.KeyFile})
	at := "https://" + forward(t, os.Stderr, p.dir, "kube-apiserver-control-plane-1", "6443") + "/metrics"
	if code, _, err := do(t, scraper, http.MethodGet, at, ""); code != http.StatusOK {
		t.Errorf("GET %s = %d %v, want 200", at, code, err)
	}
	p.clear(t, fault.ID)
	eventually(t, time.Minute, "both serve", func() bool { return p.count(t, control.KindAPIServer)[control.RoleServing] == 2 })
}

func (p *haPlane) loseControllerManager(t *testing.T) {
	p.whole(t)
	before := p.last(t)
	fault := p.begin(t, control.Fault{Kind: control.FaultKill, Components: []string{"kube-controller-manager-leader"}})
	moved := p.event(t, before, time.Minute, "the lease moves", func(e control.Event) bool {
		return e.Kind == control.EventLease && strings.HasPrefix(e.Component, control.KindControllerManager)
	})
	if moved.Component == fault.On[0] {
		t.Errorf("the killed component %s acquired the lease: %+v", fault.On[0], moved)
	}
	p.clear(t, fault.ID)
	p.back(t, fault.On[0])
	p.whole(t)
}

func (p *haPlane) partition(t *testing.T) {
	p.whole(t)
	before := p.last(t)
	fault := p.begin(t, control.Fault{Kind: control.FaultPartition, Components: []string{"etcd-leader"}, Peers: []string{"etcd"}})
	p.elected(t, before, fault)
	p.write(t, 30*time.Second)
	p.clear(t, fault.ID)
	eventually(t, 30*time.Second, "one leader again", func() bool { return fmt.Sprint(p.count(t, control.KindEtcd)) == "map[follower:2 leader:1]" })
}

func (p *haPlane) restore(t *testing.T) {
	p.whole(t)
	p.reload()
	kept := p.write(t, time.Minute)
	file := filepath.Join(t.TempDir(), "etcd.db")
	ok(t, "etcd", "snapshot", "--dir", p.dir, file)
	if _, stderr, code := run(t, "etcd", "snapshot", "--dir", p.dir, file); code != 2 || !strings.Contains(stderr, "already exists") {
		t.Errorf("second snapshot to the same file: exit %d, %s", code, stderr)
	}
	lost := p.write(t, time.Minute)
	damaged := filepath.Join(t.TempDir(), "damaged.db")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(damaged, data[:len(data)-100], 0o600); err != nil {
		t.Fatal(err)
	}
	// Ignore the leader-elected components: they may restart by themselves, because they lost their leases during the
	// partition.
	p.cluster.Components = slices.DeleteFunc(p.cluster.Components, func(c control.Component) bool {
		return c.Kind == control.KindScheduler || c.Kind == control.KindControllerManager
	})
	pids := pids(p.cluster)
	if _, stderr, code := run(t, "etcd", "restore", "--dir", p.dir, damaged); code != 4 || strings.Count(stderr, "\n") != 1 {
		t.Errorf("restore of a damaged snapshot: exit %d, %s", code, stderr)
	}
	if slices.ContainsFunc(pids, func(pid int) bool { return !alive(pid) }) {
		t.Error("a component was stopped although the snapshot is damaged")
	}
	if out := ok(t, "etcd", "restore", "--dir", p.dir, file); !strings.Contains(out, "etcd-0, etcd-1, etcd-2 restored") {
		t.Error(out)
	}
	p.reload()
	maps := p.kube.CoreV1().ConfigMaps("default")
	object, err := maps.Get(t.Context(), kept, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("an object from before the snapshot is lost: %v", err)
	}
	if _, err := maps.Get(t.Context(), lost, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get of an object from after the snapshot: error %v, want not found", err)
	}
	object.Labels = map[string]string{"after": "restore"}
	changed, err := maps.Update(t.Context(), object, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if revision, err := strconv.Atoi(changed.ResourceVersion); err != nil || revision < 1_000_000_000 {
		t.Errorf("revisions continue from %s, so clients may see an old revision again: %v", changed.ResourceVersion, err)
	}
	p.roles(t)
	if left, err := os.ReadDir(filepath.Join(p.dir, "data")); err != nil || len(left) != 3 {
		t.Errorf("entries of the data directory = %v %v, want only the three members", left, err)
	}
}

func (p *haPlane) resume(t *testing.T) {
	kept := p.write(t, time.Minute)
	ok(t, "down", "--dir", p.dir)
	for _, c := range p.stopped(t) {
		if c.Exit == "" || strings.Contains(c.Exit, "SIGKILL") {
			t.Errorf("%s ended with %q, want a graceful exit", c.Name, c.Exit)
		}
	}
	for _, endpoint := range append(p.cluster.Etcd.Endpoints, p.cluster.Server) {
		u, err := url.Parse(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", u.Host)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue // another process took the port first
		}
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	ok(t, "up", "--detach", "--dir", p.dir)
	p.reload()
	if _, err := p.kube.CoreV1().ConfigMaps("default").Get(t.Context(), kept, metav1.GetOptions{}); err != nil {
		t.Errorf("an object from before the stop is lost: %v", err)
	}
	p.roles(t)
	ok(t, "down", "--dir", p.dir)
	if _, stderr, code := runEnv(t, nil, "etcd: {members: 1}", "up", "--dir", p.dir, "--config", "-"); code != 4 || !strings.Contains(stderr, "belongs to 3 members, not 1") {
		t.Errorf("start with another number of members: exit %d, %s", code, stderr)
	}
}

// stopped returns the components in the status of a stopped plane.
func (p *haPlane) stopped(t *testing.T) []control.ComponentStatus {
	t.Helper()
	var status control.Status
	stdout, _, _ := run(t, "status", "--dir", p.dir, "--output", "json")
	if err := json.Unmarshal([]byte(stdout), &status); err != nil {
		t.Fatal(err)
	}
	return status.Components
}
