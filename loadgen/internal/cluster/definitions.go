package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// removeDefinitions deletes the definitions of custom resources that runs made,
// and with them all objects of theirs that are left. It does not wait for the
// objects.
func (c *cleaner) removeDefinitions(ctx context.Context) error {
	if c.definitions == nil {
		return nil
	}
	all := c.definitions.Resource(schema.GroupVersionResource{Group: definitionsGroup, Version: "v1", Resource: definitions})
	var items []item
	err := pages(c.owned, func(o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) { return all.List(ctx, o) },
		func(l *metav1.PartialObjectMetadataList) {
			for _, d := range l.Items {
				items = append(items, objectOf(d.ObjectMeta))
			}
		})
	if err != nil {
		return c.listError(definitions, err)
	}
	err = c.remove(ctx, "custom resource definition", items, &c.removed.Definitions, metav1.DeleteOptions{}, func(ctx context.Context, d item, o metav1.DeleteOptions) error {
		return all.Delete(ctx, d.name, o)
	})
	if err != nil {
		return fmt.Errorf("custom resources: %w", err)
	}
	return nil
}
