// Package source generates the dashboards as JSON for Grafana. It uses Grafana's SDK and the YAML files in this
// directory, which package dashboards reads. The package has only tests, so no program links the SDK. This command
// writes dashboards/json and docs/reference/dashboards.md:
//
//	go test ./dashboards/source -update
//
// The SDK is pinned at v0.0.12. In newer versions, the schema v1, which every Grafana imports and provisions from
// files, is deprecated, or the strict decoder, which the tests use, reports errors incorrectly.
package source
