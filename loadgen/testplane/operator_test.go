package testplane_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// siteLabel is on ConfigMaps that are sites.
const siteLabel = "example.com/site"

// operator is a controller under test: it makes a Secret for each site, and a Deployment where the site has an image.
type operator struct {
	client kubernetes.Interface
	sites  cache.SharedIndexInformer
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// startOperator runs the operator until the test ends.
func startOperator(t *testing.T, cfg *rest.Config) {
	t.Helper()
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = siteLabel }))
	o := &operator{
		client: client, sites: factory.Core().V1().ConfigMaps().Informer(),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
	}
	if _, err := o.sites.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(site any) { o.queue.Add(cache.MetaObjectToName(site.(*corev1.ConfigMap))) },
		UpdateFunc: func(_, site any) { o.queue.Add(cache.MetaObjectToName(site.(*corev1.ConfigMap))) },
	}); err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for o.next(t.Context()) {
		}
	}()
	t.Cleanup(func() { // t.Context has ended
		o.queue.ShutDown()
		<-ended
		factory.Shutdown()
	})
}

// next reconciles one site of the queue. It returns false when the queue is shut down.
func (o *operator) next(ctx context.Context) bool {
	name, down := o.queue.Get()
	if down {
		return false
	}
	defer o.queue.Done(name)
	if err := o.reconcile(ctx, name); err != nil && ctx.Err() == nil {
		o.queue.AddRateLimited(name)
		return true
	}
	o.queue.Forget(name)
	return true
}

func (o *operator) reconcile(ctx context.Context, name cache.ObjectName) error {
	found, exists, err := o.sites.GetStore().GetByKey(name.String())
	if err != nil || !exists {
		return err
	}
	site := found.(*corev1.ConfigMap)
	owned := metav1.ObjectMeta{
		Name: site.Name, Labels: map[string]string{siteLabel: site.Name},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(site, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
	}
	_, err = o.client.CoreV1().Secrets(site.Namespace).Create(ctx, &corev1.Secret{ObjectMeta: owned}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	image := site.Data["image"]
	if image == "" {
		return nil
	}
	_, err = o.client.AppsV1().Deployments(site.Namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: owned, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: owned.Labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: owned.Labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "site", Image: image}}},
		},
	}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}
