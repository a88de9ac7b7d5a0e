package importer

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/template"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// manifest is a Kubernetes object that was rendered from a template.
type manifest map[string]any

// render returns the objects that a template renders to. It fails with a *template.Error if the template cannot be
// rendered, for example within the time limit, and with another error if Kubernetes lacks the kind of an object. Random
// functions return the same values in each call.
func render(limits *template.Bounds, text string, values map[string]any) ([]manifest, error) {
	if err := limits.Late(); err != nil {
		return nil, err
	}
	t, err := template.Parse(text)
	if err != nil {
		return nil, err
	}
	all, err := t.Documents(values, 1, 1)
	if err != nil {
		return nil, err
	}
	var objects []manifest
	for _, one := range all {
		m := manifest(one)
		if hint := builtin.UnknownKind(m.apiVersion(), m.kind()); hint != "" && m.apiVersion() != "" {
			return nil, fmt.Errorf("%s of %s is not a kind of Kubernetes (%s)", m.kind(), m.apiVersion(), hint)
		}
		objects = append(objects, m)
	}
	return objects, nil
}

// at returns the mapping at a path, or nil if it is missing.
func (m manifest) at(path ...string) manifest {
	for _, key := range path {
		m, _ = asMap(m[key])
	}
	return m
}

func asMap(v any) (manifest, bool) {
	m, ok := v.(map[string]any)
	return m, ok
}

// list returns the mappings in the lists at the given keys.
func (m manifest) list(keys ...string) (all []manifest) {
	for _, key := range keys {
		for _, v := range asList(m[key]) {
			one, _ := asMap(v)
			all = append(all, one)
		}
	}
	return all
}

// each calls visit for each mapping in an object, except in metadata.
func (m manifest) each(visit func(manifest)) {
	visit(m)
	for _, key := range sortedKeys(m) {
		one, _ := asMap(m[key])
		for _, of := range append(m.list(key), one) {
			if of != nil && key != "metadata" {
				of.each(visit)
			}
		}
	}
}

func asList(v any) []any {
	all, _ := v.([]any)
	return all
}

func (m manifest) text(key string) string {
	s, _ := m[key].(string)
	return s
}

func (m manifest) kind() string       { return m.text("kind") }
func (m manifest) apiVersion() string { return m.text("apiVersion") }
func (m manifest) name() string       { return m.at("metadata").text("name") }
func (m manifest) namespace() string  { return m.at("metadata").text("namespace") }

func (m manifest) labels() map[string]string { return textsOf(m.at("metadata", "labels")) }

func (m manifest) resource() string { return builtin.ResourceOf(m.apiVersion(), m.kind()) }

// spread reports whether a job spreads an object over its namespaces: the object is namespaced but names no namespace.
func (m manifest) spread() bool { return namespaced(m.kind()) && m.namespace() == "" }

func textsOf(m manifest) map[string]string {
	all := map[string]string{}
	for key, value := range m {
		if s, ok := value.(string); ok {
			all[key] = s
		}
	}
	return all
}

