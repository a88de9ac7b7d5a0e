package mirror

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// The intervals of a node's requests, the duration of its Lease, and the time limit of a request. A kubelet has the
// same intervals, except that it watches its pods instead of listing them.
const (
	renewEvery  = 10 * time.Second
	reportEvery = 5 * time.Minute
	listEvery   = 2 * renewEvery
	leaseLife   = 40 * time.Second
	within      = 10 * time.Second // time limit of one request
)

const roleLabel = "node-role.kubernetes.io/control-plane"

func nodeName(i int) string {
	if i == 0 {
		return "control-plane"
	}
	return "control-plane-" + strconv.Itoa(i)
}

// index returns the replica number of a component, such as 1 for "etcd-1".
func index(component string) int {
	i, _ := strconv.Atoi(component[strings.LastIndex(component, "-")+1:])
	return i
}

// node maintains one Node and its pods. Only the goroutine of run uses `registered` and the fields below it.
type node struct {
	cfg     *Config
	name    string
	index   int
	admin   kubernetes.Interface
	config  *rest.Config // client configuration with the node's credentials
	kubelet kubernetes.Interface
	changed chan struct{}
	started time.Time
	port    uint16 // port of the node's kubelet API

	registered *corev1.Node          // the node's Node object; nil before registration and after a failed request
	lease      *coordinationv1.Lease // the node's Lease as of the last renewal
	pods       map[string]*corev1.Pod
	// renewed, reported and listed are the times of the last renewal of the lease, the last status report and the last
	// list of pods.
	renewed, reported, listed time.Time
}

func newNode(cfg Config, i int, admin kubernetes.Interface) (*node, error) {
	n := &node{cfg: &cfg, name: nodeName(i), index: i, admin: admin, changed: make(chan struct{}, 1), started: time.Now()}
	n.config = rest.AnonymousClientConfig(cfg.Admin)
	var err error
	leaf := pki.Leaf{CommonName: n.user(), Organizations: []string{"system:nodes"}, Client: true}
	if n.config.CertData, n.config.KeyData, err = cfg.Keys.Issue(pki.ClientCA, leaf, time.Now()); err != nil {
		return nil, err
	}
	n.config.QPS, n.config.Timeout = -1, within
	n.config.ContentType = "application/vnd.kubernetes.protobuf"
	n.kubelet, err = kubernetes.NewForConfig(n.config)
	return n, err
}

func (n *node) user() string { return "system:node:" + n.name }

func (n *node) run(ctx context.Context) {
	for {
		again := renewEvery
		if n.sync(ctx) == nil {
			again = time.Until(n.renewed.Add(renewEvery))
		} else {
			n.registered = nil
		}
		timer := time.NewTimer(again)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-n.changed:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// sync sends the requests that are due.
func (n *node) sync(ctx context.Context) error {
	now := time.Now()
	if n.registered == nil {
		if err := n.register(ctx); err != nil {
			return err
		}
	}
	if now.Sub(n.renewed) >= renewEvery {
		if err := n.renew(ctx, now); err != nil {
			return err
		}
	}
	if now.Sub(n.reported) >= reportEvery || n.registered.Status.NodeInfo.KubeletVersion != n.version() {
		if err := n.report(ctx, now); err != nil {
			return err
		}
	}
	if now.Sub(n.listed) >= listEvery {
		if err := n.list(ctx, now); err != nil {
			return err
		}
	}
	return n.syncPods(ctx, now)
}

// register creates the Node, or takes over the Node that an earlier start of the plane created.
func (n *node) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	nodes := n.admin.CoreV1().Nodes()
	made, err := nodes.Create(ctx, n.object(), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		made, err = nodes.Get(ctx, n.name, metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	leases := n.kubelet.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	n.lease, err = leases.Get(ctx, n.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		n.lease, err = leases.Create(ctx, n.newLease(made.UID), metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	n.registered = made
	n.renewed, n.reported, n.listed = time.Time{}, time.Time{}, time.Time{}
	return nil
}

func (n *node) newLease(owner types.UID) *coordinationv1.Lease {
	seconds := int32(leaseLife / time.Second)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name:            n.name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.name, UID: owner}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &n.name, LeaseDurationSeconds: &seconds},
	}
}

func (n *node) renew(ctx context.Context, now time.Time) (err error) {
	n.lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
	n.lease, err = n.kubelet.CoordinationV1().Leases(corev1.NamespaceNodeLease).Update(ctx, n.lease, metav1.UpdateOptions{})
	n.renewed = now
	return err
}

func (n *node) report(ctx context.Context, now time.Time) error {
	status := n.status()
	for _, c := range []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"},
	} {
		c.LastHeartbeatTime, c.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
		for _, was := range n.registered.Status.Conditions {
			if was.Type == c.Type && was.Status == c.Status {
				c.LastTransitionTime = was.LastTransitionTime
			}
		}
		status.Conditions = append(status.Conditions, c)
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	n.registered, err = n.kubelet.CoreV1().Nodes().Patch(ctx, n.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	n.reported = now
	return err
}

func (n *node) object() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{
			corev1.LabelHostname: n.name, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH,
			"beta.kubernetes.io/os": runtime.GOOS, "beta.kubernetes.io/arch": runtime.GOARCH,
			roleLabel: "", corev1.LabelNodeExcludeBalancers: "",
		}},
		Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: roleLabel, Effect: corev1.TaintEffectNoSchedule}}},
		Status: n.status(),
	}
}

// status returns the Node's status without conditions. Its allocatable number of pods is 0, so that the scheduler
// places no pod there: nothing would run the pod, and some workloads tolerate every taint.
func (n *node) status() corev1.NodeStatus {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(process.TotalMemory()), resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(110, resource.DecimalSI),
	}
	allocatable := maps.Clone(capacity)
	allocatable[corev1.ResourcePods] = *resource.NewQuantity(0, resource.DecimalSI)
	return corev1.NodeStatus{
		Capacity: capacity, Allocatable: allocatable,
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: topology.Host}, {Type: corev1.NodeHostName, Address: n.name}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(n.port)}},
		NodeInfo: corev1.NodeSystemInfo{
			MachineID: n.name, SystemUUID: n.name, BootID: n.name,
			KernelVersion: kernelVersion(), OSImage: "Stormglass control plane", ContainerRuntimeVersion: "stormglass://processes",
			KubeletVersion: n.version(), OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
		},
	}
}

// version returns the node's version: the version of the oldest API server, because a kubelet must not be newer than an
// API server.
func (n *node) version() string {
	oldest := control.Newest()
	for _, c := range n.cfg.Components() {
		if c.Kind == control.KindAPIServer && oldest.AtLeast(c.Release.Minor) {
			oldest = c.Release
		}
	}
	return oldest.Kubernetes
}

func kernelVersion() string {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return ""
	}
	release, _, _ := bytes.Cut(uts.Release[:], []byte{0})
	return string(release)
}
