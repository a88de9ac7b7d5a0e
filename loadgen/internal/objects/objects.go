// Package objects applies a scenario's batches and actions to objects of any resource. It creates objects from
// templates, and patches, deletes, evicts, scales and restarts the run's objects. It never changes objects that do not
// belong to the run.
package objects

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Options configure Objects.
type Options struct {
	// Namespaces lists the namespaces of the objects, which must exist. scenario.Object.Namespace is an index into it.
	Namespaces []string
	// Group returns the namespace group with the given name, or nil.
	Group func(name string) *scenario.NamespaceGroup
	// Labels are the labels of every object. OwnLabel distinguishes the run's own objects from others.
	Labels   map[string]string
	OwnLabel string
	// NodeSelector and Tolerations place pods on the run's nodes. Nil adds nothing to pods.
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// Seed determines which objects a selection with a share chooses.
	Seed int64
	// Retry repeats a request while the control plane is unavailable. Nil means no retries.
	Retry func(ctx context.Context, ask func() error) error
}

// RunLabel is the label of every object that a run creates. Its value is the run's ID. It has no kubernetes.io prefix,
// because the NodeRestriction admission plugin lets kubelets set few labels with that prefix.
const RunLabel = "stormglass.dev/run"

// CreatorPrefix is the prefix of the field managers that Creator returns.
const CreatorPrefix = "stormglass-run-"

// Creator returns the field manager with which a run creates objects. labels are the run's labels. The run uses this
// field manager for nothing else. If the managedFields of an object contain it, the run created the object, even if the
// object has lost RunLabel.
func Creator(labels map[string]string) string { return CreatorPrefix + labels[RunLabel] }

// Objects performs actions on objects of any resource. It is safe for concurrent use.
type Objects struct {
	options  Options
	config   *rest.Config
	rest     rest.Interface
	metadata metadata.Interface
	mapper   *restmapper.DeferredDiscoveryRESTMapper
	draws    atomic.Int64 // number of random choices so far
	patched  atomic.Int64 // number of patch actions so far, each repetition included
}

// New creates Objects. It sends no requests.
func New(config *rest.Config, o Options) (*Objects, error) {
	if o.Retry == nil {
		o.Retry = func(_ context.Context, ask func() error) error { return ask() }
	}
	mapper, err := Mapper(config)
	if err != nil {
		return nil, err
	}
	requests, client, err := apiclient.NewREST(config)
	if err != nil {
		return nil, fmt.Errorf("objects: %w", err)
	}
	unlimited := metadata.ConfigFor(config)
	unlimited.QPS = -1
	listing, err := metadata.NewForConfigAndClient(unlimited, client)
	if err != nil {
		return nil, fmt.Errorf("client of objects: %w", err)
	}
	return &Objects{options: o, config: config, rest: requests, metadata: listing, mapper: mapper}, nil
}

// Mapper returns a mapper from kinds to resources. It uses discovery on first use, and again for an unknown kind.
func Mapper(config *rest.Config) (*restmapper.DeferredDiscoveryRESTMapper, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of discovery: %w", err)
	}
	return restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)), nil
}

// Resource is the API resource of a kind.
type Resource struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// UnknownError reports an object whose kind the cluster does not have.
type UnknownError struct{ Object scenario.Object }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s: the cluster has no kind %s of %s (`kubectl api-resources` lists its kinds; define a custom resource before you create objects of it)", e.Object.Place, e.Object.Kind, e.Object.APIVersion)
}

// ResourceOf finds the resource of an object's kind. It returns an UnknownError if the cluster has no such kind.
func ResourceOf(mapper meta.RESTMapper, o scenario.Object) (Resource, error) {
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil {
		return Resource{}, fmt.Errorf("%s: %s: %w", o.Place, o.Kind, err)
	}
	found, err := mapper.RESTMapping(gv.WithKind(o.Kind).GroupKind(), gv.Version)
	if meta.IsNoMatchError(err) {
		return Resource{}, &UnknownError{o}
	}
	if err != nil {
		return Resource{}, fmt.Errorf("%s: find the resource of %s: %w", o.Place, o.Kind, err)
	}
	return Resource{found.Resource, o.Kind, found.Scope.Name() == meta.RESTScopeNameNamespace}, nil
}

