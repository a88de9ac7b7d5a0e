//go:build realnode

package realnode

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/planetest"
)

var plane planetest.Plane

// killedEnv is the environment variable with the cluster of a test program that starts a node and is then killed.
const killedEnv = "REALNODE_TEST_KILLED"

// killedNode is the name of that test program's node.
const killedNode = "real-d"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedEnv); dir != "" {
		os.Exit(startAndWait(dir))
	}
	os.Exit(planetest.Main(m, &plane))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, ctx context.Context, name string) *Node {
	t.Helper()
	n, err := Start(ctx, plane.Cluster(), Options{Name: name})
	must(t, err)
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Errorf("stop node %s: %v", name, err)
		}
		forget(t, name)
	})
	return n
}

// forget deletes the Node object of a node that has ended. Otherwise the scheduler would place pods of other tests on
// it until it is NotReady.
func forget(t *testing.T, name string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", plane.Cluster().Kubeconfigs["admin"])
	must(t, err)
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	must(t, client.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}))
}

func poll(t *testing.T, ctx context.Context, what string, f func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return f(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

const image = "stormglass.invalid/test:1"

// restricted returns a pod spec that Pod Security admits under its strictest profile.
func restricted(args ...string) corev1.PodSpec {
	yes, no, user := true, false, int64(1000)
	return corev1.PodSpec{
		RestartPolicy:   corev1.RestartPolicyNever,
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{
			Name: "c", Image: image, ImagePullPolicy: corev1.PullNever, Args: args,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
}

// The pods of an Indexed Job spread over two nodes. They reach the API server and this machine, and clients can read
// their logs through the API server. The pods of a drained node start again on the other node.
func TestPodsOfTwoNodes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	a, b := start(t, ctx, "real-a"), start(t, ctx, "real-b")
	program, err := BuildContainer(ctx, t.TempDir())
	must(t, err)
	for _, n := range []*Node{a, b} {
		must(t, n.LoadImage(ctx, program, image))
	}
	client := a.client
	const namespace = "real"
	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { // runs before the nodes end
		must(t, client.CoreV1().Namespaces().Delete(context.Background(), namespace, metav1.DeleteOptions{}))
		poll(t, context.Background(), "the namespace goes", func() bool {
			_, err := client.CoreV1().Namespaces().Get(context.Background(), namespace, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	})
	poll(t, ctx, "the service account", func() bool {
		_, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	must(t, err)
	defer listener.Close()
	reported := make(chan string, 100)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(conn).ReadString('\n')
			conn.Close()
			reported <- line
		}
	}()
	port := listener.Addr().(*net.TCPAddr).Port
	indexed, three := batchv1.IndexedCompletion, int32(3)
	spec := restricted("--api", "--report", fmt.Sprintf("%s:%d", a.HostAddress(), port))
	_, err = client.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "workers"}, Spec: batchv1.JobSpec{
		Completions: &three, Parallelism: &three, CompletionMode: &indexed, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "workers"}}, Spec: spec,
		},
	}}, metav1.CreateOptions{})
	must(t, err)
	indices := map[string]bool{}
	for len(indices) < 3 {
		select {
		case line := <-reported:
			fields := strings.Fields(line)
			if len(fields) != 2 || !strings.HasPrefix(fields[0], "workers-"+fields[1]) {
				t.Fatalf("a pod reported %q", line)
			}
			indices[fields[1]] = true
		case <-ctx.Done():
			t.Fatalf("only the pods with the indexes %v reported", indices)
		}
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=workers"})
	must(t, err)
	log, err := client.CoreV1().Pods(namespace).GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{}).Stream(ctx)
	must(t, err)
	defer log.Close()
	text, err := io.ReadAll(log)
	must(t, err)
	if string(text) != "the API server answers\n" {
		t.Errorf("log %q", text)
	}

	cordon := func(node, value string) {
		_, err := client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(`{"spec":{"unschedulable":`+value+`}}`), metav1.PatchOptions{})
		must(t, err)
	}
	cordon(b.Name, "true")
	service := restricted()
	service.RestartPolicy = corev1.RestartPolicyAlways
	labels := map[string]string{"app": "service"}
	_, err = client.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "service"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: service},
	}}, metav1.CreateOptions{})
	must(t, err)
	runsOn := func(node string) (name string) {
		poll(t, ctx, "a pod runs on "+node, func() bool {
			pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=service"})
			must(t, err)
			for _, p := range pods.Items {
				if p.Spec.NodeName == node && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
					name = p.Name
				}
			}
			return name != ""
		})
		return name
	}
	first := runsOn(a.Name)
	cordon(b.Name, "false")
	cordon(a.Name, "true")
	must(t, client.CoreV1().Pods(namespace).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: first, Namespace: namespace}}))
	runsOn(b.Name)
}

