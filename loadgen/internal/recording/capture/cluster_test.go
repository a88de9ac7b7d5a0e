package capture

import (
	"context"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

func TestChangesBecomeWritesOfTheirPrograms(t *testing.T) {
	c := &clusterRecording{recorder: newRecorder(filepath.Join(t.TempDir(), "out.recording"), true)}
	c.from, c.to = clockTime(0), clockTime(60)
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	object := func(name string, controlled bool, entries ...metav1.ManagedFieldsEntry) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ManagedFields: entries}}
		if controlled {
			o.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Controller: new(true)}}
		}
		return o
	}
	by := func(manager, subresource string, seconds float64, op metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(clockTime(seconds))
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &at, Operation: op}
	}
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	at := func(seconds float64) time.Time { return clockTime(seconds) }
	for _, s := range []seen{
		{at(1), configMaps, watch.Added, object("a", false, by("kubectl-create", "", 1, update))},
		{at(2), configMaps, watch.Modified, object("a", false, by("kubectl-create", "", 1, update), by("argocd", "", 2, apply))},
		{at(3), pods, watch.Added, object("p", true, by("kube-controller-manager", "", 3, update))},
		{at(4), pods, watch.Modified, object("p", true, by("kubelet", "status", 4, update), by("kube-controller-manager", "", 3, update))},
		{at(5), pods, watch.Deleted, object("p", true, by("kubelet", "status", 4, update))},
		{at(6), configMaps, watch.Bookmark, object("", false)},
		{at(7), configMaps, watch.Deleted, object("a", false, by("argocd", "", 2, apply))},
	} {
		c.add(s)
	}
	r, err := c.write(t.Context(), recording.Header{Source: "a test", Snapshot: &recording.Snapshot{Nodes: 3}})
	if err != nil {
		t.Fatal(err)
	}
	request := func(at recording.Micros, actor int, verb string, code int) recording.Request {
		return recording.Request{At: at * 1e6, Actor: actor, Verb: verb, Version: "v1", Resource: "configmaps", Namespace: "shop", Name: "a", Code: code}
	}
	applied := request(2, 0, "patch", 200)
	applied.PatchType = "application/apply-patch+yaml"
	want := []recording.Request{request(1, 1, "create", 201), applied, request(7, 2, "delete", 200)}
	if got := readBack(t, r); !reflect.DeepEqual(got, want) {
		t.Errorf("requests\n%+v, want\n%+v", got, want)
	}
	if want := map[string]int64{fromKubelets: 1, fromController: 2}; !reflect.DeepEqual(r.Header.Dropped, want) {
		t.Errorf("left out %v, want %v", r.Header.Dropped, want)
	}
}

// interrupted is a cluster that is unreachable from 10 s until 10 s + away. Its watches deliver a change after that.
type interrupted struct {
	metadata.Getter
	began time.Time
	away  time.Duration
	watch watch.Interface // result of a watch in the meantime
	err   error
}

func (c *interrupted) Resource(schema.GroupVersionResource) metadata.Getter { return c }

func (c *interrupted) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	const until = 10 * time.Second
	at, w := time.Since(c.began), watch.NewRaceFreeFake()
	switch {
	case at < until:
		time.AfterFunc(until-at, w.Stop)
	case at < until+c.away:
		return c.watch, c.err
	default:
		w.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "late", ResourceVersion: "11"}})
	}
	return w, nil
}

// If the cluster becomes unreachable, a recording reports this once, waits and continues.
func TestRecordingOutlastsAnOutage(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	const back, noted = "the cluster responds again, after 15s", "the cluster could not be reached for 15s; the recording contains the changes in that time at its end"
	for name, c := range map[string]struct {
		interrupted
		said []string
	}{
		"refused": {interrupted{away: 15 * time.Second, err: refused}, []string{"the cluster cannot be reached: dial tcp: connection refused; the recording waits until the cluster responds again", back}},
		"reset":   {interrupted{away: 15 * time.Second, watch: watch.NewEmptyWatch()}, []string{"the cluster cannot be reached: connections end without a response; the recording waits until the cluster responds again", back}},
		"a blink": {interrupted{away: 2 * time.Second, err: refused}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			var said []string
			c.began = time.Now()
			r := &clusterRecording{
				recorder: newRecorder(filepath.Join(t.TempDir(), "out.recording"), true), client: &c.interrupted,
				o: ClusterOptions{For: time.Minute, Step: func(line string) { said = append(said, line) }},
			}
			if err := r.watchAll(t.Context(), []resourceStart{{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "10"}}); err != nil {
				t.Error(err)
			}
			if !slices.Equal(said, c.said) || r.events != 1 || (len(said) > 0) != (strings.Join(r.notes, "\n") == noted) {
				t.Errorf("%s: said %q, noted %q, %d changes", name, said, r.notes, r.events)
			}
		})
	}
}

func TestQuantilesAreNearestRanks(t *testing.T) {
	var all []int64
	for n := range int64(200) {
		all = append(all, 200-n)
	}
	if got, want := quantiles(all), (recording.Quantiles{P50: 100, P90: 180, P99: 198, Max: 200}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := quantiles([]int64{7}); got != (recording.Quantiles{P50: 7, P90: 7, P99: 7, Max: 7}) {
		t.Errorf("of one: %+v", got)
	}
}

// endless is a cluster whose lists never end: the token for the next page is always the same, or always new.
type endless struct {
	metadata.Getter
	same  bool
	pages int
}

func (c *endless) Resource(schema.GroupVersionResource) metadata.Getter { return c }

func (c *endless) List(_ context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	c.pages++
	next := "again"
	if !c.same {
		next = strconv.Itoa(c.pages)
	}
	return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{Continue: next}}, nil
}

func TestListsThatNeverEndAreGivenUp(t *testing.T) {
	for same, pages := range map[bool]int{true: 2, false: maxPages} {
		cluster := &endless{same: same}
		c := &clusterRecording{client: cluster}
		_, _, err := c.count(t.Context(), schema.GroupVersionResource{Version: "v1", Resource: "pods"})
		if err == nil || !strings.Contains(err.Error(), "the list does not end") || cluster.pages != pages {
			t.Errorf("same token %v: %v after %d pages, want an error after %d", same, err, cluster.pages, pages)
		}
	}
}
