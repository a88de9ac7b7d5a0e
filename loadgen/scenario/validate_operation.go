package scenario

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/builtin"
)

// Verbs lists the verbs of operations.
var Verbs = []string{"get", "list", "create", "update", "patch", "delete", "deletecollection", "apply"}

func (v *validator) operation(path string, o *Operation, l *Load) {
	if hint := verbHint(o.Verb); hint != "" {
		v.fail(path+".verb", hint, "unknown value %q", o.Verb)
		return
	}
	if !v.oneOf(path+".verb", o.Verb, Verbs...) {
		return
	}
	if builtin.IsDocument(o.Resource) && !l.OpensWatches() {
		v.document(path, o)
		return
	}
	reads := o.Verb == "get" || o.Verb == "list"
	if !reads && l.Object == nil && !slices.Contains(Manifests, o.Resource) {
		v.fail(path+".resource", "add object: {apiVersion: ..., kind: ...}; loadgen itself has manifests only for "+strings.Join(Manifests, ", "), "cannot %s %q without a manifest", o.Verb, o.Resource)
	}
	if o.ResourceVersion != "" && o.ResourceVersion != "0" && o.ResourceVersion != "exact" {
		v.fail(path+".resourceVersion", `"", "0" or, for a list, exact`, "unknown value %q", o.ResourceVersion)
	}
	v.onlyFor(path, o.Verb, []field{
		{"resourceVersion", o.ResourceVersion == "0", "get list"}, {"resourceVersion", o.ResourceVersion == "exact", "list"},
		{"limit", o.Limit != 0, "list deletecollection"}, {"allPages", o.AllPages, "list"},
		{"labelSelector", o.LabelSelector != "", "list deletecollection"}, {"fieldSelector", o.FieldSelector != "", "list deletecollection"},
		{"form", o.Form != "object", "get list"}, {"scope", o.Scope != "namespace", "list"},
		{"subresource", o.Subresource != "", "get create update patch apply"}, {"patchType", o.PatchType != "", "patch"},
		{"body", o.Body != nil, "create patch"},
	})
	v.body(path, o)
	v.between(path+".limit", float64(o.Limit), 0, 100_000)
	if o.AllPages && o.Limit == 0 {
		v.fail(path+".allPages", "write limit: 500", "without a limit, a list has only one page")
	}
	v.answer(path, l, o)
}

// verbHint returns a hint if HTTP or kubectl uses another name for a verb.
func verbHint(verb string) string {
	switch strings.ToLower(verb) {
	case "watch":
		return "use a separate load in a phase: {kind: watches, count: 100, rate: 50/s}"
	case "post":
		return "write create"
	case "put", "replace", "edit":
		return "write update"
	}
	if lower := strings.ToLower(verb); lower != verb && slices.Contains(Verbs, lower) {
		return "write " + lower
	}
	return ""
}

// answer checks the resource and the selectors of an operation or a watch, and the format of the responses.
func (v *validator) answer(path string, l *Load, o *Operation) {
	if strings.Trim(o.Resource, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" {
		v.fail(path+".resource", "for example configmaps or deployments.apps", "%q is not a resource", o.Resource)
	} else {
		v.served(path, l, o)
	}
	if _, err := labels.Parse(o.LabelSelector); err != nil {
		v.fail(path+".labelSelector", "for example app=web,tier!=cache", "%q is not a label selector", o.LabelSelector)
	}
	v.fieldSelector(path+".fieldSelector", o.Resource, o.FieldSelector)
	v.oneOf(path+".form", o.Form, "object", "metadata", "table")
	v.oneOf(path+".scope", o.Scope, "namespace", "cluster")
	if !v.oneOf(path+".encoding", o.Encoding, "json", "protobuf", "cbor") {
		return
	}
	switch {
	case o.Encoding == "protobuf" && o.Form == "table":
		v.fail(path+".encoding", "write encoding: json", "API servers do not send tables in protobuf")
	case o.Encoding == "cbor" && o.Form == "table":
		v.fail(path+".encoding", "write encoding: json", "loadgen reads tables only in JSON")
	case o.Encoding == "protobuf" && o.Resource == WidgetResource && o.Form == "object":
		v.fail(path+".encoding", "write encoding: json", "custom resources do not support protobuf")
	case o.Encoding == "cbor" && !v.s.ControlPlane.FeatureGates[cborGate]:
		v.fail(path+".encoding", "write controlPlane: {featureGates: {"+cborGate+": true}}", "API servers do not send CBOR unless the feature gate %s is on, and it is off by default", cborGate)
	}
}

