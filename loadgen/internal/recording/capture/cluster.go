package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

// ClusterOptions configure a recording of a cluster. Out and For are required.
type ClusterOptions struct {
	// For is the length of the recording.
	For time.Duration
	Out string
	// KeepNames and KeepSystem have the same meaning as in AuditOptions.
	KeepNames, KeepSystem bool
	// Step shows a progress message. It may be nil.
	Step func(string)
}

// Cluster records the changes in a cluster for the time o.For. The recording contains only writes, because watches do
// not show reads. Its header contains the number of the cluster's objects. To count them, Cluster lists the metadata of
// all objects in pages. It also reads all pods, to count them per node, and some objects of each resource, to measure
// their sizes.
func Cluster(ctx context.Context, cfg *rest.Config, o ClusterOptions) (*Result, error) {
	resources, notes, err := watchable(cfg)
	if err != nil {
		return nil, exitcode.EnvironmentError(fmt.Errorf("discover the cluster's resources: %w", err))
	}
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, exitcode.EnvironmentError(err)
	}
	c := &clusterRecording{recorder: newRecorder(o.Out, o.KeepNames), o: o, client: client, cfg: cfg}
	c.notes = notes
	c.step("counting the objects of %d resources", len(resources))
	snapshot, starts, err := c.snapshot(ctx, resources)
	if err != nil {
		return nil, err
	}
	c.step("watching changes for %s", o.For)
	c.from = time.Now()
	if err := c.watchAll(ctx, starts); err != nil {
		return nil, err
	}
	c.to = time.Now()
	c.note("the recording contains only writes (to record reads too, use an audit log)")
	c.note("the actors are the programs in the objects' managedFields; users are unknown")
	return c.write(ctx, recording.Header{Source: fmt.Sprintf("watches of %d resources for %s", len(starts), o.For), Snapshot: snapshot})
}

type clusterRecording struct {
	*recorder
	o      ClusterOptions
	client metadata.Interface
	cfg    *rest.Config
	outage outage
}

func (c *clusterRecording) step(format string, args ...any) {
	if c.o.Step != nil {
		c.o.Step(fmt.Sprintf(format, args...))
	}
}

// resourceStart is a resource and the resourceVersion at which its watch starts.
type resourceStart struct {
	schema.GroupVersionResource
	revision string
}

// watchable returns the resources that support list and watch, each in its preferred version.
// It skips Events in events.k8s.io, because the core group has the same objects.
func watchable(cfg *rest.Config) (all []schema.GroupVersionResource, notes []string, err error) {
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, nil, err
	}
	lists, err := client.ServerPreferredResources()
	if err != nil && len(lists) == 0 {
		return nil, nil, err
	}
	if err != nil {
		notes = append(notes, fmt.Sprintf("some of the cluster's resources are unknown: %v", err))
	}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || gv.Group == "events.k8s.io" {
			continue
		}
		for _, r := range list.APIResources {
			all = append(all, gv.WithResource(r.Name))
		}
	}
	return all, notes, nil
}

// seen is a change that a watch reported.
type seen struct {
	at       time.Time
	resource schema.GroupVersionResource
	kind     watch.EventType
	object   *metav1.PartialObjectMetadata
}

// watchAll records the changes of all resources for the duration o.For. It waits while the cluster is unreachable.
func (c *clusterRecording) watchAll(ctx context.Context, starts []resourceStart) error {
	c.outage.tell = c.step
	watching, stop := context.WithTimeout(ctx, c.o.For)
	defer stop()
	changes := make(chan seen, 1024)
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, start := range starts {
		group.Go(func() {
			if err := c.watch(watching, start, changes); err != nil && watching.Err() == nil {
				mu.Lock()
				defer mu.Unlock()
				c.note("changes of %s after %s are missing: %v", start.GroupResource(), clock(time.Now().UnixMicro()), err)
			}
		})
	}
	go func() {
		group.Wait()
		close(changes)
	}()
	for s := range changes {
		c.add(s)
	}
	if away := c.outage.length(time.Now()); away > 0 {
		c.note("the cluster could not be reached for %s; the recording contains the changes in that time at its end", away.Round(time.Second))
	}
	return ctx.Err()
}

// watch sends the changes of a resource to a channel until ctx ends or the watch fails.
func (c *clusterRecording) watch(ctx context.Context, start resourceStart, to chan<- seen) error {
	w, err := watchtools.NewRetryWatcherWithContext(ctx, start.revision, watcher{c.client.Resource(start.GroupVersionResource), &c.outage})
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-w.ResultChan():
			if !ok {
				return errors.New("the watch has ended")
			}
			if event.Type == watch.Error {
				return apierrors.FromObject(event.Object)
			}
			object, ok := event.Object.(*metav1.PartialObjectMetadata)
			if !ok {
				continue
			}
			select {
			case to <- seen{time.Now(), start.GroupVersionResource, event.Type, object}:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// watcher adapts a metadata.Getter to the interface that client-go's RetryWatcher requires.
type watcher struct {
	metadata.Getter
	outage *outage
}

func (w watcher) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	opened, err := w.Watch(ctx, o)
	if ctx.Err() == nil {
		w.outage.saw(time.Now(), unreachable(opened, err))
	}
	return opened, err
}

// add converts a change of an object to a request.
func (c *clusterRecording) add(s seen) {
	c.events++
	ch := change{
		at: s.at.UnixMicro(), group: s.resource.Group, version: s.resource.Version, resource: s.resource.Resource,
		namespace: s.object.Namespace, name: s.object.Name, code: 200,
	}
	last := lastManager(s.object)
	switch s.kind {
	case watch.Added:
		ch.verb, ch.code = "create", 201
	case watch.Modified:
		ch.verb, ch.subresource = "update", last.Subresource
		if last.Operation == metav1.ManagedFieldsOperationApply {
			ch.verb, ch.patchType = "patch", "application/apply-patch+yaml"
		}
	case watch.Deleted:
		// The object does not show which client deleted it.
		ch.verb, last.Manager = "delete", ""
	default:
		return
	}
	ch.actor = cmp.Or(last.Manager, unknownUser)
	if !c.o.KeepSystem {
		ch.reason = managerSource(ch.verb, last.Manager, s.object, s.resource.GroupResource())
	}
	c.change(ch)
}

// lastManager returns the most recent entry of an object's managedFields.
func lastManager(object runtime.Object) (last metav1.ManagedFieldsEntry) {
	o, ok := object.(metav1.Object)
	if !ok {
		return last
	}
	for _, entry := range o.GetManagedFields() {
		if last.Time == nil || entry.Time != nil && !entry.Time.Before(last.Time) {
			last = entry
		}
	}
	return last
}

// managerSource returns the system component that made a change, or "" for another client. It recognizes the component
// by the name of the field manager or, for a deletion, by the object and its controller.
func managerSource(verb, manager string, object metav1.Object, resource schema.GroupResource) string {
	if source := systemManagers[manager]; source != "" {
		return source
	}
	if verb == "delete" {
		switch {
		case metav1.GetControllerOf(object) != nil:
			return fromController
		case resource.Group == "" && (resource.Resource == "events" || resource.Resource == "pods" && object.GetDeletionTimestamp() != nil):
			return fromKubelets
		}
	}
	return ""
}

// systemManagers maps the field managers of system components to the components.
var systemManagers = map[string]string{
	"kubelet": fromKubelets, "kube-controller-manager": fromController, "kube-scheduler": fromScheduler, "kube-proxy": fromProxies,
	"kube-apiserver": fromAPIServer, "cloud-controller-manager": fromCloud,
}
