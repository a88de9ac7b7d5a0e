package controlplane_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/controlplane"
	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
	"github.com/stormglass/stormglass/internal/planetest"
)

// alive reports whether a process exists and is not a zombie, which only waits until its exit code is read.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// gone reports whether all processes of a plane have ended and the directory is no longer locked. The lock is released
// last.
func gone(t *testing.T, c control.Cluster) bool {
	t.Helper()
	used, err := control.InUse(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return !used && !slices.ContainsFunc(pids(c), alive)
}

func pids(c control.Cluster) []int {
	all := []int{c.SupervisorPID}
	for _, component := range c.Components {
		all = append(all, component.PID)
	}
	return all
}

// TestLife runs one plane next to another, kills its supervisor, resumes it while its ports are taken, kills a
// component, and stops it.
func TestLife(t *testing.T) {
	dir := filepath.Join(planetest.Dir(t), "plane")
	up := func() control.Cluster {
		t.Helper()
		var c control.Cluster
		if err := json.Unmarshal([]byte(ok(t, "up", "--detach", "--dir", dir, "--output", "json")), &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := up()
	t.Cleanup(func() { run(t, "down", "--dir", dir) })
	t.Run("two planes side by side", func(t *testing.T) {
		if first.Server == shared.Cluster().Server {
			t.Error("both planes have the same server:", first.Server)
		}
		kube := client(t, first, "admin")
		cm := kubeConfigMap("kept")
		if _, err := kube.CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client(t, shared.Cluster(), "admin").CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err == nil {
			t.Error("the second plane has an object of the first")
		}
	})
	controlPlanePod(t, client(t, first, "admin"), "etcd-control-plane", "is Ready", podReady)
	t.Run("kill -9 of the supervisor leaves no process", func(t *testing.T) {
		if err := syscall.Kill(first.SupervisorPID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, 30*time.Second, "all processes are gone", func() bool { return gone(t, first) })
	})
	// Other programs take two of the plane's ports in the meantime.
	squatters := map[string]net.Listener{}
	for _, url := range []string{first.Server, first.Etcd.Endpoints[0]} {
		l, err := net.Listen("tcp", strings.TrimPrefix(url, "https://"))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue // another program took the port first, and may release it before the plane starts
		}
		if err != nil {
			t.Fatal(err)
		}
		squatters[url] = l
	}
	large := controlplane.LogFile(dir, "large")
	if err := errors.Join(os.WriteFile(large, nil, 0o600), os.Truncate(large, process.MaxLog+1)); err != nil {
		t.Fatal(err)
	}
	second := up()
	t.Run("it rotates large logs", func(t *testing.T) {
		eventually(t, time.Minute, "the log is empty and its copy is large", func() bool {
			log, err := os.Stat(large)
			rotated, rotatedErr := os.Stat(process.RotatedLog(large))
			return err == nil && rotatedErr == nil && log.Size() == 0 && rotated.Size() > process.MaxLog
		})
	})
	t.Run("it resumes its data and keys", func(t *testing.T) {
		if _, err := client(t, second, "admin").CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
			t.Errorf("an object from before the kill is lost: %v", err)
		}
		if squatters[first.Server] != nil && second.Server == first.Server {
			t.Error("the plane uses a port that another process listens on")
		}
		controlPlanePod(t, client(t, second, "admin"), "etcd-control-plane", "shows the new process", func(p *corev1.Pod) bool {
			return podReady(p) && !p.Status.ContainerStatuses[0].State.Running.StartedAt.Time.Before(second.StartedAt.Truncate(time.Second))
		})
		// A leader that waits until an old lease expires takes over that Lease instead of creating a new one.
		for _, kind := range []string{control.KindScheduler, control.KindControllerManager} {
			lease, err := client(t, second, "admin").CoordinationV1().Leases(metav1.NamespaceSystem).Get(t.Context(), kind, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if created := lease.CreationTimestamp.Time; created.Before(second.StartedAt.Truncate(time.Second)) {
				t.Errorf("the Lease %s of %v is older than the plane's start at %v: its leader waited until the old lease expired", kind, created, second.StartedAt)
			}
		}
	})
	for _, l := range squatters {
		l.Close()
	}
	t.Run("a log line of its supervisor does not end it", func(t *testing.T) {
		const pod = "kube-scheduler-control-plane"
		controlPlanePod(t, client(t, second, "admin"), pod, "is Ready", podReady)
		if code, _, err := do(t, http.DefaultClient, http.MethodGet, "http://"+forward(t, io.Discard, dir, pod, "10251"), ""); err == nil {
			t.Errorf("port 10251 responds with status %d, want no connection", code)
		}
		eventually(t, time.Minute, "the supervisor's output has the line", func() bool {
			text, err := os.ReadFile(controlplane.LogFile(dir, "supervisor-output"))
			return err == nil && strings.Contains(string(text), "error forwarding port 10251 to pod "+pod)
		})
		eventually(t, 30*time.Second, "all components are ready", func() bool {
			var status control.Status
			stdout, _, code := run(t, "status", "--dir", dir, "--output", "json")
			return code == 0 && json.Unmarshal([]byte(stdout), &status) == nil && status.SupervisorPID == second.SupervisorPID &&
				!slices.ContainsFunc(status.Components, func(c control.ComponentStatus) bool { return !c.Ready })
		})
	})
	t.Run("a component that dies is started again", func(t *testing.T) {
		i := slices.IndexFunc(second.Components, func(c control.Component) bool { return c.Kind == control.KindScheduler })
		if err := syscall.Kill(second.Components[i].PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, 30*time.Second, "the plane is ready, with one restart", func() bool {
			stdout, _, code := run(t, "status", "--dir", dir)
			return code == 0 && strings.Contains(stdout, "restarted")
		})
	})
	t.Run("without etcd, a stop kills the other processes", func(t *testing.T) {
		etcd := func() control.ComponentStatus {
			var status control.Status
			if err := json.Unmarshal([]byte(ok(t, "status", "--dir", dir, "--output", "json")), &status); err != nil {
				t.Fatal(err)
			}
			return status.Components[slices.IndexFunc(status.Components, func(c control.ComponentStatus) bool { return c.Kind == control.KindEtcd })]
		}
		for restarts := range 2 { // the second restart waits for the back-off
			eventually(t, 30*time.Second, "etcd is running", func() bool { return etcd().Restarts == restarts })
			if err := syscall.Kill(etcd().PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, 30*time.Second, "etcd has ended", func() bool { return etcd().Exit != "" })
		begun := time.Now()
		ok(t, "down", "--dir", dir)
		if took := time.Since(begun); took > 15*time.Second {
			t.Errorf("the stop took %s, so it waited for the API server's grace period of 15s", took)
		}
		var status control.Status
		stdout, _, _ := run(t, "status", "--dir", dir, "--output", "json")
		if err := json.Unmarshal([]byte(stdout), &status); err != nil {
			t.Fatal(err)
		}
		for _, c := range status.Components {
			if c.Kind == control.KindAPIServer && !strings.Contains(c.Exit, "SIGKILL") {
				t.Errorf("%s ended with %q, want SIGKILL", c.Name, c.Exit)
			}
		}
	})
	third := up()
	t.Run("it stops in order and gives its ports back to itself", func(t *testing.T) {
		if third.Server != second.Server {
			// Another process may have taken the port in the meantime.
			if l, err := net.Listen("tcp", strings.TrimPrefix(second.Server, "https://")); err == nil {
				l.Close()
				t.Errorf("the port was free, but the server changed from %s to %s", second.Server, third.Server)
			}
		}
		ok(t, "down", "--dir", dir)
		if !gone(t, third) {
			t.Error("down returned while a process still ran")
		}
		var status control.Status
		stdout, _, code := run(t, "status", "--dir", dir, "--output", "json")
		if err := json.Unmarshal([]byte(stdout), &status); err != nil || code != 4 {
			t.Fatalf("status of the stopped plane: exit %d, %v", code, err)
		}
		for _, c := range status.Components {
			if strings.Contains(c.Exit, "SIGKILL") || c.Exit == "" {
				t.Errorf("%s ended with %q, want a graceful exit", c.Name, c.Exit)
			}
		}
	})
}

// TestPortTakenWhileStarting takes a port after the plane picked it and before the component listens on it.
func TestPortTakenWhileStarting(t *testing.T) {
	var squatter net.Listener
	defer func() { squatter.Close() }()
	picks := 0
	var ports topology.Ports
	dir := filepath.Join(planetest.Dir(t), "plane")
	plane, err := controlplane.Start(t.Context(), controlplane.Options{
		Dir: dir, Executable: shared.Binary, Progress: t.Output(),
		PickPorts: func(last topology.Ports) (topology.Ports, error) {
			var err error
			ports, err = controlplane.PickPorts(last)
			if picks++; picks == 1 && err == nil {
				squatter, err = net.Listen("tcp", fmt.Sprintf("%s:%d", topology.Host, ports["kube-scheduler-0"]))
			}
			return ports, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if picks != 2 {
		t.Errorf("ports were picked %d times, want 2", picks)
	}
	// etcd stores the ports of the failed attempt unless the plane updates them.
	if members := ok(t, "etcdctl", "--dir", dir, "member", "list"); !strings.Contains(members, topology.URL(ports[topology.PeerListener("etcd-0")])) {
		t.Errorf("etcd's peer URL is %s, but its member list contains\n%s", topology.URL(ports[topology.PeerListener("etcd-0")]), members)
	}
	now := make(chan struct{})
	close(now)
	plane.Stop(errors.New("the test is over"), now)
	plane.Release()
}

// TestComponentDiesWhileOthersStart checks that the error names the component that died, not a component that waited
// for it.
func TestComponentDiesWhileOthersStart(t *testing.T) {
	dir := filepath.Join(planetest.Dir(t), "plane")
	_, err := controlplane.Start(t.Context(), controlplane.Options{
		Dir: dir, Executable: shared.Binary, Progress: killsEtcd{t},
	})
	if err == nil || !strings.HasPrefix(err.Error(), "etcd-0 died after") || !strings.Contains(err.Error(), filepath.Join(dir, "logs", "etcd-0.log")) {
		t.Errorf("error = %v, want etcd-0 and its log", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 2 { // the logs and the lock file
		t.Errorf("entries of the directory = %v, want the logs and the lock file", left)
	}
}

// killsEtcd reads the progress messages of a start and kills etcd when it is ready.
type killsEtcd struct{ t *testing.T }

func (k killsEtcd) Write(line []byte) (int, error) {
	rest, ready := strings.CutPrefix(string(line), "etcd-0 ")
	if _, pid, found := strings.Cut(rest, "pid "); ready && found {
		n, err := strconv.Atoi(strings.TrimSpace(pid))
		if err == nil {
			err = syscall.Kill(n, syscall.SIGKILL)
		}
		if err != nil {
			k.t.Error(err)
		}
	}
	return len(line), nil
}

// TestDeviations checks that the plane reports the same upstream defaults as the components.
func TestDeviations(t *testing.T) {
	c := shared.Cluster()
	if len(c.Deviations) == 0 {
		t.Fatal("the plane lists no deviations")
	}
	status := ok(t, "status", "--dir", c.Dir)
	for _, d := range c.Deviations {
		if !strings.Contains(status, d.Setting) || !strings.Contains(status, d.Reason) {
			t.Errorf("status does not contain the deviation %+v", d)
		}
		name, isFlag := strings.CutPrefix(d.Setting, "--")
		if !isFlag {
			continue
		}
		ask, _ := json.Marshal(control.Check{Flags: control.Flags{name: d.Value}})
		stdout, stderr, code := runEnv(t, nil, string(ask), "check", d.Component)
		var checked control.Checked
		if err := json.Unmarshal([]byte(stdout), &checked); err != nil || code != 0 {
			t.Fatalf("check failed: %v %s", err, stderr)
		}
		upstream := strings.Trim(checked.Defaults[name], "[]")
		switch d.Setting { // components set these defaults later, not in the flag set
		case "--authorization-mode":
			upstream = "AlwaysAllow"
		case "--service-cluster-ip-range":
			upstream = "10.0.0.0/24"
		}
		if upstream != strings.Replace(d.Default, "(unset)", "", 1) && upstream != "<nil>" {
			t.Errorf("%s %s: the component's default is %q, but the plane reports %q", d.Component, d.Setting, upstream, d.Default)
		}
	}
}

// TestParentGone checks that a supervisor ends when the program that started it ends, and that all components end with
// the supervisor. The supervisor reads an end of file from the pipe.
func TestParentGone(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(planetest.Dir(t), "plane")
	cmd := exec.Command(shared.Binary, "up", "--dir", dir, "--output", "json")
	cmd.Env = append(os.Environ(), control.ParentPipeEnv+"=3")
	cmd.ExtraFiles = []*os.File{read}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read.Close()
	var c control.Cluster
	if err := json.NewDecoder(stdout).Decode(&c); err != nil {
		t.Fatal(err)
	}
	write.Close()
	err = cmd.Wait()
	if err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the supervisor was not killed by SIGKILL: %v", err)
	}
	eventually(t, 30*time.Second, "all processes are gone", func() bool { return gone(t, c) })
}
