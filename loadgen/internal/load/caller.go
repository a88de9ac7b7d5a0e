package load

import (
	"context"

	"k8s.io/client-go/rest"
)

// Caller makes the requests of a load of kind "custom".
type Caller interface {
	// Prepare makes what Do needs, before the first phase.
	Prepare(ctx context.Context, cfg *rest.Config, namespace string, labels map[string]string) error
	// Do makes one request. It is called from as many goroutines as are in flight.
	Do(ctx context.Context) error
}
