// Package workload applies a scenario's actions to workloads, and measures the effects: the time until pods are bound and
// Ready, until all pods of a workload are Ready, and until failed nodes are NotReady.
//
// All times are arrival times of watch events. There is one watch per kind, on a separate connection, so that the
// generator's own traffic does not delay the events.
package workload

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Options configure a Workload.
type Options struct {
	// Namespace is the namespace of all objects. It must exist.
	Namespace string
	// Labels are the labels of every object. They select the run's pods, workloads and nodes. Required.
	Labels map[string]string
	// NodeSelector and Tolerations restrict every pod to the run's nodes.
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// DaemonTolerations are additional tolerations of the pods of DaemonSets.
	DaemonTolerations []corev1.Toleration
	// DeviceClass is the class of the devices that pods claim. Empty means that pods claim no devices.
	DeviceClass string
	// Registerer registers the metrics; nil means no metrics.
	Registerer prometheus.Registerer
	// Retry is the wait after the first failure of a list, a watch or another request. It doubles with each failure, up
	// to 5 s. Zero means 100 ms.
	Retry time.Duration
	// Stalls measures how long the generator was stalled. Nil means that it never was.
	Stalls *stall.Meter
	// Namespaces enables the measurement of how long the deletion of namespaces takes. Labels selects the namespaces.
	Namespaces bool
	// Kinds are the kinds of workloads to watch in addition to Deployments.
	Kinds []string
	// Patience is how long the Workload retries a request while the control plane is unavailable. Zero means no
	// retries.
	Patience time.Duration
}

// Workload changes the run's workloads and tracks their pods. It is safe for concurrent use.
type Workload struct {
	options  Options
	selector string
	http     *http.Client
	rest     *rest.RESTClient

	mu      sync.Mutex
	tracker *tracker
	demands map[string]*demand // by name of the Deployment
	synced  map[kind]bool
	waiters map[chan struct{}]bool
	ended   error // why Run ended; nil while it runs
}

// New creates a Workload. It sends no requests.
func New(cfg *rest.Config, o Options) (*Workload, error) {
	if o.Namespace == "" || len(o.Labels) == 0 {
		return nil, fmt.Errorf("workload: a namespace and labels are needed, got %q and %v", o.Namespace, o.Labels)
	}
	o.Retry = cmp.Or(o.Retry, 100*time.Millisecond)
	restClient, client, err := apiclient.NewREST(cfg)
	if err != nil {
		return nil, fmt.Errorf("workload: %w", err)
	}
	startup, deletion := newStartup(), newDeletion()
	w := &Workload{
		options: o, selector: labels.Set(o.Labels).String(), http: client, rest: restClient,
		tracker: newTracker(func(d time.Duration) { startup.Observe(d.Seconds()) }, o.Stalls.Total),
		demands: map[string]*demand{}, synced: map[kind]bool{}, waiters: map[chan struct{}]bool{},
	}
	w.tracker.onDeletion = func(d time.Duration) { deletion.Observe(d.Seconds()) }
	if o.Registerer != nil {
		state := func() []state { return ask(w, func(t *tracker) []state { return t.states(time.Now()) }) }
		rollouts := func() []result.Rollout { return ask(w, (*tracker).lastRollouts) }
		if err := register(o.Registerer, startup, w.Live, rollouts, state); err != nil {
			return nil, fmt.Errorf("workload: metrics: %w", err)
		}
		if o.Namespaces {
			if err := registerNamespaces(o.Registerer, deletion, w.Live); err != nil {
				return nil, fmt.Errorf("workload: metrics: %w", err)
			}
		}
	}
	return w, nil
}

