// Package record scrapes every component and the generator itself into a Prometheus TSDB
// in the run's directory.
//
// The scrape loop is our own (docs/design.md says why); parsing, storage and PromQL are
// Prometheus'. As in Prometheus there are the labels job and instance, up and the scrape_*
// series, and staleness markers when a series or a target goes away.
//
// # Zero injection
//
// A counter that first appears in a scrape has counted since some moment after the scrape
// before, and PromQL would lose its first value. Its series is given a 0 at the time of
// the scrape before, if that was of the same process (process_start_time_seconds), as in
// Prometheus' created-timestamp-zero-ingestion: increase() over a phase is exact.
//
// # Windows
//
// A phase lies between two boundary scrapes. PromQL's ranges are open on the left, so
// the range that includes both is their distance and one millisecond more
// (archive.Window); increase() extrapolates by that millisecond at most.
package record
