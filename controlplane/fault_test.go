package controlplane_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/planetest"
)

// broken is a plane into which a test injects faults with the controlplane command, as a user does.
type broken struct {
	dir     string
	cluster control.Cluster
	kube    *kubernetes.Clientset
}

func (b *broken) args(args ...string) []string {
	return append(append([]string{"fault"}, args...), "--dir", b.dir)
}

// fault runs a fault command that must succeed, and returns its stdout.
func (b *broken) fault(t *testing.T, args ...string) string {
	t.Helper()
	return ok(t, b.args(args...)...)
}

// patience is the maximum time that a write may take on a busy machine.
const patience = 20 * time.Second

// write creates a ConfigMap with the given number of bytes.
func (b *broken) write(name string, bytes int, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	m := kubeConfigMap(name)
	m.Data["a"] = strings.Repeat("x", bytes)
	_, err := b.kube.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, m, metav1.CreateOptions{})
	return err
}

// TestFaults injects each kind of fault into a small plane. It checks the effect from outside, and that the plane
// recovers.
func TestFaults(t *testing.T) {
	// The scheduler's lease outlasts a pause on a busy machine, where the scheduler would otherwise exit and be restarted.
	lasting := control.Flags{"leader-elect-lease-duration": "5m", "leader-elect-renew-deadline": "4m"}
	s := planetest.Start(t, shared.Binary, &control.Config{NetworkFaults: control.NetworkFaultsOn, Scheduler: control.Scheduler{Flags: lasting}})
	cluster := s.Cluster()
	b := &broken{dir: cluster.Dir, cluster: cluster, kube: client(t, cluster, "admin")}
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"bad usage is refused", b.refused},
		{"a process is paused", b.pause},
		{"a process has few descriptors", b.descriptors},
		{"fsync is slow", b.slowFsync},
		{"a link is cut", b.partition},
		{"a webhook fails", b.webhook},
		{"a neighbour writes", b.neighbour},
		{"a process is killed", b.kill},
		{"an API server is restarted under watches", b.restartWatched},
		{"etcd lacks space", b.quota},
	} {
		if !t.Run(test.name, test.run) {
			t.Fatal(b.fault(t, "events"))
		}
	}
	if left := b.fault(t, "clear"); left != "no faults were active\n" {
		t.Errorf("fault clear printed %q, want no active faults", left)
	}
}

func (b *broken) refused(t *testing.T) {
	tests := []struct {
		args string
		code int
		want string
	}{
		{"kill", 2, "--component: kill requires this field (a name such as"},
		{"kill etcd-0", 2, `does not take the argument "etcd-0" (name components with --component)`},
		{"kill --component etcd-1", 2, "--component: there is no etcd-1 (there is etcd-0)"},
		{"slow-fsync --member etcd-0", 2, `--delay: slowFsync requires this field (for example "25ms")`},
		{"slow-fsync --member etcd-0 --delay 25ms --jitter 30ms", 2, "--jitter: 30ms is out of bounds (at most the delay"},
		{"partition --component kube-scheduler", 2, "--component: partition cannot be applied to kube-scheduler"},
		{"partition --component kube-apiserver-0 --peer kube-apiserver", 2, "--peer: there is no link between kube-apiserver-0 and kube-apiserver"},
		{"pause --component etcd-0 --for 0s", 2, "--for must be greater than 0s"},
		{"etcd-quota --quota 16MB", 2, "write it as 16MiB"},
		{"webhook --resource pods", 2, "a webhook without a delay or failures"},
		{"clear 99", 4, `fault "99": no fault has this ID`},
	}
	for _, test := range tests {
		_, stderr, code := run(t, b.args(strings.Fields(test.args)...)...)
		if code != test.code || !strings.Contains(stderr, test.want) {
			t.Errorf("fault %s: exit %d, want %d\n%s", test.args, code, test.code, stderr)
		}
	}
	if list := b.fault(t, "list"); list != "no faults since the control plane was started\n" {
		t.Errorf("fault list after refused commands = %s, want no faults", list)
	}
	_, stderr, code := run(t, "fault", "list", "--dir", t.TempDir())
	if code != 4 || !strings.Contains(stderr, "start one with: controlplane up --detach --dir") {
		t.Errorf("fault without a plane: exit %d, want 4\n%s", code, stderr)
	}
}

