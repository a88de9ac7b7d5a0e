// Package realnode runs real kubelets on this machine, with containerd and runc. They join a control plane started by
// Stormglass.
//
// A Node has its own process IDs, mounts and network. When a Node ends, or when the program that started it is killed,
// the kernel kills the Node's processes and removes its mounts. The network:
//
//	this machine, 10.213.K.1 ── node, 10.213.K.2 ── pods, 10.213.K.128/25
//
// Pods can connect to the API server at the address of the Service kubernetes, and to programs on this machine at
// HostAddress. The API server and programs on this machine can connect to the kubelet and the pods. Other Services work
// only if the caller starts a kube-proxy. There is no DNS. Pods of different nodes cannot connect to each other.
//
// There is no image registry: LoadImage creates images from programs. Containers need imagePullPolicy Never or
// IfNotPresent.
package realnode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/node"
)

// KubeletEnv is the environment variable with the path of the kubelet program. It applies if Options.Kubelet is empty.
const KubeletEnv = "STORMGLASS_KUBELET"

// Options configure a Node.
type Options struct {
	// Name is the name of the first node. Start starts its kubelet and returns when the node is Ready. If Name is
	// empty, Start starts no kubelet; the caller starts kubelets with Join.
	Name string
	// Kubelet is the path of the kubelet program; "" means $STORMGLASS_KUBELET (`make kubelet` builds one).
	Kubelet string
	// Settings are fields of the kubelet's configuration, see Join.
	Settings []string
	// Dir is the directory for configuration and logs, which Stop does not remove. Empty means a temporary directory
	// that Stop removes.
	Dir string
}

// Node is a container runtime and the kubelets that use it.
type Node struct {
	// Name is Options.Name. It is empty if Start started no kubelet.
	Name string

	kubelet    string
	cluster    control.Cluster
	client     *kubernetes.Clientset
	identities node.Authority
	dir        string
	temporary  bool
	spaces     *namespaces
	link       link
	// madePlugins reports whether the node created the directory pluginsOfKubelets on this machine.
	madePlugins bool
	relays      []net.Listener
	server      string // URL of the API server for programs in the node
	kubelets    int    // number of kubelets that were started
}

// Start starts a container runtime and, if Options name a node, its kubelet.
func Start(ctx context.Context, cluster control.Cluster, o Options) (*Node, error) {
	missing, plugins := Lacks()
	if len(missing) > 0 {
		return nil, fmt.Errorf("this machine lacks %s", strings.Join(missing, "; "))
	}
	n := &Node{Name: o.Name, cluster: cluster}
	if err := n.configure(o); err != nil {
		return nil, err
	}
	err := n.start(ctx, plugins)
	if err == nil && o.Name != "" {
		if _, err = n.Join(ctx, o.Name, o.Settings...); err == nil {
			err = AwaitReady(ctx, n.client, o.Name)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a node (logs: %s): %w", n.keepLogs(), err), n.Stop())
	}
	return n, nil
}

func (n *Node) configure(o Options) (err error) {
	program := o.Kubelet
	if program == "" {
		program = os.Getenv(KubeletEnv)
	}
	if program == "" {
		return fmt.Errorf("the path of the kubelet program is missing: set %s (`make kubelet` builds bin/kubelet)", KubeletEnv)
	}
	if n.kubelet, err = filepath.Abs(program); err != nil {
		return err
	}
	if _, err := os.Stat(n.kubelet); err != nil {
		return fmt.Errorf("the kubelet program: %w (`make kubelet` builds bin/kubelet)", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", n.cluster.Kubeconfigs["admin"])
	if err != nil {
		return err
	}
	config.QPS = -1
	if n.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if n.identities, err = node.NewSigner(config, n.cluster.NodeCA); err != nil {
		return err
	}
	if o.Dir == "" {
		n.temporary = true
		n.dir, err = os.MkdirTemp("", "realnode-")
		return err
	}
	if n.dir, err = filepath.Abs(o.Dir); err != nil {
		return err
	}
	return os.MkdirAll(n.dir, 0o700)
}

func (n *Node) start(ctx context.Context, plugins string) (err error) {
	_, err = os.Stat(pluginsOfKubelets)
	n.madePlugins = errors.Is(err, fs.ErrNotExist)
	if n.spaces, err = newNamespaces(n.dir); err != nil {
		return err
	}
	service, err := n.client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return err
	}
	address, err := netip.ParseAddr(service.Spec.ClusterIP)
	if err != nil {
		return fmt.Errorf("the Service kubernetes: %w", err)
	}
	if n.link, err = connect(ctx, n.spaces, address); err != nil {
		return err
	}
	if n.server, err = n.relay(netip.AddrPortFrom(address, 443)); err != nil {
		return err
	}
	return n.startRuntime(ctx, plugins)
}

// HostAddress returns this machine's address in the node's network. Pods use it to connect to programs on this machine
// that listen on this address or on all addresses.
func (n *Node) HostAddress() netip.Addr { return n.link.host }

// Address returns the node's InternalIP.
func (n *Node) Address() netip.Addr { return n.link.node }

// Run starts a program in the node, as root, and appends its output to a log in the node's directory. stop ends the
// program.
func (n *Node) Run(program string, args ...string) (stop func(), err error) {
	path, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	return n.spaces.start(filepath.Join(n.dir, filepath.Base(program)+".log"), path, args...)
}

// Stop kills all processes of the node, and removes its network and cgroups. The Node object stays in the API, as it
// does for a machine that was switched off.
func (n *Node) Stop() error {
	if n.dir == "" {
		return nil
	}
	var errs []error
	for _, relay := range n.relays {
		relay.Close()
	}
	if n.spaces != nil {
		errs = append(errs, n.spaces.close())
	}
	errs = append(errs, n.link.remove(), removeCgroups(n.containers()))
	if n.madePlugins {
		errs = append(errs, os.RemoveAll(pluginsOfKubelets))
	}
	if n.temporary {
		errs = append(errs, os.RemoveAll(n.dir))
	}
	n.dir = ""
	return errors.Join(errs...)
}

// keepLogs returns the node's directory, and makes Stop keep it.
func (n *Node) keepLogs() string {
	n.temporary = false
	return n.dir
}

func (n *Node) file(name, text string) (path string, err error) {
	path = filepath.Join(n.dir, name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// AwaitReady waits until each node is Ready and has a Lease. A kubelet may create the Lease after it is Ready.
func AwaitReady(ctx context.Context, client kubernetes.Interface, names ...string) error {
	for _, name := range names {
		err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
			if _, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, name, metav1.GetOptions{}); err != nil {
				return false, nil
			}
			n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			return err == nil && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			}), nil
		})
		if err != nil {
			return fmt.Errorf("node %s is not Ready: %w", name, err)
		}
	}
	return nil
}
