package job

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
)

// Starter is a workers.Starter that starts workers as the pods of a Job.
type Starter struct {
	Options
	// Kubeconfig selects the cluster in which the workers run.
	Kubeconfig cluster.Kubeconfig
	// OfTarget means that the workers run in the cluster under load. They then reach its API server through the Service
	// "kubernetes".
	OfTarget bool
}

var _ workers.Starter = Starter{}

// oldest is the minimum Kubernetes version for workers in a cluster. Indexed Jobs are stable since this version.
var oldest = version.MustParseGeneric("1.24")

// runJob manages the Job of one run, and the objects that it created for the Job.
type runJob struct {
	setup
	workers.Invitation
	config *rest.Config
	client kubernetes.Interface
	where  string // the name of the cluster
	ended  func(index int, why error)

	ctx    context.Context // canceled by stop
	cancel context.CancelFunc
	all    sync.WaitGroup
	made   []func(context.Context) error // functions that delete the created objects, called in reverse order

	mu      sync.Mutex
	reached map[types.UID]bool // pods for which the method `reach` was started
	gone    map[types.UID]bool // pods that were reported as ended
}

// Start creates the Job and the other objects that its pods need.
func (s Starter) Start(ctx context.Context, i workers.Invitation, ended func(index int, why error)) (workers.Started, error) {
	config, where, err := s.Kubeconfig.Config()
	if err != nil {
		return workers.Started{}, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return workers.Started{}, fmt.Errorf("create a client for cluster %s: %w", where, err)
	}
	c := &runJob{
		setup: s.setup(i.Count, i.Run, i.Address), Invitation: i, config: config, client: client, where: where, ended: ended, reached: map[types.UID]bool{}, gone: map[types.UID]bool{},
	}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	err = c.make(ctx)
	var api *workers.API
	if err == nil && s.OfTarget {
		api, err = c.api(ctx)
	}
	if err != nil {
		return workers.Started{}, errors.Join(err, c.stop())
	}
	c.all.Go(c.watchPods)
	c.all.Go(c.watchEvents)
	return workers.Started{Stop: c.stop, API: api}, nil
}

// Describe names the Job's pods, their image and their namespace.
func (s Starter) Describe(count int, run string) string { return s.setup(count, run, "").String() }

func (s Starter) setup(count int, run, coordinator string) setup {
	p := setup{Options: s.Options, name: account + "-" + run, namespace: s.Namespace, count: count, coordinator: coordinator, run: run}
	if p.namespace == "" {
		p.namespace, p.makes = "stormglass-"+run+"-workers", true
	}
	return p
}

// make creates the objects. If the API server refuses one, the error names the object and suggests a remedy.
func (c *runJob) make(ctx context.Context) error {
	if err := c.checkVersion(); err != nil {
		return err
	}
	objects, err := c.objects()
	if err != nil {
		return err
	}
	var job *batchv1.Job
	for _, o := range objects {
		if err := c.create(ctx, o); err != nil {
			return c.explain(err)
		}
		if made, ok := o.(*batchv1.Job); ok {
			job = made
		}
	}
	_, err = c.client.CoreV1().Secrets(c.namespace).Create(ctx, c.secret(job, c.CA, c.Token), metav1.CreateOptions{})
	return c.explain(err)
}

func (c *runJob) checkVersion() error {
	info, err := c.client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("cluster %s for the workers cannot be reached: %w", c.where, err)
	}
	is, err := version.ParseGeneric(info.GitVersion)
	if err == nil && is.LessThan(oldest) {
		return fmt.Errorf("the workers' cluster %s runs Kubernetes %s, but their Indexed Job requires %s or newer (to start workers by hand, use --workers-listen)", c.where, info.GitVersion, oldest)
	}
	return nil
}

// create creates an object and registers its removal.
func (c *runJob) create(ctx context.Context, o runtime.Object) (err error) {
	switch o := o.(type) {
	case *corev1.Namespace:
		_, err = create(ctx, c, c.client.CoreV1().Namespaces(), o, "namespace "+o.Name, true)
	case *corev1.ServiceAccount:
		_, err = create(ctx, c, c.client.CoreV1().ServiceAccounts(o.Namespace), o, "ServiceAccount "+o.Namespace+"/"+o.Name, false)
	case *batchv1.Job:
		var made *batchv1.Job
		if made, err = create(ctx, c, c.client.BatchV1().Jobs(o.Namespace), o, "job "+o.Namespace+"/"+o.Name, true); err == nil {
			o.UID = made.UID // the Secret has the Job as its owner
		}
	}
	return err
}

// objects is the client of one kind of object in one namespace.
type objects[T metav1.Object] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Get(context.Context, string, metav1.GetOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

// removeWithin is the time limit for deleting one object. A namespace takes a few seconds longer than its last pod.
const removeWithin = time.Minute

// create creates an object and registers its removal. If awaited is true, the removal waits until the object is gone.
func create[T metav1.Object](ctx context.Context, c *runJob, in objects[T], o T, what string, awaited bool) (made T, err error) {
	if made, err = in.Create(ctx, o, metav1.CreateOptions{}); err != nil {
		return made, err
	}
	foreground := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}
	c.made = append(c.made, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, removeWithin)
		defer cancel()
		err := wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			err := in.Delete(ctx, o.GetName(), foreground)
			if err == nil && awaited {
				_, err = in.Get(ctx, o.GetName(), metav1.GetOptions{})
			}
			switch {
			case apierrors.IsNotFound(err), err == nil && !awaited:
				return true, nil
			case apierrors.IsForbidden(err):
				return false, err
			}
			return false, nil // the API server is unavailable, or the object is being deleted
		})
		if err != nil {
			return fmt.Errorf("the workers' %s still exists: %w (remove it with `loadgen cleanup --run %s`)", what, err, c.run)
		}
		return nil
	})
	return made, nil
}

