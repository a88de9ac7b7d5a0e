package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/realnode"
	"github.com/stormglass/stormglass/loadgen/lab/calibrate/runner"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Names of the nodes that are compared.
const (
	realNode      = "real-0"
	simulatedNode = "simulated-0"
)

var nodes = []string{realNode, simulatedNode}

// namespace is the namespace of the pods. containerImage is the image of their containers.
const (
	namespace      = "calibration"
	containerImage = "stormglass.invalid/container:1"
)

// lab is a bundled control plane with a real kubelet and a simulated node.
type lab struct {
	dir        string
	audit      string
	plane      *control.Supervisor
	config     *rest.Config
	client     *kubernetes.Clientset
	identities node.Identities
	node       *realnode.Node
	rng        *rand.Rand
	undo       []func() // functions that close calls in reverse order
}

// close stops and removes everything that the lab started, in reverse order.
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

// auditPolicy is an audit policy that logs only the requests of nodes and their kube-proxies.
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
	if l.config, l.client, err = runner.Client(l.plane); err != nil {
		return err
	}
	if l.identities, err = node.NewSigner(l.config, l.plane.Cluster().NodeCA); err != nil {
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

// startNode starts a container runtime and loads the image for the pods. If o.Name is set, it also starts a kubelet.
func (l *lab) startNode(ctx context.Context, dir string, o realnode.Options) (*realnode.Node, error) {
	o.Dir = filepath.Join(l.dir, dir)
	n, err := realnode.Start(ctx, l.plane.Cluster(), o)
	if err != nil {
		return nil, err
	}
	l.undo = append(l.undo, func() {
		if err := n.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "calibrate:", err)
		}
	})
	program, err := realnode.BuildContainer(ctx, l.dir)
	if err != nil {
		return nil, err
	}
	return n, n.LoadImage(ctx, program, containerImage)
}

func (l *lab) startFleet(ctx context.Context, prefix string, count int, kubeProxy bool, lives ...scenario.PodLife) (stop func(), err error) {
	s, err := scenario.ForNodes(count, node.Kubelet, nil)
	if err != nil {
		return nil, err
	}
	s.Nodes.KubeProxy, s.Nodes.PodLives = kubeProxy, lives
	fleet, err := node.New(node.Config{Spec: s.Nodes, Identities: l.identities, NamePrefix: prefix, Seed: 1})
	if err != nil {
		return nil, err
	}
	stop = sync.OnceFunc(func() { fleet.Stop(context.Background()) })
	l.undo = append(l.undo, stop)
	return stop, fleet.Start(ctx)
}

func (l *lab) unregister(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := l.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func (l *lab) awaitReady(ctx context.Context, names []string) error {
	if err := realnode.AwaitReady(ctx, l.client, names...); err != nil {
		return fmt.Errorf("%w (logs: %s)", err, l.dir)
	}
	return nil
}
