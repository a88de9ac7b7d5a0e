package load

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
)

// LoadLabel is on every object a load makes; its value is the load's name.
const LoadLabel = "stormglass.dev/load"

// Target is the API server under load, with an authenticated client. Loads of one
// target that run on one namespace need names of their own.
type Target struct {
	// Config is how to reach and authenticate to the API server. Its rate
	// limit is not used: a limiter in the client would hide what is offered.
	// Nor is its Transport: loads speak HTTP/2 over connections of their own.
	Config *rest.Config
	// Namespace exists and holds the loads' objects. Loads on other
	// namespaced resources read this namespace, or all of them if it is empty.
	Namespace string
	// Labels are put on every object that is made, beside LoadLabel.
	Labels map[string]string
	// Seed of everything random.
	Seed int64
	// Registerer takes the loads' metrics. Nil: none are exposed.
	Registerer prometheus.Registerer
	// Samples records the loads ten times a second. Nil: they are not recorded.
	Samples *samples.Recorder
	// Stalls tells when the generator was not run. Nil: unknown.
	Stalls *stall.Meter
}
