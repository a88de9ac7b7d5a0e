package load

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
)

// LoadLabel is the label on every object that a load makes; its value is the load's name.
const LoadLabel = "stormglass.dev/load"

// Target is the API server under load. Loads in one namespace of one target need different names.
type Target struct {
	// Config is how to reach and authenticate to the API server. Its rate limit and Transport are not used.
	Config *rest.Config
	// Namespace exists and holds the loads' objects. Empty: loads on existing resources read all namespaces.
	Namespace string
	// Labels are set on every object that is made, in addition to LoadLabel.
	Labels map[string]string
	// Namespaces hold the objects of batches; Namespace is the first. NodeSelector and Tolerations place pods on the run's
	// simulated nodes. With a nil NodeSelector, pods may run on any node.
	Namespaces   []string
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// Seed determines all random choices.
	Seed int64
	// Registerer registers the loads' metrics. Nil: they are not exposed.
	Registerer prometheus.Registerer
	// Samples records the loads ten times a second. Nil: they are not recorded.
	Samples *samples.Recorder
	// Callers make the requests of loads of kind "custom", by load name.
	Callers map[string]Caller
	// Share is the part of each load that this process does. The zero value: all of it.
	Share Share
	// Pause stops arrivals for a time. Nil: arrivals never stop.
	Pause *Pause
	// Acknowledged, if not nil, is called for each acknowledged measured write, to inform the other workers.
	Acknowledged func(Ack)
	// Stalls reports when the generator stood still. Nil: unknown.
	Stalls *stall.Meter
}

// Caller makes the requests of a load of kind "custom".
type Caller interface {
	// Prepare makes everything that Do needs. It is called before the first phase.
	Prepare(ctx context.Context, cfg *rest.Config, namespace string, labels map[string]string) error
	// Do makes one request. Calls are concurrent, one for each request in flight.
	Do(ctx context.Context) error
}

// Opener is a Caller whose calls may continue after the answer has begun. Their latency ends when the answer begins.
type Opener interface {
	Caller
	// Open is called instead of Do. It makes one request and calls begun, at most once, when the answer begins.
	Open(ctx context.Context, begun func()) error
}
