package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
)

// made records the UIDs of the cluster-scoped objects that a run creates. Neither the run's actions nor other clients
// can change an object's UID, unlike its labels. The zero value is empty and safe for concurrent use.
type made struct {
	mu  sync.Mutex
	all map[schema.GroupVersionResource]madeKind

	run, dir string   // ID of the run, and the directory of the file; empty without a file
	file     *os.File // file that also records the objects; nil: none, or writing has stopped
	written  int
}

type madeKind struct {
	kind string
	uids map[types.UID]bool
}

// recorded returns a copy of config. Clients that use this copy record in m the objects that they create.
func (m *made) recorded(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorder{next, m} })
	return config
}

// resources returns the recorded objects by resource. For a nil *made it returns an empty map.
func (m *made) resources() map[schema.GroupVersionResource]madeKind {
	all := map[schema.GroupVersionResource]madeKind{}
	if m == nil {
		return all
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for r, k := range m.all {
		all[r] = madeKind{k.kind, maps.Clone(k.uids)}
	}
	return all
}

func (m *made) add(r schema.GroupVersionResource, kind string, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[schema.GroupVersionResource]madeKind{}
	}
	if _, known := m.all[r]; !known {
		m.all[r] = madeKind{kind, map[types.UID]bool{}}
	}
	if !m.all[r].uids[uid] {
		m.all[r].uids[uid] = true
		m.write(r, kind, uid)
	}
}

type recorder struct {
	next http.RoundTripper
	made *made
}

