package scenario

import (
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/builtin"
)

// documents lists the paths of the discovery and OpenAPI documents that a load can get.
var documents = []string{"/api", "/apis", "/openapi/v2", "/openapi/v3"}

func (v *validator) document(at string, o *Operation) {
	known := slices.Contains(documents, o.Resource)
	for _, d := range documents {
		known = known || d != "/openapi/v2" && strings.HasPrefix(o.Resource, d+"/") && path.Clean(o.Resource) == o.Resource
	}
	switch {
	case !known:
		v.fail(at+".resource", strictyaml.Hint(o.Resource, documents, "known documents: "+strings.Join(documents, ", ")+", and paths below them"), "unknown discovery or OpenAPI document %q", o.Resource)
	case o.Verb != "get":
		v.fail(at+".verb", "write verb: get", "%s is a document, which supports only get", o.Resource)
	}
	v.onlyFor(at, "a document", []field{
		{"resourceVersion", o.ResourceVersion != "", "objects"}, {"form", o.Form != "object", "objects"},
		{"encoding", o.Encoding != "json", "objects"}, {"scope", o.Scope != "namespace", "objects"},
	})
}

func (v *validator) resource(path, name string, verbs ...string) {
	of, ok := builtin.Resources()[name]
	if !ok {
		if builtin.IsCustom(name) {
			return
		}
		v.fail(path, builtin.Hint(name), "Kubernetes has no resource %q", name)
		return
	}
	for _, verb := range verbs {
		if verb == "apply" {
			verb = "patch"
		}
		if !slices.Contains(of.Verbs, verb) {
			v.fail(path, "it supports "+strings.Join(of.Verbs, ", "), "%s does not support %s", name, verb)
			return
		}
	}
}

// clusterScoped reports whether the objects of a resource, built in or defined by the scenario, have no namespace.
func (v *validator) clusterScoped(name string) bool {
	if len(v.errs) > 0 || !builtin.IsCustom(name) { // invalid definitions cannot be read
		return builtin.Resources()[name].Cluster
	}
	return slices.ContainsFunc(v.s.CustomResources(), func(c CustomResource) bool { return c.Name == name && !c.Namespaced })
}

// served checks the resource of an operation or of watches.
func (v *validator) served(path string, l *Load, o *Operation) {
	verbs := []string{o.Verb}
	if l.OpensWatches() {
		verbs = []string{"list", "watch"}
	}
	if l.OwnObjects(*o) {
		verbs = append(verbs, "create", "patch")
	}
	v.resource(path+".resource", o.Resource, verbs...)
}

// manifestFields checks the fields of a manifest; ok is false if it is not a manifest.
func (v *validator) manifestFields(path string, manifest any) (m map[string]any, ok bool) {
	m, _ = manifest.(map[string]any)
	apiVersion, _ := m["apiVersion"].(string)
	kind, _ := m["kind"].(string)
	if apiVersion == "" || kind == "" {
		v.fail(path, "write apiVersion:, kind: and the fields that the resource requires", "this is not a manifest")
		return nil, false
	}
	if meta, ok := m["metadata"]; ok && meta != nil {
		if _, ok := meta.(map[string]any); !ok {
			v.fail(path+".metadata", "write name: value, or leave it out", "metadata must be fields")
			return nil, false
		}
	}
	if !v.s.recorded {
		builtin.CheckFields(path, m, v.fail)
	}
	return m, true
}

