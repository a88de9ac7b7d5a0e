package importer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// stub is a custom resource that the scenario defines without a schema.
type stub struct {
	group, plural, kind string
	cluster             bool     // whether its objects have no namespace
	versions            []string // the first one is stored
}

// unserved returns why a bundled control plane does not serve an object, or "". With Options.StubCRDs, it adds a stub for a
// custom resource. cluster means that its objects have no namespace.
func (d *draft) unserved(m manifest, cluster bool) string {
	apiVersion, kind := m.apiVersion(), m.kind()
	resource := resourceOf(apiVersion, kind)
	switch hint := new(scenario.Scenario).ServesVersion(apiVersion, kind); {
	case d.options.OwnCluster:
		return ""
	case hint != "":
		return fmt.Sprintf("a bundled control plane does not serve %s of %s (%s)", kind, apiVersion, hint)
	case !scenario.IsCustom(resource):
		return ""
	case !d.options.StubCRDs:
		return fmt.Sprintf("a bundled control plane has no %s of %s: import with --stub-crds to define it, or run with --kubeconfig on a cluster that has it", kind, apiVersion)
	}
	plural, _, _ := strings.Cut(resource, ".")
	s := d.stubs[resource]
	if s == nil {
		s = &stub{group: groupOf(apiVersion), plural: plural, kind: kind, cluster: cluster || strings.HasPrefix(kind, "Cluster")}
		d.stubs[resource] = s
	}
	if version := strings.TrimPrefix(apiVersion, s.group+"/"); !slices.Contains(s.versions, version) {
		s.versions = append(s.versions, version)
	}
	return ""
}

// setup returns the actions that create the stubs.
func (d *draft) setup() (all []*mapping) {
	for _, resource := range sortedKeys(d.stubs) {
		s := d.stubs[resource]
		scope := "Namespaced"
		if s.cluster {
			scope = "Cluster"
		}
		var versions []*mapping
		for i, version := range s.versions {
			versions = append(versions, flow("name", version, "served", true, "storage", i == 0, "subresources", flow("status", flow()),
				"schema", flow("openAPIV3Schema", flow("type", "object", "x-kubernetes-preserve-unknown-fields", true))))
		}
		object := block("apiVersion", "apiextensions.k8s.io/v1", "kind", definitionKind,
			// API servers require the second annotation for groups of Kubernetes, such as snapshot.storage.k8s.io.
			"metadata", flow("name", resource, "annotations", flow(scenario.StubAnnotation, "true", "api-approved.kubernetes.io", "unapproved, a stub")),
			"spec", block("group", s.group, "scope", scope, "names", flow("plural", s.plural, "kind", s.kind), "versions", versions))
		all = append(all, block("kind", "create", "object", object))
	}
	return all
}
