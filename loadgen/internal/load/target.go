package load

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
)

// LoadLabel is the key of a label on every object that a load creates. Its value is the load's name.
const LoadLabel = "stormglass.dev/load"

// Target is the API server under load, with the settings that all loads share. Loads in the same namespace need
// different names.
type Target struct {
	// Config is the client configuration for the API server. Its rate limit and Transport are not used.
	Config *rest.Config
	// Namespace is the existing namespace for the loads' objects. If it is empty, loads on existing resources read all
	// namespaces.
	Namespace string
	// Labels are set on every object that a load creates, in addition to LoadLabel.
	Labels map[string]string
	// Namespaces are the namespaces for the objects of batches. The first is Namespace. NodeSelector and Tolerations
	// place pods on the run's simulated nodes. If NodeSelector is nil, pods may run on any node.
	Namespaces   []string
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// Seed determines all random choices.
	Seed int64
	// Registerer registers the loads' metrics. If it is nil, there are no metrics.
	Registerer prometheus.Registerer
	// Samples records the loads ten times a second. If it is nil, nothing is recorded.
	Samples *samples.Recorder
	// Callers are the callers of loads of kind "custom", by load name.
	Callers map[string]Caller
	// Share is the part of each load that this process generates. The zero value means the whole load.
	Share Share
	// Pause pauses arrivals. If it is nil, arrivals never pause.
	Pause *Pause
	// Acknowledged is called for each acknowledged measured write, to notify the other workers. It may be nil.
	Acknowledged func(Ack)
	// Stalls reports when the generator's own process did not run. If it is nil, that is unknown.
	Stalls *stall.Meter
}

// Caller makes the requests of a load of kind "custom".
type Caller interface {
	// Prepare creates everything that Do needs. It is called before the first phase.
	Prepare(ctx context.Context, cfg *rest.Config, namespace string, labels map[string]string) error
	// Do makes one request. Calls are concurrent, one for each request in flight.
	Do(ctx context.Context) error
}

// Opener is a Caller whose calls may continue after the answer has begun, such as a stream. The latency of such a call
// ends when the answer begins.
type Opener interface {
	Caller
	// Open replaces Do. It makes one request, and calls begun when the answer begins, at most once.
	Open(ctx context.Context, begun func()) error
}
