// Package metricopts holds the options of the load generator's histograms.
package metricopts

import "github.com/prometheus/client_golang/prometheus"

// Latency returns the options of a histogram of latencies in seconds: classic buckets that double from 1 ms to 65.536
// s, and native buckets with a growth factor of at most 1.1.
func Latency(name, help string) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help,
		Buckets:                        prometheus.ExponentialBuckets(0.001, 2, 17),
		NativeHistogramBucketFactor:    1.1,
		NativeHistogramMaxBucketNumber: 160,
	}
}