// left returns the processes, mounts, devices and cgroups of existing nodes.
func left(t *testing.T, dir string) (all []string) {
	t.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, path := range commands {
		line, _ := os.ReadFile(path)
		if strings.Contains(string(line), dir) && !strings.HasPrefix(path, fmt.Sprintf("/proc/%d/", os.Getpid())) {
			all = append(all, "process "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	must(t, err)
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, dir) {
			all = append(all, "mount "+line)
		}
	}
	devices, err := filepath.Glob("/sys/class/net/sgnode*")
	must(t, err)
	return append(all, devices...)
}

func TestNothingIsLeftOfANode(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	groups := cgroupsOf(t)
	n, err := Start(ctx, plane.Cluster(), Options{Name: "real-c"})
	must(t, err)
	dir := n.dir
	program, err := BuildContainer(ctx, t.TempDir())
	must(t, err)
	must(t, n.LoadImage(ctx, program, image))
	run(t, ctx, n, "left")
	if len(left(t, dir)) == 0 {
		t.Error("left lists nothing for a running node")
	}
	must(t, n.Stop())
	if all := left(t, dir); len(all) > 0 {
		t.Errorf("left: %q", all)
	}
	if now := cgroupsOf(t); now != groups {
		t.Errorf("cgroups before the node: %s\nafter it: %s", groups, now)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("directory %s still exists", dir)
	}
	must(t, n.Stop()) // a second call
	forget(t, n.Name)
}

// cgroupsOf lists the cgroups of containers.
func cgroupsOf(t *testing.T) string {
	t.Helper()
	all, err := filepath.Glob(cgroups + "/*/k8s.io/*")
	must(t, err)
	return strings.Join(all, " ")
}

// run creates a pod on a node and waits until it runs.
func run(t *testing.T, ctx context.Context, n *Node, name string) {
	t.Helper()
	pods := n.client.CoreV1().Pods("default")
	spec := restricted()
	spec.NodeName = n.Name
	poll(t, ctx, "the service account", func() bool {
		_, err := n.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
	_, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	must(t, err)
	poll(t, ctx, name+" runs", func() bool {
		p, err := pods.Get(ctx, name, metav1.GetOptions{})
		must(t, err)
		return p.Status.Phase == corev1.PodRunning
	})
	t.Cleanup(func() {
		now := int64(0)
		must(t, pods.Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
	})
}

// A node ends when the program that started it ends, even if the program is killed.
func TestNodeEndsWithAKilledProgram(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), killedEnv+"="+plane.Cluster().Dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the program started no node: %v", err)
	}
	dir := strings.TrimSpace(line)
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // the process was killed
	poll(t, ctx, "nothing is left", func() bool { return len(left(t, dir)) == 0 })
	must(t, os.RemoveAll(dir))
	forget(t, killedNode)
}

// startAndWait starts a node, prints its directory, and waits until it is killed.
func startAndWait(planeDir string) int {
	cluster, err := control.Load(planeDir)
	if err == nil {
		var n *Node
		if n, err = Start(context.Background(), cluster, Options{Name: killedNode}); err == nil {
			fmt.Println(n.dir)
			select {}
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}
