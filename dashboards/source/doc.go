// Package source generates the dashboards as JSON for Grafana. It uses Grafana's SDK and the YAML files in this directory, which
// package dashboards reads. The package has only tests, so that no program links the SDK. This command writes dashboards/json and
// docs/reference/dashboards.md:
//
//	go test ./dashboards/source -update
//
// The SDK is pinned at v0.0.12. This is the newest version in which the schema that every Grafana imports and provisions from
// files (v1) is not deprecated, and in which the strict decoder, which the tests use, reports errors correctly.
package source