// podSpec returns the path of the pod spec in objects of a kind, or nil if the kind has none.
func podSpec(kind string) []string {
	switch kind {
	case "Pod":
		return []string{"spec"}
	case "Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job":
		return []string{"spec", "template", "spec"}
	case "CronJob":
		return []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	return nil
}

func (m manifest) podLabels() map[string]string {
	at := podSpec(m.kind())
	if at == nil {
		return nil
	}
	return textsOf(m.at(append(at[:len(at)-1], "metadata", "labels")...))
}

// need holds the capacity and the features that pods need from nodes and from the cluster. cpus is in cores and memory
// in bytes.
type need struct {
	pods, onEach float64 // onEach is the number of DaemonSet pods on each node
	cpus, memory float64
	claims       bool // whether the pods use PersistentVolumeClaims
}

func (n need) times(count float64) need {
	return need{n.pods * count, n.onEach * count, n.cpus * count, n.memory * count, n.claims}
}

func (n need) plus(o need) need {
	return need{n.pods + o.pods, n.onEach + o.onEach, n.cpus + o.cpus, n.memory + o.memory, n.claims || o.claims}
}

// These are the usable capacity of a simulated node with default settings: 100 pods, and 90% of its CPU cores and
// memory. Memory is in bytes.
const (
	nodePods   = 100
	nodeCPUs   = 7.2
	nodeMemory = 0.9 * (32 << 30)
)

// nodeCount returns the number of simulated nodes that the pods need, or 0 if there are no pods.
func (n need) nodeCount() int {
	if n.pods == 0 && n.onEach == 0 {
		return 0
	}
	return int(max(1, math.Ceil(n.pods/(nodePods-min(n.onEach, nodePods/2))), math.Ceil(n.cpus/nodeCPUs), math.Ceil(n.memory/nodeMemory)))
}

func (m manifest) need() need {
	n := need{claims: m.kind() == "PersistentVolumeClaim"}
	at := podSpec(m.kind())
	if at == nil {
		return n
	}
	spec := m.at(at...)
	for _, c := range spec.list("containers") {
		requests := c.at("resources", "requests")
		n.cpus += quantity(requests["cpu"])
		n.memory += quantity(requests["memory"])
	}
	for _, v := range spec.list("volumes") {
		n.claims = n.claims || v["persistentVolumeClaim"] != nil
	}
	replicas := 1.0
	switch m.kind() {
	case "DaemonSet":
		return need{onEach: 1, claims: n.claims}
	case "Job":
		replicas = numberOf(m.at("spec")["parallelism"])
	case "Pod":
	default:
		replicas = numberOf(m.at("spec")["replicas"])
	}
	n.pods = 1
	return n.times(replicas)
}

func numberOf(v any) float64 {
	switch n := v.(type) {
	case int:
		return float64(n)
	case float64:
		return n
	}
	return 1
}

// quantity returns the value of a resource quantity, or 0 if it is missing or invalid.
func quantity(v any) float64 {
	q, _ := builtin.ParseQuantity(fmt.Sprint(v))
	return q.AsApproximateFloat64()
}

// namespaced reports whether the objects of a kind have a namespace. It assumes so for custom resources.
func namespaced(kind string) bool {
	return !slices.ContainsFunc(slices.Collect(maps.Values(builtin.Resources())), func(r builtin.Resource) bool { return r.Kind == kind && r.Cluster })
}

// stub is a custom resource that the scenario defines without a schema.
type stub struct {
	group, kind, scope string
	versions           []string // API versions; the API server stores objects in the first one
}

// unserved returns the reason why a bundled control plane does not serve an object, or "" if it does. With
// Options.StubCRDs, it adds a stub for a custom resource and returns "". `cluster` means that it is cluster-scoped.
func (d *draft) unserved(m manifest, cluster bool) string {
	apiVersion, kind := m.apiVersion(), m.kind()
	resource := builtin.ResourceOf(apiVersion, kind)
	switch hint := plan.ServesVersion(control.Config{}, apiVersion, kind); {
	case d.options.OwnCluster:
		return ""
	case hint != "":
		return fmt.Sprintf("a bundled control plane does not serve %s of %s (%s)", kind, apiVersion, hint)
	case !builtin.IsCustom(resource):
		return ""
	case !d.options.StubCRDs:
		return fmt.Sprintf("a bundled control plane has no %s of %s: import with --stub-crds to define it, or run with --kubeconfig on a cluster that has it", kind, apiVersion)
	}
	s := d.stubs[resource]
	if s == nil {
		s = &stub{group: groupOf(apiVersion), kind: kind, scope: "Namespaced"}
		if d.stubs[resource] = s; cluster || strings.HasPrefix(kind, "Cluster") {
			s.scope = "Cluster"
		}
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
		plural, _, _ := strings.Cut(resource, ".")
		var versions []*mapping
		for i, version := range s.versions {
			versions = append(versions, flow("name", version, "served", true, "storage", i == 0, "subresources", flow("status", flow()),
				"schema", flow("openAPIV3Schema", flow("type", "object", "x-kubernetes-preserve-unknown-fields", true))))
		}
		object := block("apiVersion", "apiextensions.k8s.io/v1", "kind", definitionKind,
			// API servers require the second annotation for groups of Kubernetes, such as snapshot.storage.k8s.io.
			"metadata", flow("name", resource, "annotations", flow(scenario.StubAnnotation, "true", "api-approved.kubernetes.io", "unapproved, a stub")),
			"spec", block("group", s.group, "scope", s.scope, "names", flow("plural", plural, "kind", s.kind), "versions", versions))
		all = append(all, block("kind", "create", "object", object))
	}
	return all
}
