package target

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// removeDefinitions deletes the definitions of custom resources that runs made,
// and with them all objects of theirs that are left. It is the last thing of a
// cleanup, and does not wait for the objects.
func removeDefinitions(ctx context.Context, cfg *rest.Config, runID string, log func(string)) (removed int, err error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return 0, err
	}
	all := client.Resource(schema.GroupVersionResource{Group: definitionsGroup, Version: "v1", Resource: definitions})
	list, err := all.List(ctx, metav1.ListOptions{LabelSelector: ownedBy(runID)})
	c := &cleaner{log: log}
	if err != nil {
		return 0, c.listError(definitions, err)
	}
	var items []item
	for _, d := range list.Items {
		items = append(items, objectOf(d.ObjectMeta))
	}
	err = c.remove(ctx, "custom resource definition", items, &removed, metav1.DeleteOptions{}, func(ctx context.Context, d item, o metav1.DeleteOptions) error {
		return all.Delete(ctx, d.name, o)
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return removed, fmt.Errorf("custom resources: %w", err)
	}
	return removed, nil
}