// RoundTrip sends a request, and records the object if the status of the response is 201 Created.
func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := r.next.RoundTrip(request)
	if err != nil || answer.StatusCode != http.StatusCreated || request.URL.Query().Has("dryRun") {
		return answer, err
	}
	resource, ok := clusterResource(request.URL.Path)
	if !ok {
		return answer, nil
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	if kind, uid := identify(body); uid != "" { // reviews have no UID
		r.made.add(resource, kind, uid)
	}
	return answer, nil
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (r recorder) WrappedRoundTripper() http.RoundTripper { return r.next }

// clusterResource returns the resource of a request that creates a cluster-scoped object. path is the URL path of the
// collection or, for an apply, of the object. A prefix may precede it. ok is false for paths of namespaced or unknown
// objects.
func clusterResource(path string) (r schema.GroupVersionResource, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, part := range parts {
		switch rest := parts[i+1:]; {
		case part == "api" && len(rest) >= 2 && rest[0] == "v1":
			r, rest = schema.GroupVersionResource{Version: "v1", Resource: rest[1]}, rest[2:]
			return r, len(rest) <= 1
		case part == "apis" && len(rest) >= 3:
			r, rest = schema.GroupVersionResource{Group: rest[0], Version: rest[1], Resource: rest[2]}, rest[3:]
			return r, len(rest) <= 1 && r.Resource != "namespaces"
		}
	}
	return r, false
}

func identify(body []byte) (kind string, uid types.UID) {
	if o, of, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err == nil {
		if m, err := meta.Accessor(o); err == nil {
			return of.Kind, m.GetUID()
		}
		return "", ""
	}
	var o metav1.PartialObjectMetadata // the object is a custom resource
	_ = json.Unmarshal(body, &o)
	return o.Kind, o.UID
}

// relabel restores the run's label on namespaces and nodes of the run that have lost it, because the steps that remove
// these objects find them by the label. A dry run only counts these objects.
func (c *cleaner) relabel(ctx context.Context) error {
	namespaces, nodes := corev1.SchemeGroupVersion.WithResource("namespaces"), corev1.SchemeGroupVersion.WithResource("nodes")
	lost := map[schema.GroupVersionResource]func(metav1.Object) bool{}
	if uids := c.made.resources()[namespaces].uids; len(uids) > 0 {
		lost[namespaces] = func(m metav1.Object) bool { return uids[m.GetUID()] }
	}
	if c.nodePrefix != "" {
		lost[nodes] = func(m metav1.Object) bool { return strings.HasPrefix(m.GetName(), c.nodePrefix) }
	}
	for r, ours := range lost {
		client := c.metadata.Resource(r)
		items, err := listed(ctx, r.Resource, metadataCollection{client}, c.all(), func(o runtime.Object) bool {
			m, err := meta.Accessor(o)
			return err == nil && ours(m) && m.GetLabels()[RunLabel] != c.runID
		})
		if err = c.noteUnseen(r.Resource, err); err != nil {
			return err
		}
		if c.removed.DryRun {
			kind, found := "namespace", &c.removed.Namespaces
			if r == nodes {
				kind, found = "node", &c.removed.Nodes
			}
			if err := c.remove(ctx, kind, items, found, nil); err != nil {
				return err
			}
			continue
		}
		for _, i := range items {
			patch := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:%q}}}`, i.uid, RunLabel, c.runID)
			_, err := client.Patch(ctx, i.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return fmt.Errorf("label %s %s: %w", r.Resource, i.name, err)
			}
		}
	}
	return nil
}

// removeMade removes recorded objects that the earlier steps did not find by their labels. It returns an error if some
// still exist. For objects that wait for finalizers, the error contains the command that removes the finalizers. A dry run
// counts the objects that the earlier steps did not count.
func (c *cleaner) removeMade(ctx context.Context) error {
	var errs []error
	all := c.made.resources()
	if len(c.nodesSeen) > 0 && c.metadata != nil {
		nodes := madeKind{"Node", map[types.UID]bool{}}
		for _, n := range c.nodesSeen {
			nodes.uids[n.uid] = true
		}
		all[corev1.SchemeGroupVersion.WithResource("nodes")] = nodes
	}
	for r, k := range all {
		client := metadataCollection{c.metadata.Resource(r)}
		items, _, err := c.leftOf(ctx, r, k)
		if c.removed.DryRun {
			items = slices.DeleteFunc(items, func(i item) bool { return c.deleted[string(i.uid)] })
			errs = append(errs, err, c.remove(ctx, k.kind, items, &c.removed.ClusterObjects, nil))
			continue
		}
		if len(items) > 0 && err == nil {
			err = c.remove(ctx, k.kind, items, &c.removed.ClusterObjects, byName(client))
			apiclient.Pause(ctx, settle)
			var held []string
			var listing error
			if items, held, listing = c.leftOf(ctx, r, k); err == nil && listing == nil && len(items) > 0 {
				err = fmt.Errorf("delete %s %s: %w", k.kind, some(namesOf(items)), errNotGone)
			}
			err = blocked(errors.Join(err, listing), held)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// leftOf lists a resource's recorded objects that still exist. `held` describes those that wait for finalizers.
func (c *cleaner) leftOf(ctx context.Context, r schema.GroupVersionResource, k madeKind) (items []item, held []string, err error) {
	items, err = listed(ctx, r.Resource, metadataCollection{c.metadata.Resource(r)}, c.all(), func(o runtime.Object) bool {
		m, err := meta.Accessor(o)
		if err != nil || !k.uids[m.GetUID()] {
			return false
		}
		if m.GetDeletionTimestamp() == nil {
			return true
		}
		if slices.Equal(m.GetFinalizers(), []string{definitionFinalizer}) {
			return false
		}
		if len(m.GetFinalizers()) > 0 { // a namespace usually has none: its deletion waits for its objects
			held = append(held, unhold(r, m))
		}
		return true
	})
	if apierrors.IsNotFound(err) { // the resource's definition, and so all its objects, are gone
		return nil, nil, nil
	}
	return items, held, c.noteUnseen(r.Resource, err)
}

// definitionFinalizer is the finalizer of each custom resource definition that is being deleted. The API server deletes
// the definition's objects first.
const definitionFinalizer = "customresourcecleanup.apiextensions.k8s.io"

// blocked returns err, the error of a deletion, with a list of the objects whose finalizers block the deletion.
func blocked(err error, held []string) error {
	if len(held) == 0 {
		return err
	}
	return fmt.Errorf("%w; finalizers block the deletion of %s", err, some(held))
}

// unhold describes an object that is being deleted: its name, its finalizers, and the command that removes them.
func unhold(r schema.GroupVersionResource, m metav1.Object) string {
	name, in := m.GetName(), ""
	if ns := m.GetNamespace(); ns != "" {
		name, in = ns+"/"+name, " -n "+ns
	}
	return fmt.Sprintf("%s (%s): `kubectl patch %s %s%s --type=merge -p '{\"metadata\":{\"finalizers\":null}}'`",
		name, strings.Join(m.GetFinalizers(), ", "), r.GroupResource(), m.GetName(), in)
}

// some joins at most 20 strings, and appends the number of omitted ones.
func some(all []string) string {
	const most = 20
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}
