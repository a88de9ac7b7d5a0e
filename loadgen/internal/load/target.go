package load

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
)

// LoadLabel is the key of a label on every object that a load creates. Its value is the load's name.
const LoadLabel = "stormglass.dev/load"

// Target is the API server under load, and the settings that all loads share. Loads in the same namespace need
// different names.
type Target struct {
	// Config is the client configuration for the API server. Its rate limit and Transport are not used.
	Config *rest.Config
	// Namespace is the existing namespace for the loads' objects. If it is empty, loads that read existing objects read
	// all namespaces.
	Namespace string
	// Labels are set on every object that a load creates, in addition to LoadLabel.
	Labels map[string]string
	// Namespaces are the namespaces for the objects of batches. The first is Namespace. The pods of batches get
	// NodeSelector and Tolerations, which place them on the run's simulated nodes. If NodeSelector is nil, these pods
	// may run on any node.
	Namespaces   []string
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// Seed determines all random choices.
	Seed int64
	// Registerer registers the loads' metrics. If it is nil, the loads have no metrics.
	Registerer prometheus.Registerer
	// Samples records measurements of the loads ten times a second. If it is nil, nothing is recorded.
	Samples *samples.Recorder
	// Tracer samples requests to trace. If it is nil, no request is traced.
	Tracer *spans.Tracer
	// Callers are the callers of loads of kind "custom", by load name.
	Callers map[string]Caller
	// Share is the part of each load that this worker generates. The zero value means the whole load.
	Share Share
	// Pause pauses arrivals. If it is nil, arrivals never pause.
	Pause *Pause
	// The load calls Acknowledged for each acknowledged measured write, to notify the other workers. It may be nil.
	Acknowledged func(Ack)
	// Stalls reports the times at which the generator process itself did not run. If it is nil, these times are
	// unknown.
	Stalls *stall.Meter
}

// Caller makes the requests of a load of kind "custom". Users implement it in Go.
type Caller = interface {
	// Prepare creates everything that Do needs. The run calls it before the first phase.
	Prepare(ctx context.Context, cfg *rest.Config, namespace string, labels map[string]string) error
	// Do makes one request. The load calls it concurrently, once for each arrival.
	Do(ctx context.Context) error
}

// Opener is a Caller for calls that continue after their response has begun, such as streams. Their latency ends when
// the response begins.
type Opener interface {
	Caller
	// Open replaces Do for such a call. It makes one request. When the response begins, it calls begun, at most once.
	Open(ctx context.Context, begun func()) error
}