// pid returns the current process ID of a component.
func (b *broken) pid(t *testing.T, name string) int {
	t.Helper()
	cluster, err := control.Load(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cluster.Components {
		if c.Name == name {
			return c.PID
		}
	}
	t.Fatalf("the status has no component %s", name)
	return 0
}

// proc returns the content of a file in a process's directory in /proc.
func proc(t *testing.T, pid int, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const schedulerPod = "kube-scheduler-control-plane"

func (b *broken) pause(t *testing.T) {
	stopped := func() bool {
		_, rest, _ := strings.Cut(proc(t, b.pid(t, "kube-scheduler-0"), "stat"), ") ")
		return strings.HasPrefix(rest, "T")
	}
	b.fault(t, "pause", "--component", "kube-scheduler-leader")
	eventually(t, 30*time.Second, "the scheduler is stopped", stopped)
	controlPlanePod(t, b.kube, schedulerPod, "is not Ready in a pause", func(p *corev1.Pod) bool {
		return !podReady(p) && p.Status.ContainerStatuses[0].State.Running != nil
	})
	_, stderr, code := run(t, b.args("kill", "--component", "kube-scheduler-0")...)
	if code != 4 || !strings.Contains(stderr, "is already used by fault 1, pause, until it is cleared") {
		t.Errorf("kill of a paused component: exit %d, want 4\n%s", code, stderr)
	}
	b.fault(t, "clear", "1")
	eventually(t, 30*time.Second, "the scheduler continues", func() bool { return !stopped() })
	controlPlanePod(t, b.kube, schedulerPod, "is Ready after a pause", podReady)
}

func (b *broken) descriptors(t *testing.T) {
	limit := func() string {
		for line := range strings.Lines(proc(t, b.pid(t, "kube-scheduler-0"), "limits")) {
			if rest, is := strings.CutPrefix(line, "Max open files"); is {
				return strings.Fields(rest)[0]
			}
		}
		return ""
	}
	before := limit()
	b.fault(t, "descriptor-limit", "--component", "kube-scheduler", "--limit", "111")
	if got := limit(); got != "111" {
		t.Errorf("limit of open files during the fault = %s, want 111", got)
	}
	b.fault(t, "clear")
	if got := limit(); got != before {
		t.Errorf("limit of open files after the fault = %s, want %s", got, before)
	}
}

// fsyncs returns the number of all fsyncs of etcd's WAL, and the number of fsyncs that took up to 16 ms.
func (b *broken) fsyncs(t *testing.T) (all, fast int) {
	t.Helper()
	c := https(t, b.cluster.Etcd.CAFile, b.cluster.Etcd.KeyPair)
	_, body, err := do(t, c, "GET", b.cluster.Etcd.Endpoints[0]+"/metrics", "")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(body) {
		_, _ = fmt.Sscanf(line, "etcd_disk_wal_fsync_duration_seconds_count %d", &all)
		_, _ = fmt.Sscanf(line, `etcd_disk_wal_fsync_duration_seconds_bucket{le="0.016"} %d`, &fast)
	}
	return all, fast
}

func (b *broken) slowFsync(t *testing.T) {
	b.fault(t, "slow-fsync", "--member", "etcd-leader", "--delay", "25ms")
	all, fast := b.fsyncs(t)
	if err := b.write("slow", 1, patience); err != nil {
		t.Fatal(err)
	}
	// An fsync that was in progress when the fault began may be fast.
	if allNow, fastNow := b.fsyncs(t); allNow == all || fastNow > fast+1 {
		t.Errorf("of %d fsyncs, %d took up to 16 ms; want at most 1", allNow-all, fastNow-fast)
	}
	b.fault(t, "clear")
}

func (b *broken) partition(t *testing.T) {
	b.fault(t, "partition", "--component", "etcd-0")
	if err := b.write("cut", 1, time.Second); err == nil {
		t.Error("a write succeeded in spite of the partition")
	}
	b.fault(t, "clear")
	if err := b.write("whole", 1, patience); err != nil {
		t.Errorf("a write after the partition failed: %v", err)
	}
}

func (b *broken) webhook(t *testing.T) {
	b.fault(t, "webhook", "--resource", "configmaps", "--fails")
	if err := b.write("denied", 1, patience); err == nil || !strings.Contains(err.Error(), "injected webhook failure") {
		t.Errorf("write with a failing webhook: error %v, want an injected webhook failure", err)
	}
	b.fault(t, "clear")
	if err := b.write("allowed", 1, patience); err != nil {
		t.Errorf("a write after the webhook was removed failed: %v", err)
	}
}

func (b *broken) neighbour(t *testing.T) {
	b.fault(t, "disk-contention", "--writers", "1", "--size", "4KiB")
	if list := b.fault(t, "list"); !strings.Contains(list, "active until it is cleared") {
		t.Errorf("fault list does not contain the fault:\n%s", list)
	}
	b.fault(t, "clear")
	entries, err := os.ReadDir(filepath.Join(b.dir, "data"))
	if err != nil || len(entries) != 1 {
		t.Errorf("entries next to etcd's data = %v, %v; want only the data", entries, err)
	}
}

func (b *broken) kill(t *testing.T) {
	before := b.pid(t, "kube-scheduler-0")
	followed := followLog(t, b.dir, schedulerPod)
	b.fault(t, "kill", "--component", "kube-scheduler-0")
	if alive(before) {
		t.Error("the killed scheduler still runs")
	}
	controlPlanePod(t, b.kube, schedulerPod, "is terminated", func(p *corev1.Pod) bool {
		end := p.Status.ContainerStatuses[0].State.Terminated
		return !podReady(p) && end != nil && end.ExitCode == 137
	})
	b.fault(t, "clear")
	if now := b.pid(t, "kube-scheduler-0"); now == before || !alive(now) {
		t.Errorf("the scheduler has process %d after the restart; before, it had %d", now, before)
	}
	eventually(t, 30*time.Second, "the scheduler is ready again", func() bool {
		return strings.Contains(b.fault(t, "events"), "ready        kube-scheduler-0")
	})
	controlPlanePod(t, b.kube, schedulerPod, "is Ready after a restart", func(p *corev1.Pod) bool {
		return podReady(p) && p.Status.ContainerStatuses[0].RestartCount == 1
	})
	const first = `"Starting Kubernetes Scheduler"`
	for followed.Scan() && !strings.Contains(followed.Text(), first) {
	}
	if !strings.Contains(followed.Text(), first) {
		t.Error("the followed log does not contain the start of the next process")
	}
	if last := ok(t, "kubectl", "--dir", b.dir, "-n", "kube-system", "logs", "--previous", schedulerPod); strings.Count(last, first) != 1 {
		t.Errorf("the log of the previous process does not contain exactly one start:\n%s", last)
	}
}

// restartWatched restarts the API server while watches are open. The API server must end its watches and itself within
// its grace period. With upstream's default, it would wait until it is killed.
func (b *broken) restartWatched(t *testing.T) {
	for range 20 {
		w, err := b.kube.CoreV1().ConfigMaps(metav1.NamespaceAll).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
	}
	b.fault(t, "restart", "--component", "kube-apiserver-0")
	var events string
	eventually(t, time.Minute, "the API server is ready again", func() bool {
		events = b.fault(t, "events")
		return strings.Contains(events, "ready        kube-apiserver-0")
	})
	if !regexp.MustCompile(`exit +kube-apiserver-0 .*exited with code 0`).MatchString(events) {
		t.Errorf("the API server did not exit with code 0:\n%s", events)
	}
}

func (b *broken) quota(t *testing.T) {
	b.fault(t, "etcd-quota", "--quota", "1MiB")
	refused := ""
	for i := 0; refused == ""; i++ {
		if err := b.write(fmt.Sprintf("large-%d", i), 300_000, patience); err != nil {
			refused = err.Error()
		}
	}
	if !strings.Contains(refused, "database space exceeded") {
		t.Errorf("error of the write above the quota = %q, want an error about database space", refused)
	}
	b.fault(t, "clear")
	eventually(t, 30*time.Second, "there is space again", func() bool { return b.write(fmt.Sprintf("small-%d", time.Now().UnixNano()), 1, patience) == nil })
	if alarms := ok(t, "etcdctl", "--dir", b.dir, "alarm", "list"); alarms != "" {
		t.Errorf("alarms after the fault = %s, want none", alarms)
	}
}
