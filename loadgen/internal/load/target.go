package load

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
)

// LoadLabel is on every object a load makes; its value is the load's name.
const LoadLabel = "stormglass.dev/load"

// Target is the API server under load. Loads in one namespace of one target need different names.
type Target struct {
	// Config is how to reach and authenticate to the API server. Its rate limit and Transport are not used.
	Config *rest.Config
	// Namespace exists and holds the loads' objects. Empty: loads on other resources read all namespaces.
	Namespace string
	// Labels are set on every object that is made, in addition to LoadLabel.
	Labels map[string]string
	// Namespaces of batches of objects, Namespace first. NodeSelector and Tolerations bring pods to the run's simulated
	// nodes. A nil NodeSelector leaves the choice of nodes to the cluster.
	Namespaces   []string
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// Seed of everything random.
	Seed int64
	// Registerer registers the loads' metrics. Nil: metrics are not exposed.
	Registerer prometheus.Registerer
	// Samples records the loads ten times a second. Nil: they are not recorded.
	Samples *samples.Recorder
	// Callers serve the loads of kind "custom", by load name.
	Callers map[string]Caller
	// Share of each load that is done here. The zero value: all.
	Share Share
	// Pause stops arrivals for a time. Nil: arrivals never stop.
	Pause *Pause
	// Acknowledged is called for each acknowledged write of measured changes. Nil: there are no other workers.
	Acknowledged func(Ack)
	// Stalls reports when the generator did not run. Nil: unknown.
	Stalls *stall.Meter
}

// Caller makes the requests of a load of kind "custom".
type Caller interface {
	// Prepare makes what Do needs, before the first phase.
	Prepare(ctx context.Context, cfg *rest.Config, namespace string, labels map[string]string) error
	// Do makes one request. It is called concurrently by all requests in flight.
	Do(ctx context.Context) error
}

// Opener is a Caller whose calls may continue after the answer has begun. Latency counts until the answer begins.
type Opener interface {
	Caller
	// Open makes one request instead of Do, and calls begun at most once.
	Open(ctx context.Context, begun func()) error
}
