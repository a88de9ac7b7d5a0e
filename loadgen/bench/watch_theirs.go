package main

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/stormglass/stormglass/internal/stubapi"
)

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
)

// typedClient is client-go's, without its rate limit.
func typedClient(stub *stubapi.Child, contentType string) (*kubernetes.Clientset, error) {
	config := stub.Config()
	config.ContentType, config.AcceptContentTypes = contentType, contentType
	return kubernetes.NewForConfig(config)
}

// rawWatches are client-go's typed watches: a goroutine reads each.
type rawWatches struct {
	client *kubernetes.Clientset
	cancel context.CancelFunc
	count  atomic.Int64
}

func typedWatch(contentType string) func(*stubapi.Child) (drainer, error) {
	return func(stub *stubapi.Child) (drainer, error) {
		c, err := typedClient(stub, contentType)
		return &rawWatches{client: c, cancel: func() {}}, err
	}
}

func (r *rawWatches) open(ctx context.Context, n int) error {
	ctx, r.cancel = context.WithCancel(ctx)
	maps := r.client.CoreV1().ConfigMaps(namespace)
	list, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for range n {
		w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true})
		if err != nil {
			return err
		}
		go func() {
			for e := range w.ResultChan() {
				if _, ok := e.Object.(*corev1.ConfigMap); ok {
					r.count.Add(1)
				}
			}
		}()
	}
	return nil
}

func (r *rawWatches) events() int64 { return r.count.Load() }
func (r *rawWatches) close()        { r.cancel() }

// informers are client-go's, one for each watch, with a handler that counts.
type informers struct {
	client *kubernetes.Clientset
	stop   chan struct{}
	count  atomic.Int64
}

func newInformers(stub *stubapi.Child) (drainer, error) {
	c, err := typedClient(stub, jsonType)
	return &informers{client: c, stop: make(chan struct{})}, err
}

func (i *informers) open(_ context.Context, n int) error {
	of := cache.NewListWatchFromClient(i.client.CoreV1().RESTClient(), "configmaps", namespace, fields.Everything())
	for range n {
		_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: of, ObjectType: &corev1.ConfigMap{},
			Handler: cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { i.count.Add(1) }},
		})
		go controller.Run(i.stop)
	}
	return nil
}

func (i *informers) events() int64 { return i.count.Load() }
func (i *informers) close()        { close(i.stop) }
