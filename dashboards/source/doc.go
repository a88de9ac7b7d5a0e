// Package source is where the dashboards are written: one file each, as data,
// and build.go, which turns that into Grafana's JSON with Grafana's own SDK.
// Nothing that runs imports it: package dashboards embeds what it has written.
//
//	go test ./dashboards/source -update
//
// writes dashboards/json, dashboards/proof.json and docs/reference/dashboards.md.
//
// The SDK is pinned at v0.0.12: the newest version in which the schema that every
// Grafana imports and provisions from files (v1) is not deprecated, and in which
// the strict decoder, which the tests use, reports errors correctly.
package source
