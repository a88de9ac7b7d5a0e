// The Prometheus operator's module, for its CRDs: tests apply them to a control
// plane, and then the manifests that need them. The files are read from Go's
// module cache (4 MB, once); no package is imported, so nothing is built, its
// dependencies are not looked at, and "go mod tidy" would empty this file.
//
// v0.85.0 is the last version of that module on the module proxy. The kinds and
// fields that our manifests use have only been added to since.
module github.com/stormglass/stormglass/deploy/testdata/operator

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