func (v *validator) manifest(path string, l *Load) {
	m, ok := v.manifestFields(path+".object", l.Object)
	if !ok {
		return
	}
	apiVersion, kind := m["apiVersion"], m["kind"].(string)
	used := false
	for _, o := range l.Operations() {
		of, ok := builtin.Resources()[o.Resource]
		switch {
		case l.manifestOf(o):
			used = true
			if builtin.IsReview(o.Resource) {
				v.review(path+".object", o.Resource, m)
			}
		case slices.Contains(Manifests, o.Resource) || o.Verb != "create" && !l.OwnObjects(o):
		case ok:
			v.fail(path+".object", fmt.Sprintf("write apiVersion: %s and kind: %s", of.Versions[0], of.Kind), "a %s of %s is not an object of %s", kind, apiVersion, o.Resource)
			return
		default:
			v.fail(path+".object", "write its apiVersion, of group "+builtin.GroupOf(o.Resource), "a %s of %s is not an object of %s", kind, apiVersion, o.Resource)
			return
		}
	}
	if !used {
		hint := "leave out the object, or name its resource in the load"
		if of, ok := builtin.Resources()[l.Operations()[0].Resource]; ok && strings.EqualFold(of.Kind, kind) {
			hint = fmt.Sprintf("write apiVersion: %s and kind: %s", of.Versions[0], of.Kind)
		}
		v.fail(path+".object", hint, "no operation of the load uses a %s of %s", kind, apiVersion)
	}
}

// review checks the manifest of a review (see IsReview), in which the API server does not accept metadata.
func (v *validator) review(path, resource string, m map[string]any) {
	switch _, has := m["metadata"]; {
	case resource == "localsubjectaccessreviews.authorization.k8s.io":
		v.fail(path, "use subjectaccessreviews.authorization.k8s.io, with spec.resourceAttributes.namespace", "a %s must contain the namespace of the run, which is not known yet", m["kind"])
	case has:
		v.fail(path+".metadata", "leave it out", "the API server does not accept metadata in a %s", m["kind"])
	}
}

func (l *Load) manifestOf(o Operation) bool {
	m, _ := l.Object.(map[string]any)
	apiVersion, _ := m["apiVersion"].(string)
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		group = ""
	}
	if m == nil || group != builtin.GroupOf(o.Resource) {
		return false
	}
	of, ok := builtin.Resources()[o.Resource]
	return !ok || of.Kind == m["kind"] && slices.Contains(of.Versions, apiVersion)
}

// Limits of the API server for the content of an object.
const (
	// AnnotationLimit is the maximum size, in bytes, of a payload in an annotation: TotalAnnotationSizeLimitB of
	// apimachinery's api/validation, minus 4 KiB for other annotations.
	AnnotationLimit = 256<<10 - 4<<10
	// DataLimit is the maximum size, in bytes, of a payload in a ConfigMap, Secret or any other object: MaxSecretSize
	// of Kubernetes' core API.
	DataLimit = 1 << 20
)

// payloadLimit returns the largest payload of an operation's objects in bytes, and the reason for this limit.
func (l *Load) payloadLimit(o Operation) (limit int, why string) {
	switch {
	case l.manifestOf(o):
	case o.Resource == "configmaps" || o.Resource == WidgetResource:
		return DataLimit, o.Resource + " hold at most 1MiB"
	case o.Resource == "secrets":
		return DataLimit / 3 * 3, "secrets hold at most 1MiB, and base64 encodes three bytes at a time"
	case !slices.Contains(Manifests, o.Resource):
		return DataLimit, ""
	}
	own := 0
	if m, ok := l.Object.(map[string]any); ok && l.manifestOf(o) {
		meta, _ := m["metadata"].(map[string]any)
		all, _ := meta["annotations"].(map[string]any)
		for key, value := range all {
			own += len(key) + len(fmt.Sprint(value))
		}
	}
	return AnnotationLimit - own, o.Resource + " have their payload in an annotation"
}

func (v *validator) payloads(path string, l *Load) {
	type sized struct {
		path string
		size Bytes
	}
	all := []sized{{path + ".size", l.Size}}
	if len(l.Sizes) > 0 {
		all = nil
	}
	for i, s := range l.Sizes {
		all = append(all, sized{fmt.Sprintf("%s.sizes[%d].size", path, i), s.Size})
	}
	for _, s := range all {
		for _, o := range l.Operations() {
			if o.Verb != "create" && !l.OwnObjects(o) {
				continue
			}
			if limit, why := l.payloadLimit(o); s.size <= 1<<20 && int(s.size) > limit {
				v.fail(s.path, fmt.Sprintf("at most %d", max(limit, 1)), "%d bytes is too large: %s", s.size, why)
				break
			}
		}
	}
}
