// Package metricopts holds the options of the load generator's histograms.
package metricopts

import "github.com/prometheus/client_golang/prometheus"

// Latency returns the options of a histogram of latencies in seconds, with classic buckets that double from 1 ms to
// 65.536 s.
func Latency(name, help string) prometheus.HistogramOpts {
	return Histogram(name, help, prometheus.ExponentialBuckets(0.001, 2, 17))
}

// Histogram returns the options of a histogram with the given classic buckets, and with native buckets that have a
// growth factor of at most 1.1. The native buckets are never reset.
func Histogram(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets, NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160}
}
