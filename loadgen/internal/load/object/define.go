package object

import (
	"context"

	"k8s.io/client-go/rest"
)

// DefineWidgets makes the API server serve widgets, as a load's Prepare does. A new definition gets the labels.
func DefineWidgets(ctx context.Context, config *rest.Config, labels map[string]string) error {
	a, err := newAsker(config)
	if err != nil {
		return err
	}
	defer a.close()
	return defineWidgets(ctx, a, labels)
}
