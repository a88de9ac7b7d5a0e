package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// The nodes that are compared.
const (
	realNode      = "real-0"
	simulatedNode = "simulated-0"
)

var nodes = []string{realNode, simulatedNode}

// namespace of the pods.
const namespace = "calibration"

// lab is a bundled plane with a real kubelet and a simulated one.
type lab struct {
	dir        string
	audit      string
	plane      *control.Supervisor
	config     *rest.Config
	client     *kubernetes.Clientset
	identities node.Identities
	rng        *rand.Rand
	undo       []func() // in the order of what was done
}

// close ends and removes all that was started, in reverse.
func (l *lab) close() {
	for _, undo := range slices.Backward(l.undo) {
		undo()
	}
	l.undo = nil
}

func (l *lab) file(name, text string) (string, error) {
	path := filepath.Join(l.dir, name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// auditPolicy logs the requests of nodes and their kube-proxies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Request, userGroups: [system:nodes], resources: [{resources: [events]}]}
- {level: %s, userGroups: [system:nodes]}
- {level: Metadata, users: [` + proxyUser + `]}
- {level: None}
`

func (l *lab) startPlane(ctx context.Context, binary, level string) error {
	policy, err := l.file("audit-policy.yaml", fmt.Sprintf(auditPolicy, level))
	if err != nil {
		return err
	}
	l.audit = filepath.Join(l.dir, "audit.log")
	l.plane, err = control.Start(ctx, control.StartOptions{Binary: binary, Dir: filepath.Join(l.dir, "plane"), Config: &control.Config{
		APIServer:         control.APIServer{Flags: control.Flags{"audit-policy-file": policy, "audit-log-path": l.audit}},
		ControllerManager: control.ControllerManager{QPS: 200, Burst: 400},
	}})
	if err != nil {
		return err
	}
	l.undo = append(l.undo, func() { _ = l.plane.Stop(context.Background()) })
	cluster := l.plane.Cluster()
	if l.config, err = clientcmd.BuildConfigFromFlags("", cluster.Kubeconfigs["admin"]); err != nil {
		return err
	}
	l.config.QPS = -1
	if l.client, err = kubernetes.NewForConfig(l.config); err != nil {
		return err
	}
	if l.identities, err = node.NewSigner(l.config, cluster.NodeCA); err != nil {
		return err
	}
	_, err = l.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := l.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
}

// start starts a program that ends with this one, its output added to a file of its name.
func (l *lab) start(name string, args ...string) (stop func(), err error) {
	log, err := os.OpenFile(filepath.Join(l.dir, filepath.Base(name)+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its log says why
		log.Close()
	}()
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
	})
	l.undo = append(l.undo, stop)
	return stop, nil
}

const runtimeConfig = `version = 2
root = "%[1]s/containerd"
state = "%[1]s/containerd-state"
[grpc]
address = "%[2]s"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "` + sandboxImage + `"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "%[3]s"
conf_dir = "%[1]s/cni"
`

const network = `{"cniVersion": "0.4.0", "name": "calibration", "plugins": [{"type": "ptp",
"ipam": {"type": "host-local", "dataDir": "%s/addresses", "ranges": [[{"subnet": "10.244.200.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
`

// startRuntime starts containerd, with its images and its network, in the lab's directory.
func (l *lab) startRuntime(ctx context.Context, plugins string) (socket string, err error) {
	image, err := writeImage(l.dir)
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(filepath.Join(l.dir, "cni"), 0o700); err != nil {
		return "", err
	}
	if _, err := l.file("cni/10-calibration.conflist", fmt.Sprintf(network, l.dir)); err != nil {
		return "", err
	}
	socket = filepath.Join(l.dir, "containerd.sock")
	config, err := l.file("containerd.toml", fmt.Sprintf(runtimeConfig, l.dir, socket, plugins))
	if err != nil {
		return "", err
	}
	l.undo = append(l.undo, l.unmount)
	if _, err := l.start("containerd", "--config", config); err != nil {
		return "", err
	}
	l.undo = append(l.undo, func() { endContainers(socket) })
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
		}
		return err == nil, nil
	})
	if err != nil {
		return "", fmt.Errorf("containerd does not listen (see %s): %w", filepath.Join(l.dir, "containerd.log"), err)
	}
	if out, err := exec.CommandContext(ctx, "ctr", "-a", socket, "-n", "k8s.io", "images", "import", "--snapshotter", "native", image).CombinedOutput(); err != nil {
		return "", fmt.Errorf("import the image: %w: %s", err, out)
	}
	return socket, nil
}

// endContainers kills what an interrupted calibration has left running.
func endContainers(socket string) {
	ctr := func(args ...string) string {
		out, _ := exec.Command("ctr", append([]string{"-a", socket, "-n", "k8s.io"}, args...)...).Output()
		return string(out)
	}
	for _, task := range strings.Fields(ctr("tasks", "list", "-q")) {
		ctr("tasks", "delete", "--force", task)
	}
}

// unmount releases what is mounted below the directory, the last one first.
func (l *lab) unmount() {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return
	}
	for _, line := range slices.Backward(strings.Split(string(data), "\n")) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], l.dir+"/") {
			_ = unix.Unmount(fields[4], unix.MNT_DETACH)
		}
	}
}

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: %d
healthzPort: 0
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: %q}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
failCgroupV1: false
cgroupsPerQOS: false
enforceNodeAllocatable: []
oomScoreAdj: 0
failSwapOn: false
makeIPTablesUtilChains: false
containerRuntimeEndpoint: unix://%s
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
evictionHard: {memory.available: 1Mi, nodefs.available: 1%%, imagefs.available: 1%%, nodefs.inodesFree: 1%%}
volumePluginDir: %[4]s/volume-plugins
podLogsDir: %[4]s/pod-logs
`

// systemDirs are made by a kubelet wherever its own directory is.
var systemDirs = []string{"/var/lib/kubelet", "/var/log/pods", "/var/log/containers", "/usr/libexec/kubernetes"}

func (l *lab) removeSystemDirs() {
	for _, dir := range systemDirs {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			l.undo = append(l.undo, func() { _ = os.RemoveAll(dir) })
		}
	}
}

// startKubelet starts the kubelet of a node, with a directory of its own.
func (l *lab) startKubelet(ctx context.Context, binary, socket, name string) (stop func(), err error) {
	config, err := l.identities.For(ctx, name)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(l.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*fileOf(config), kubeconfig); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	settings, err := l.file(name+"/kubelet.yaml", fmt.Sprintf(kubeletConfig, port, l.plane.Cluster().CAFile, socket, l.dir))
	if err != nil {
		return nil, err
	}
	return l.start(binary, "--config", settings, "--kubeconfig", kubeconfig, "--hostname-override", name,
		"--root-dir", dir, "--cert-dir", filepath.Join(dir, "pki"), "--v", "2")
}

func fileOf(c *rest.Config) *clientcmdapi.Config {
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData, TLSServerName: c.ServerName}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "x"
	return file
}

func (l *lab) startFleet(ctx context.Context, prefix string, count int, kubeProxy bool) (stop func(), err error) {
	s, err := scenario.ForNodes(count, node.Kubelet, nil)
	if err != nil {
		return nil, err
	}
	s.Nodes.KubeProxy = kubeProxy
	fleet, err := node.New(node.Config{Spec: s.Nodes, Identities: l.identities, NamePrefix: prefix, Seed: 1})
	if err != nil {
		return nil, err
	}
	stop = sync.OnceFunc(func() { fleet.Stop(context.Background()) })
	l.undo = append(l.undo, stop)
	return stop, fleet.Start(ctx)
}

// unregister deletes nodes, and what goes with them.
func (l *lab) unregister(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := l.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// awaitReady waits until nodes are Ready and have a Lease: a kubelet makes it later.
func (l *lab) awaitReady(ctx context.Context, names []string) error {
	for _, name := range names {
		err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
			if _, err := l.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, name, metav1.GetOptions{}); err != nil {
				return false, nil
			}
			n, err := l.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			return err == nil && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			}), nil
		})
		if err != nil {
			return fmt.Errorf("node %s is not Ready (logs: %s): %w", name, l.dir, err)
		}
	}
	return nil
}
