package capture

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

// page is the maximum number of objects in one page of a list. maxPages is the maximum number of pages. sample is the
// maximum number of objects of a resource whose content loadgen reads.
const (
	page     = 500
	sample   = 50
	maxPages = 20_000
)

// snapshot counts the objects of all resources. It also returns the resourceVersion from which to watch each resource.
// It skips a resource that cannot be listed, and adds a note.
func (c *clusterRecording) snapshot(ctx context.Context, resources []schema.GroupVersionResource) (*recording.Snapshot, []resourceStart, error) {
	core, err := kubernetes.NewForConfig(c.cfg)
	if err != nil {
		return nil, nil, exitcode.EnvironmentError(err)
	}
	s := &recording.Snapshot{}
	var starts []resourceStart
	for _, r := range resources {
		count, revision, err := c.count(ctx, r)
		if err == nil && count.Objects > 0 {
			err = c.sizes(ctx, core.CoreV1().RESTClient(), r, &count)
		}
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			c.note("%s are not recorded: %v", r.GroupResource(), err)
			continue
		}
		if err != nil {
			return nil, nil, exitcode.Environmentf("list %s: %w", r.GroupResource(), err)
		}
		starts = append(starts, resourceStart{r, revision})
		if count.Objects > 0 {
			s.Resources = append(s.Resources, count)
		}
		if r.Group == "" && r.Resource == "nodes" {
			s.Nodes = count.Objects
		}
	}
	if len(starts) == 0 {
		return nil, nil, exitcode.Usagef("the user is not allowed to list any resource in the cluster (bind the ClusterRole view to the user)")
	}
	if s.PodsPerNode, err = podsPerNode(ctx, core, s.Nodes); err != nil && !apierrors.IsForbidden(err) {
		return nil, nil, exitcode.Environmentf("list pods: %w", err)
	}
	slices.SortStableFunc(s.Resources, func(a, b recording.ResourceCount) int { return cmp.Compare(b.Objects, a.Objects) })
	return s, starts, nil
}

// count counts the objects of a resource. It lists their metadata in pages.
func (c *clusterRecording) count(ctx context.Context, r schema.GroupVersionResource) (recording.ResourceCount, string, error) {
	count := recording.ResourceCount{Group: r.Group, Version: r.Version, Resource: r.Resource}
	namespaces := map[string]int64{}
	revision, err := eachPage(metav1.ListOptions{}, func(o metav1.ListOptions) (metav1.ListInterface, error) {
		list, err := c.client.Resource(r).List(ctx, o)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			count.Objects++
			if ns := list.Items[i].Namespace; ns != "" {
				namespaces[ns]++
			}
		}
		return list, nil
	})
	count.Namespaces = int64(len(namespaces))
	count.PerNamespace = quantiles(slices.Collect(maps.Values(namespaces)))
	return count, revision, err
}

// eachPage calls list for each page of a list, and returns the resourceVersion of the last page. It fails if the list
// may never end, that is, if the token for the next page is the token of this page or if there are too many pages.
func eachPage(o metav1.ListOptions, list func(metav1.ListOptions) (metav1.ListInterface, error)) (revision string, err error) {
	o.Limit = page
	for pages := 1; ; pages++ {
		got, err := list(o)
		if err != nil {
			return "", err
		}
		switch next := got.GetContinue(); {
		case next == "":
			return got.GetResourceVersion(), nil
		case next == o.Continue:
			return "", fmt.Errorf("the list does not end, because page %d refers to itself as the next page (check the API server and any proxy in front of it)", pages)
		case pages == maxPages:
			return "", fmt.Errorf("the list does not end: it has more than %d pages of %d objects", maxPages, page)
		default:
			o.Continue = next
		}
	}
}

// sizes measures the sizes of the first objects in a list of a resource. It does not read Secrets.
func (c *clusterRecording) sizes(ctx context.Context, client rest.Interface, r schema.GroupVersionResource, count *recording.ResourceCount) error {
	if r.Group == "" && r.Resource == "secrets" {
		return nil
	}
	path := []string{"/apis", r.Group, r.Version, r.Resource}
	if r.Group == "" {
		path = []string{"/api", r.Version, r.Resource}
	}
	data, err := client.Get().AbsPath(path...).Param("limit", strconv.Itoa(sample)).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return err
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	var each []int64
	for _, item := range list.Items {
		each = append(each, int64(len(item)))
	}
	count.Bytes, count.Sampled = quantiles(each), int64(len(each))
	return nil
}

// podsPerNode returns quantiles of the number of pods per node, including nodes without pods.
func podsPerNode(ctx context.Context, client kubernetes.Interface, nodes int64) (recording.Quantiles, error) {
	on := map[string]int64{}
	_, err := eachPage(metav1.ListOptions{FieldSelector: "spec.nodeName!="}, func(o metav1.ListOptions) (metav1.ListInterface, error) {
		list, err := client.CoreV1().Pods(corev1.NamespaceAll).List(ctx, o)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			on[list.Items[i].Spec.NodeName]++
		}
		return list, nil
	})
	if err != nil {
		return recording.Quantiles{}, err
	}
	each := slices.Collect(maps.Values(on))
	each = append(each, make([]int64, max(nodes-int64(len(each)), 0))...) // nodes without pods
	return quantiles(each), nil
}

// quantiles returns quantiles by the nearest-rank method.
func quantiles(all []int64) recording.Quantiles {
	if len(all) == 0 {
		return recording.Quantiles{}
	}
	slices.Sort(all)
	rank := func(percent int) int64 { return all[(len(all)*percent+99)/100-1] }
	return recording.Quantiles{P50: rank(50), P90: rank(90), P99: rank(99), Max: all[len(all)-1]}
}
