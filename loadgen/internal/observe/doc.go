// Package observe serves what a recorder has recorded so far by the query API
// of Prometheus (https://prometheus.io/docs/prometheus/latest/querying/api/),
// with rules evaluated over it, so that Grafana's Prometheus data source,
// promtool and every other client of that API work with it unmodified.
//
// The engine, the storage and the rules' manager are Prometheus' own; the
// handlers are ours. Upstream's (web/api/v1) bring remote write and OTLP with
// them: 30 modules, most of an OpenTelemetry collector, and 14 MB more of a
// program of 62 (docs/design.md).
//
// It is read-only. Results of rules go into a store of their own: observing
// a run does not change its archive.
//
// It serves this machine: it listens on loopback addresses only unless it is
// told otherwise, and refuses requests under another host name, so that no page
// in a browser can ask it by a name of its own (DNS rebinding). There is no
// password, as Prometheus has none.
package observe
