package realplane

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Each variant of a list returns the objects that it should. All pages together contain every object.
func TestLists(t *testing.T) {
	to, client := target(t, "lists")
	found := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "found"}}
	_, err := client.CoreV1().ConfigMaps(to.Namespace).Create(t.Context(), found, metav1.CreateOptions{})
	must(t, err)
	to.Config.DisableCompression = true // the test reads the responses
	const objects = 25
	// The cases run in any order, but a list of the whole cluster must find objects of another load. Create them first.
	succeeded(t, run(t, to, newLoad("others", func(l *scenario.Load) { l.Objects, l.Verb = objects, "list" }), 1))
	for name, c := range map[string]struct {
		change func(*scenario.Operation)
		pages  int
		items  int // over all pages of one arrival; negative: at least its absolute value
		kind   string
	}{
		"plain":          {func(*scenario.Operation) {}, 1, objects, "ConfigMapList"},
		"cached":         {func(o *scenario.Operation) { o.ResourceVersion = "0" }, 1, objects, "ConfigMapList"},
		"exact":          {func(o *scenario.Operation) { o.ResourceVersion = "exact" }, 1, objects, "ConfigMapList"},
		"first page":     {func(o *scenario.Operation) { o.Limit = 4 }, 1, 4, "ConfigMapList"},
		"all pages":      {func(o *scenario.Operation) { o.Limit, o.AllPages = 4, true }, 7, objects, "ConfigMapList"},
		"exact pages":    {func(o *scenario.Operation) { o.Limit, o.AllPages, o.ResourceVersion = 10, true, "exact" }, 3, objects, "ConfigMapList"},
		"table pages":    {func(o *scenario.Operation) { o.Limit, o.AllPages, o.Form = 10, true, "table" }, 3, objects, "Table"},
		"metadata pages": {func(o *scenario.Operation) { o.Limit, o.AllPages, o.Form = 10, true, "metadata" }, 3, objects, "PartialObjectMetadataList"},
		"custom pages":   {func(o *scenario.Operation) { o.Limit, o.AllPages, o.Resource = 10, true, scenario.WidgetResource }, 3, objects, "WidgetList"},
		"table":          {func(o *scenario.Operation) { o.Form = "table" }, 1, objects, "Table"},
		"metadata":       {func(o *scenario.Operation) { o.Form = "metadata" }, 1, objects, "PartialObjectMetadataList"},
		"label":          {func(o *scenario.Operation) { o.LabelSelector = "none in (a, b),!c" }, 1, 0, "ConfigMapList"},
		"field":          {func(o *scenario.Operation) { o.FieldSelector = "metadata.name=found" }, 1, 1, "ConfigMapList"},
		"cluster":        {func(o *scenario.Operation) { o.Scope = "cluster" }, 1, -objects, "ConfigMapList"},
		"of others":      {func(o *scenario.Operation) { o.Resource, o.Scope = "persistentvolumes", "cluster" }, 1, 0, "PersistentVolumeList"},
		"of the cluster": {func(o *scenario.Operation) { o.Resource = "namespaces" }, 1, -4, "NamespaceList"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoad(strings.ReplaceAll(name, " ", "-"), func(l *scenario.Load) {
				l.Objects, l.Verb = objects, "list"
				c.change(&l.Operation)
			})
			const times = 3
			all := run(t, to, l, times)
			succeeded(t, all)
			if len(all) != times*c.pages {
				t.Errorf("%d requests of %d lists, want %d pages each", len(all), times, c.pages)
			}
			items := map[int64]int{}
			for _, e := range all {
				var list struct {
					Kind        string
					Items, Rows []any
				}
				e.into(t, &list)
				if list.Kind != c.kind {
					t.Errorf("a %s, want %s", list.Kind, c.kind)
				}
				items[e.n] += len(list.Items) + len(list.Rows)
			}
			for n, got := range items {
				if c.items >= 0 && got != c.items || got < -c.items {
					t.Errorf("arrival %d: %d objects, want %d", n, got, c.items)
				}
			}
		})
	}
}

// Protobuf responses are recognised by their magic number, and their continue tokens are found.
func TestProtobuf(t *testing.T) {
	to, _ := target(t, "protobuf")
	for name, c := range map[string]struct {
		change func(*scenario.Load)
		pages  int
	}{
		"get":   {func(l *scenario.Load) { l.Verb = "get" }, 1},
		"pages": {func(l *scenario.Load) { l.Verb, l.Limit, l.AllPages, l.Objects = "list", 10, true, 25 }, 3},
		"metadata": {func(l *scenario.Load) {
			l.Verb, l.Form, l.Limit, l.AllPages, l.Objects = "list", "metadata", 10, true, 25
		}, 3},
		"widgets":   {func(l *scenario.Load) { l.Verb, l.Form, l.Resource = "list", "metadata", scenario.WidgetResource }, 1},
		"versioned": {func(l *scenario.Load) { l.Verb, l.Resource, l.Objects = "update", "leases.coordination.k8s.io", 10 }, 1},
		"apply":     {func(l *scenario.Load) { l.Verb, l.Resource = "apply", "secrets" }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			const times = 10
			all := run(t, to, newLoad(name, func(l *scenario.Load) {
				c.change(l)
				l.Encoding = "protobuf"
			}), times)
			succeeded(t, all)
			if len(all) != times*c.pages {
				t.Errorf("%d requests, want %d", len(all), times*c.pages)
			}
		})
	}
}

// Large responses are compressed, as with client-go, and are read correctly. Lists are requested without compression if
// the load follows their pages.
func TestCompression(t *testing.T) {
	to, _ := target(t, "compression")
	for _, pages := range []bool{false, true} {
		all := run(t, to, newLoad("large", func(l *scenario.Load) {
			l.Verb, l.Objects, l.Size, l.AllPages = "list", 20, 10<<10, pages
			if pages {
				l.Limit = 15 // over 128 KiB, above which the API server compresses
			}
		}), 2)
		succeeded(t, all)
		for _, e := range all {
			if zipped := e.body[0] == 0x1f; zipped == pages {
				t.Errorf("%s is compressed: %v", e.path, zipped)
			}
		}
	}
}