// stop ends the pods that still run, and deletes the created objects.
func (c *runJob) stop() error {
	c.cancel()
	c.all.Wait()
	var errs []error
	made := c.made
	if c.makes && len(made) > 1 {
		made = made[:1] // deleting the namespace deletes the objects in it
	}
	for i := len(made) - 1; i >= 0; i-- {
		errs = append(errs, made[i](context.WithoutCancel(c.ctx)))
	}
	return errors.Join(errs...)
}

// explain adds a remedy to the error of a request to the API server, if it knows one.
func (c *runJob) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("cluster %s: %w (to see the required RBAC rules, run `loadgen run NAME --workers N --image NAME --render`; to let another user create the objects, use --workers-listen)", c.where, err)
	case apierrors.IsNotFound(err) && !c.makes:
		return fmt.Errorf("cluster %s: %w (create the namespace first, or leave out --workers-namespace)", c.where, err)
	}
	return fmt.Errorf("cluster %s: %w", c.where, err)
}

// rootCA is the name of a ConfigMap that each namespace has. It contains the CA of the API server behind the Service
// "kubernetes".
const rootCA = "kube-root-ca.crt"

// api returns the address and CA for connections from pods in this cluster to its API server.
func (c *runJob) api(ctx context.Context) (*workers.API, error) {
	service, err := c.client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return nil, c.explain(err)
	}
	if len(service.Spec.Ports) == 0 {
		return nil, fmt.Errorf("cluster %s: the Service kubernetes has no port", c.where)
	}
	api := &workers.API{Host: "https://" + net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(service.Spec.Ports[0].Port)))}
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 15*time.Second, true, func(ctx context.Context) (bool, error) {
		m, err := c.client.CoreV1().ConfigMaps(c.namespace).Get(ctx, rootCA, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil // the controller manager creates it
		}
		if err != nil {
			return false, c.explain(err)
		}
		api.CA = []byte(m.Data["ca.crt"])
		return len(api.CA) > 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: %w", c.namespace, rootCA, err)
	}
	return api, nil
}

const (
	// dialAgain is the pause between attempts to connect to a pod's port.
	dialAgain = 500 * time.Millisecond
	// tellAfter is how long `reach` retries before it tells the user that the worker does not answer.
	tellAfter = 10 * time.Second
)

// reach connects to the worker in a pod through the API server, and then handles the connection. It retries until the
// worker has joined or the pod is gone.
func (c *runJob) reach(pod string) {
	told, since := false, time.Now()
	for c.ctx.Err() == nil {
		conn, err := forward(c.ctx, c.config, c.client, c.namespace, pod)
		if err == nil {
			var joined bool
			if joined, err = c.Take(conn); joined {
				return
			}
		}
		switch {
		case c.ctx.Err() != nil:
			return
		case apierrors.IsNotFound(err):
			return // the pod is gone, which watchPods reports
		case told:
		case apierrors.IsForbidden(err):
			told = true
			c.Tell("pod %s/%s: its port cannot be forwarded: %v (grant create of pods/portforward, or set an address for workers with --workers-listen and --workers-advertise)", c.namespace, pod, err)
		case time.Since(since) > tellAfter:
			told = true
			c.Tell("pod %s/%s runs, but no worker answers at port %d: %s (is loadgen the entry point of image %s?)", c.namespace, pod, port, oneLine(err.Error()), c.Image)
		}
		apiclient.Pause(c.ctx, dialAgain)
	}
}

// Needs returns the RBAC rules that a run needs to start these workers. carried means that the coordinator connects to
// the pods by port forwarding.
func (s Starter) Needs(carried bool) cluster.Rules {
	r, at := cluster.Rules{}, s.Namespace
	serviceAccounts, jobs := "create delete", "create get delete"
	if at == "" { // the run creates a namespace, whose name is unknown in advance; deleting it deletes its contents
		r.Allow("", "create get delete", "", "namespaces")
		serviceAccounts, jobs = "create", "create"
	}
	r.Allow(at, serviceAccounts, "", "serviceaccounts")
	r.Allow(at, "create", "", "secrets")
	r.Allow(at, jobs, "batch", "jobs")
	r.Allow(at, "list watch", "", "pods")
	r.Allow(at, "list watch", "", "events")
	if carried {
		r.Allow(at, "create get", "", "pods/portforward") // a WebSocket is opened with a GET
	}
	if s.OfTarget {
		r.Allow(at, "get", "", "configmaps", rootCA)
		r.Allow(metav1.NamespaceDefault, "get", "", "services", "kubernetes")
	}
	return r
}

// indexOf returns the index of the worker that runs in a pod, or false if the pod has no valid index.
func indexOf(p *corev1.Pod) (int, bool) {
	index, err := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation])
	return index, err == nil
}
