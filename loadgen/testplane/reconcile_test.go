package testplane_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/stormglass/stormglass/loadgen"
)

// reconcile measures the time from a site's event to its Secret's event.
type reconcile struct {
	mu      sync.Mutex
	changed chan struct{} // closed with each Secret
	made    map[string]time.Time
	took    []float64
}

func newReconcile() *reconcile {
	return &reconcile{changed: make(chan struct{}), made: map[string]time.Time{}}
}

func (r *reconcile) Prepare(ctx context.Context, cfg *rest.Config, namespace string, _ map[string]string) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = siteLabel }))
	sites, secrets := factory.Core().V1().ConfigMaps().Informer(), factory.Core().V1().Secrets().Informer()
	_, err = sites.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) { r.site(o.(*corev1.ConfigMap).Name) }})
	if err != nil {
		return err
	}
	if _, err := secrets.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) { r.secret(o.(*corev1.Secret).Name) }}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), sites.HasSynced, secrets.HasSynced) {
		return context.Cause(ctx)
	}
	return nil
}

func (r *reconcile) site(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, early := r.made[name]; !early {
		r.made[name] = time.Now()
	}
}

// secret ends the wait for a site's Secret. The Secret's event may arrive before the site's event, because they come from
// two watches.
func (r *reconcile) secret(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	took := 0.0
	if at := r.made[name]; !at.IsZero() {
		took = time.Since(at).Seconds()
	}
	r.made[name] = time.Time{}
	r.took = append(r.took, took)
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *reconcile) Start(context.Context, string) error { return nil }

// Stop waits until each site has its Secret, at most half a minute.
func (r *reconcile) Stop(ctx context.Context) ([]loadgen.Figure, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		r.mu.Lock()
		sites, took, changed := len(r.made), slices.Sorted(slices.Values(r.took)), r.changed
		r.mu.Unlock()
		if sites == 0 {
			return nil, errors.New("no site was created")
		}
		if len(took) < sites && ctx.Err() == nil {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		figures := []loadgen.Figure{{Name: "share", Value: float64(len(took)) / float64(sites), Unit: "ratio"}}
		if n := len(took); n > 0 {
			figures = append(figures, loadgen.Figure{Name: "p99", Value: took[(n*99+99)/100-1], Unit: "seconds"})
		}
		return figures, nil
	}
}
