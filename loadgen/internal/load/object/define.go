package object

import (
	"context"

	"k8s.io/client-go/rest"
)

// DefineWidgets does with an identity that may what a load would do in its
// Prepare: it sees to it that the API server serves widgets, with these labels
// on a definition that it makes.
func DefineWidgets(ctx context.Context, config *rest.Config, labels map[string]string) error {
	a, err := newAsker(config)
	if err != nil {
		return err
	}
	defer a.close()
	return defineWidgets(ctx, a, labels)
}
