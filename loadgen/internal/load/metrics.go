package load

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers the collector *c. If an equal collector is already registered, Register sets *c to that one. If
// reg is nil, Register does nothing.
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
