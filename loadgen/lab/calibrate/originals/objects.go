package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// object describes an object that was created in the cluster. For an object that a controller created, `name` is empty,
// because the name is random.
type object struct {
	resource, namespace, name, labels string
}

// recorder records each object that appears on a cluster after the recorder was started.
type recorder struct {
	factory metadatainformer.SharedInformerFactory
	known   *discovery.DiscoveryClient
	tool    string
	end     context.CancelFunc
	done    chan struct{}

	mu   sync.Mutex
	live bool // objects are recorded; false until the first lists are complete, whose objects are not recorded
	uids map[types.UID]bool
	all  map[object]int
	on   map[schema.GroupVersionResource]bool
}

// ignored are resources whose objects describe the cluster or are written by its components.
var ignored = []string{"nodes", "events", "leases", "csinodes", "endpoints", "endpointslices", "componentstatuses", "certificatesigningrequests", "resourceslices",
	"serviceaccounts", "controllerrevisions", "ipaddresses", "clusterroles", "clusterrolebindings", "clustertrustbundles"}

func record(ctx context.Context, config *rest.Config, tool string) (*recorder, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	known, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	r := &recorder{
		factory: metadatainformer.NewSharedInformerFactory(client, 0), known: known, tool: tool, end: end, done: make(chan struct{}),
		uids: map[types.UID]bool{}, all: map[object]int{}, on: map[schema.GroupVersionResource]bool{},
	}
	if err := r.follow(ctx); err != nil {
		end()
		return nil, err
	}
	r.mu.Lock()
	r.live = true
	r.mu.Unlock()
	go func() {
		defer close(r.done)
		tick := time.NewTicker(time.Second) // custom resources appear during the run
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = r.follow(ctx) // tried again at the next tick
			}
		}
	}()
	return r, nil
}

// follow starts an informer for each resource that has none yet, and waits for their lists.
func (r *recorder) follow(ctx context.Context) error {
	lists, err := r.known.ServerPreferredResources()
	if err != nil && len(lists) == 0 {
		return err
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, of := range list.APIResources {
			gvr := gv.WithResource(of.Name)
			if r.on[gvr] || slices.Contains(ignored, of.Name) || !slices.Contains(of.Verbs, "watch") || !slices.Contains(of.Verbs, "list") {
				continue
			}
			r.on[gvr] = true
			_, err := r.factory.ForResource(gvr).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
				if m, ok := o.(*metav1.PartialObjectMetadata); ok {
					r.add(gvr, m)
				}
			}})
			if err != nil {
				return err
			}
		}
	}
	r.factory.Start(ctx.Done())
	r.factory.WaitForCacheSync(ctx.Done())
	return nil
}

func (r *recorder) add(gvr schema.GroupVersionResource, m *metav1.PartialObjectMetadata) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.uids[m.UID] {
		return
	}
	r.uids[m.UID] = true
	if !r.live || m.Name == "kube-root-ca.crt" || m.Namespace == "kube-system" || strings.HasPrefix(m.Name, "preload-") || strings.HasPrefix(m.Namespace, "preload-") || r.tool == "kube-burner" && strings.HasPrefix(m.Name, "stormglass") {
		return // not part of the configuration: kube-burner loads images, and the run of its import has another namespace
	}
	if gvr.Group == "rbac.authorization.k8s.io" && strings.HasPrefix(m.Name, "stormglass") {
		return // loadgen grants permissions to its loads
	}
	o := object{resource: gvr.GroupResource().String(), namespace: namespaceOf(m.Namespace), name: m.Name, labels: labelsOf(m.Labels)}
	switch {
	case o.resource == "namespaces":
		o.name = namespaceOf(o.name)
	case m.OwnerReferences != nil:
		o.name = ""
	}
	r.all[o]++
}

// stop ends the recording and returns how many of each object appeared.
func (r *recorder) stop() map[object]int {
	r.end()
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

// Names of namespaces that a tool chooses at random: RUN, RUN-1, ... of loadgen, and test-RANDOM-1, ... of ClusterLoader2.
var (
	runNamespace  = regexp.MustCompile(`^stormglass-[a-z0-9]+(?:-(\d+))?$`)
	testNamespace = regexp.MustCompile(`^test-[a-z0-9]+-(\d+)$`)
)

func namespaceOf(name string) string {
	if m := testNamespace.FindStringSubmatch(name); m != nil {
		return "test-" + m[1]
	}
	if m := runNamespace.FindStringSubmatch(name); m != nil {
		n, _ := strconv.Atoi(m[1]) // 0 for the first, which has no number
		return fmt.Sprintf("test-%d", n+1)
	}
	return name
}

// labelsOf formats labels without the labels that identify a run of one of the tools.
func labelsOf(all map[string]string) string {
	all = maps.Clone(all)
	maps.DeleteFunc(all, func(key, _ string) bool {
		return strings.Contains(key, "stormglass") || slices.Contains([]string{
			"kube-burner.io/uuid", "kube-burner.io/runid", "pod-template-hash", "controller-revision-hash", "controller-uid", "batch.kubernetes.io/controller-uid",
			"app.kubernetes.io/managed-by", "app.kubernetes.io/part-of", "kubernetes.io/metadata.name",
		}, key)
	})
	return labels.Set(all).String()
}

// report prints the number of objects of each resource on both sides (the tool and loadgen), and the objects that only
// one side has. It returns true if both sides have the same objects.
func report(w io.Writer, t test, original, ours map[object]int, whole bool) bool {
	counts := map[string][2]int{}
	for i, side := range []map[object]int{original, ours} {
		for o, n := range side {
			both := counts[o.resource]
			both[i] += n
			counts[o.resource] = both
		}
	}
	var differ []string
	for _, o := range sorted(original, ours) {
		if a, b := original[o], ours[o]; a != b {
			differ = append(differ, fmt.Sprintf("  %s %s/%s {%s}: %d with %s, %d with loadgen", o.resource, o.namespace, o.name, o.labels, a, t.tool, b))
		}
	}
	fmt.Fprintf(w, "%s %s\n", t.tool, t.config)
	for _, resource := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "  %-40s %6d %6d\n", resource, counts[resource][0], counts[resource][1])
	}
	if len(differ) == 0 {
		fmt.Fprintln(w, "  the same kinds, namespaces, names, labels and counts")
		return true
	}
	shown := differ
	if !whole && len(shown) > 10 {
		shown = shown[:10]
	}
	fmt.Fprintf(w, "%s\n  %d differences\n", strings.Join(shown, "\n"), len(differ))
	return false
}

func sorted(sides ...map[object]int) []object {
	all := map[object]bool{}
	for _, side := range sides {
		for o := range side {
			all[o] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b object) int {
		return strings.Compare(a.resource+"/"+a.namespace+"/"+a.name+"/"+a.labels, b.resource+"/"+b.namespace+"/"+b.name+"/"+b.labels)
	})
}
