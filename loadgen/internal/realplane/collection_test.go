package realplane

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// A deletecollection of a load deletes only the load's own objects, and at most as many as its
// limit.
func TestDeleteCollection(t *testing.T) {
	to, client := target(t, "collection")
	theirs := client.CoreV1().ConfigMaps(to.Namespace)
	_, err := theirs.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}, metav1.CreateOptions{})
	must(t, err)
	all := run(t, to, newLoad("collection", func(l *scenario.Load) {
		l.Verb, l.Objects, l.Namespaces, l.Limit = "deletecollection", 12, 3, 2
	}), 3)
	succeeded(t, all)
	if len(all) != 3 {
		t.Errorf("%d requests, want one for each namespace", len(all))
	}
	for i := range all {
		var gone metav1.PartialObjectMetadataList
		all[i].into(t, &gone)
		if len(gone.Items) != 2 || gone.Items[0].Labels[load.LoadLabel] != "collection" || gone.Items[1].Labels[load.LoadLabel] != "collection" {
			t.Errorf("%s deleted %+v", all[i].path, gone.Items)
		}
	}
	_, err = theirs.Get(t.Context(), "theirs", metav1.GetOptions{})
	must(t, err)
}
