package load

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers a collector, or takes the one already registered. Nil reg: not exposed.
func Register[C prometheus.Collector](reg prometheus.Registerer, c *C) error {
	if reg == nil {
		return nil
	}
	err := reg.Register(*c)
	if twice, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		*c = twice.ExistingCollector.(C)
		return nil
	}
	if err != nil {
		return fmt.Errorf("register metrics of the load: %w", err)
	}
	return nil
}