// Run watches the run's objects until ctx ends. It continues after lost connections and expired resourceVersions. It
// returns an error if the API server refuses the first list of a kind (401, 403, 404).
func (w *Workload) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for k, path := range w.followed() {
		wg.Go(func() {
			if err := w.follow(ctx, k, path); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	utilnet.CloseIdleConnectionsFor(w.http.Transport)
	err := context.Cause(ctx)
	w.change(func(*tracker) { w.ended = fmt.Errorf("the tracker has ended: %w", err) })
	return err
}

// followed returns the API path of the watched collection, by kind.
func (w *Workload) followed() map[kind]string {
	all := []kind{podKind, nodeKind, deploymentKind, replicaSetKind, sliceKind}
	if w.options.Namespaces {
		all = append(all, namespaceKind)
	}
	for _, workload := range w.options.Kinds {
		k := kindOf(workload)
		all = append(all, k)
		if k == cronJobKind {
			all = append(all, jobKind)
		}
	}
	paths := map[kind]string{}
	for _, k := range all {
		paths[k] = k.root() + "/" + k.String()
		if k != nodeKind && k != namespaceKind {
			paths[k] = k.root() + "/namespaces/" + w.options.Namespace + "/" + k.String()
		}
	}
	return paths
}

// change calls f with the tracker, and wakes all callers of Wait.
func (w *Workload) change(f func(*tracker)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w.tracker)
	w.countDemands(time.Now())
	for c := range w.waiters {
		select {
		case c <- struct{}{}:
		default: // a wake-up is already pending
		}
	}
}

// Wait returns nil when cond holds, or an error when ctx or Run ends. It evaluates cond after every change.
func (w *Workload) Wait(ctx context.Context, cond func() bool) error {
	changed := make(chan struct{}, 1)
	w.mu.Lock()
	w.waiters[changed] = true
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.waiters, changed)
		w.mu.Unlock()
	}()
	for {
		if cond() {
			return nil
		}
		w.mu.Lock()
		ended := w.ended
		w.mu.Unlock()
		if ended != nil {
			return ended
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func ask[T any](w *Workload, f func(*tracker) T) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	return f(w.tracker)
}

// Synced reports whether the first list of every watched kind, except namespaces, has arrived.
func (w *Workload) Synced() bool {
	return ask(w, func(*tracker) bool {
		for k := range w.followed() {
			if !w.synced[k] && k != namespaceKind {
				return false
			}
		}
		return true
	})
}

// AllPodsReady reports whether each named workload has all its pods Ready on nodes that have not failed, and whether
// the statuses of the workloads confirm it. Without names, it checks all workloads.
func (w *Workload) AllPodsReady(names ...string) bool {
	return w.Synced() && ask(w, func(t *tracker) bool { return t.allPodsReady(names...) })
}

// NodesReady reports whether the API server reports all named nodes as Ready. With a simulated cloud, they must also be
// initialized.
func (w *Workload) NodesReady(names []string) bool {
	return ask(w, func(t *tracker) bool { return t.nodesReady(names) })
}

// AllNotReady reports whether nodes have failed and none of the failed nodes is Ready any more.
func (w *Workload) AllNotReady() bool { return ask(w, (*tracker).allFailedNotReady) }

// NotReady reports whether the API server reports none of the named nodes as Ready.
func (w *Workload) NotReady(names []string) bool {
	return ask(w, func(t *tracker) bool { return t.notReady(names) })
}

// NodesFailed records that nodes failed, and starts two measurements. NotReadyAfter ends when the API server reports
// these nodes as NotReady. RecoveredAfter ends when every workload has all its pods Ready on other nodes; it does not
// exist if no workload loses a pod. Each result belongs to the phase in which its measurement ends.
func (w *Workload) NodesFailed(at time.Time, names []string) {
	w.change(func(t *tracker) { t.nodesFailed(at, names) })
}

// NodesRecovered records that all failed nodes have started to return.
func (w *Workload) NodesRecovered() {
	w.change(func(t *tracker) { t.nodesRecovered(time.Now()) })
}

// BeginPhase begins a phase. A pod belongs to the phase in which it was first seen.
func (w *Workload) BeginPhase(name string, _ time.Time) {
	w.change(func(t *tracker) { t.beginPhase(name) })
}

// Results returns the results by phase. The key "" stands for the time before the first phase.
func (w *Workload) Results() map[string]result.Workload { return ask(w, (*tracker).results) }

// Live returns the current state.
func (w *Workload) Live() Live { return ask(w, (*tracker).liveNow) }
