package traffic

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// HistogramOpts are those of every latency of the loads: buckets from 1 ms to 64 s by powers of two. The native histogram beside
// them is true to 10%.
func HistogramOpts(name, help string) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help,
		Buckets:                        prometheus.ExponentialBuckets(0.001, 2, 17),
		NativeHistogramBucketFactor:    1.1,
		NativeHistogramMaxBucketNumber: 160,
	}
}

// Register registers a collector, or takes the one that another load has
// registered already. Without a registerer the metrics are kept for nobody.
func Register[C prometheus.Collector](reg prometheus.Registerer, c *C) error {
	if reg == nil {
		return nil
	}
	err := reg.Register(*c)
	var twice prometheus.AlreadyRegisteredError
	if errors.As(err, &twice) {
		*c = twice.ExistingCollector.(C)
		return nil
	}
	if err != nil {
		return fmt.Errorf("register metrics of the load: %w", err)
	}
	return nil
}
