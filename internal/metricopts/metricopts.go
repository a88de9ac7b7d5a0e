// Package metricopts holds the options of the generator's histograms.
package metricopts

import "github.com/prometheus/client_golang/prometheus"

// Latency returns the options of a latency in seconds: buckets from 1 ms to 64 s by
// powers of two, and a native histogram that is true to 10%.
func Latency(name, help string) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help,
		Buckets:                        prometheus.ExponentialBuckets(0.001, 2, 17),
		NativeHistogramBucketFactor:    1.1,
		NativeHistogramMaxBucketNumber: 160,
	}
}