const cborGate = "CBORServingAndStorage"

// selectableOf lists the fields that field selectors may use for a resource. It returns nil for a custom resource,
// whose fields only a cluster knows.
func selectableOf(resource string) []string {
	if own, ok := builtin.Selectable()[resource]; ok {
		return own
	}
	if _, ok := builtin.Resources()[resource]; ok || resource == WidgetResource {
		return []string{"metadata.name", "metadata.namespace"}
	}
	return nil
}

var phasesOf = map[string][]string{
	"pods":       {string(corev1.PodPending), string(corev1.PodRunning), string(corev1.PodSucceeded), string(corev1.PodFailed), string(corev1.PodUnknown)},
	"namespaces": {string(corev1.NamespaceActive), string(corev1.NamespaceTerminating)},
}

// nearField returns the known field that word most likely means, or "".
func nearField(word string, known []string) string {
	for _, k := range known {
		if strings.HasSuffix(strings.ToLower(k), "."+strings.ToLower(word)) || strings.TrimPrefix(k, "regarding") == strings.TrimPrefix(word, "involvedObject") {
			return k
		}
	}
	return strictyaml.Suggest(word, known)
}

func (v *validator) fieldSelector(path, resource, text string) {
	s, err := fields.ParseSelector(text)
	if err != nil {
		v.fail(path, "for example metadata.name=x", "%q is not a field selector", text)
		return
	}
	if v.s.recorded {
		return
	}
	known := selectableOf(resource)
	for _, r := range s.Requirements() {
		if phases := phasesOf[resource]; r.Field == "status.phase" && len(phases) > 0 && !slices.Contains(phases, r.Value) {
			v.oneOf(path, r.Value, phases...)
			continue
		}
		if len(known) == 0 || slices.Contains(known, r.Field) {
			continue
		}
		hint := "selectable fields: " + strings.Join(known, ", ")
		if near := nearField(r.Field, known); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		} else if strings.HasPrefix(r.Field, "metadata.labels") || !strings.Contains(r.Field, ".") && r.Field != "type" {
			hint = "use labelSelector for labels; " + hint
		}
		v.fail(path, hint, "the API server cannot select %s by %q", resource, r.Field)
	}
}

// body checks the fields of an operation whose request body is not a whole object.
func (v *validator) body(path string, o *Operation) {
	if o.PatchType != "" {
		v.oneOf(path+".patchType", o.PatchType, "merge", "json", "strategic")
	}
	if strings.Trim(o.Subresource, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		v.fail(path+".subresource", "for example status", "%q is not a subresource", o.Subresource)
	}
	_, list := o.Body.([]any)
	switch {
	case o.Verb == "create" && o.Subresource != "" && o.Body == nil:
		v.fail(path+".body", "for example body: {apiVersion: policy/v1, kind: Eviction}", "to create %s/%s, a body is required", o.Resource, o.Subresource)
	case o.Verb == "create" && o.Subresource == "" && o.Body != nil:
		v.fail(path+".body", "to create a resource write object: {...}; to create a subresource add subresource:", "this field has no effect when %s are created", o.Resource)
	case o.PatchType == "json" && o.Body == nil:
		v.fail(path+".body", `for example body: [{op: replace, path: /data/payload, value: "{{.Turn}}"}]`, "a JSON patch requires a list of operations")
	case o.Body != nil && list != (o.PatchType == "json"):
		v.fail(path+".body", "a JSON patch is a list of operations, and any other body consists of fields", "the body does not match the verb and patchType")
	case o.PatchType == "strategic" && (builtin.IsCustom(o.Resource) || o.Resource == WidgetResource):
		v.fail(path+".patchType", "write merge", "custom resources do not support strategic merge patches")
	}
	if o.Body != nil && !v.s.recorded {
		if _, err := RenderBodies(o.Body); err != nil {
			v.fail(path+".body", "the body is a Go template that can use sprig's functions and {{.Turn}}", "%v", err)
		}
	}
}