// resourceOf is like ResourceOf, but retries while the control plane is unavailable.
func (a *Objects) resourceOf(ctx context.Context, o scenario.Object) (r Resource, err error) {
	err = a.options.Retry(ctx, func() error {
		r, err = ResourceOf(a.mapper, o)
		return err
	})
	return r, err
}

func (a *Objects) named(name string) (Resource, error) {
	gr := schema.ParseGroupResource(name)
	kind, err := a.mapper.KindFor(gr.WithVersion(""))
	if err == nil {
		var found *meta.RESTMapping
		if found, err = a.mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil {
			return Resource{found.Resource, kind.Kind, found.Scope.Name() == meta.RESTScopeNameNamespace}, nil
		}
	}
	if meta.IsNoMatchError(err) {
		return Resource{}, fmt.Errorf("the cluster has no resource %q (`kubectl api-resources` lists them)", name)
	}
	return Resource{}, fmt.Errorf("find resource %s: %w", name, err)
}

// Path returns the URL path of the resource's collection in a namespace, followed by rest: an object's name and a
// subresource.
func (r Resource) Path(namespace string, rest ...string) string {
	parts := []string{"/apis", r.Group, r.Version}
	if r.Group == "" {
		parts = []string{"/api", r.Version}
	}
	if r.Namespaced {
		parts = append(parts, "namespaces", url.PathEscape(namespace))
	}
	parts = append(parts, r.Resource)
	for _, part := range rest {
		if part != "" {
			parts = append(parts, url.PathEscape(part))
		}
	}
	return strings.Join(parts, "/")
}

var podSpecs = map[string][]string{
	"Pod": {"spec"}, "PodTemplate": {"template", "spec"}, "CronJob": {"spec", "jobTemplate", "spec", "template", "spec"},
	"Deployment": {"spec", "template", "spec"}, "ReplicaSet": {"spec", "template", "spec"}, "StatefulSet": {"spec", "template", "spec"},
	"DaemonSet": {"spec", "template", "spec"}, "Job": {"spec", "template", "spec"}, "ReplicationController": {"spec", "template", "spec"},
}

// Complete adds labels, namespace and placement to an object's manifest, in place.
func (o Options) Complete(object scenario.Object, namespaced bool) {
	metadata := child(object.Manifest, "metadata")
	delete(metadata, "namespace")
	delete(metadata, "resourceVersion")
	delete(metadata, "uid")
	if object.Named {
		nameNamespace(object.Manifest, o.Namespaces[object.Namespace])
	}
	if namespaced {
		metadata["namespace"] = o.Namespaces[object.Namespace]
	}
	labels := child(metadata, "labels")
	for key, value := range o.Labels {
		labels[key] = value
	}
	path := podSpecs[object.Kind]
	if group, _, found := strings.Cut(object.APIVersion, "/"); path == nil || object.Placement == "none" || found && group != "apps" && group != "batch" {
		return
	}
	o.place(object.Manifest, path)
}

// nameNamespace replaces scenario.NamespaceMark in all strings of value by name, the namespace's name, and returns the
// value.
func nameNamespace(value any, name string) any {
	switch v := value.(type) {
	case string:
		return strings.ReplaceAll(v, scenario.NamespaceMark, name)
	case map[string]any:
		for key, one := range v {
			v[key] = nameNamespace(one, name)
		}
	case []any:
		for i, one := range v {
			v[i] = nameNamespace(one, name)
		}
	}
	return value
}

// place adds the node selector and the tolerations of the run's nodes to the pod spec at path.
func (o Options) place(manifest map[string]any, path []string) {
	if len(o.NodeSelector) == 0 {
		return
	}
	spec := manifest
	for _, key := range path {
		spec = child(spec, key)
	}
	selector := child(spec, "nodeSelector")
	for key, value := range o.NodeSelector {
		selector[key] = value
	}
	tolerations, _ := spec["tolerations"].([]any)
	for _, t := range o.Tolerations {
		tolerations = append(tolerations, map[string]any{"key": t.Key, "operator": string(t.Operator), "value": t.Value, "effect": string(t.Effect)})
	}
	spec["tolerations"] = tolerations
}

// child returns the map under a key, and creates it if it is missing.
func child(of map[string]any, key string) map[string]any {
	c, ok := of[key].(map[string]any)
	if !ok {
		c = map[string]any{}
		of[key] = c
	}
	return c
}

func (o Options) owns(labels map[string]string) bool {
	return labels[o.OwnLabel] != "" && labels[o.OwnLabel] == o.Labels[o.OwnLabel]
}
