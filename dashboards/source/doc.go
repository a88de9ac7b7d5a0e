// Package source writes the dashboards: one YAML file describes each, process.yaml the
// row that several have, reasons.yaml why a query may be empty; build.go turns them into
// Grafana's JSON with Grafana's own SDK. No program imports it: package dashboards embeds
// the JSON.
//
//	go test ./dashboards/source -update
//
// writes dashboards/json, dashboards/proof.json and docs/reference/dashboards.md.
//
// The SDK is pinned at v0.0.12: the newest version in which the schema that every
// Grafana imports and provisions from files (v1) is not deprecated, and in which
// the strict decoder, which the tests use, reports errors correctly.
package source
