package scenario

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

func (v *validator) operation(path string, o *Operation, l *Load) {
	if hint := verbHint(o.Verb); hint != "" {
		v.fail(path+".verb", hint, "unknown value %q", o.Verb)
		return
	}
	if !v.oneOf(path+".verb", o.Verb, "get", "list", "create", "update", "patch", "delete", "apply") {
		return
	}
	reads := o.Verb == "get" || o.Verb == "list"
	if !reads && l.Object == nil && !slices.Contains(Manifests, o.Resource) {
		v.fail(path+".resource", "give it an object: {apiVersion: ..., kind: ...}; there are manifests for "+strings.Join(Manifests, ", "), "cannot %s %q", o.Verb, o.Resource)
	}
	if o.ResourceVersion != "" && o.ResourceVersion != "0" && o.ResourceVersion != "exact" {
		v.fail(path+".resourceVersion", `"", "0" or, for a list, exact`, "unknown value %q", o.ResourceVersion)
	}
	v.onlyFor(path, o.Verb, []field{
		{"resourceVersion", o.ResourceVersion == "0", "get list"}, {"resourceVersion", o.ResourceVersion == "exact", "list"},
		{"limit", o.Limit != 0, "list"}, {"allPages", o.AllPages, "list"},
		{"labelSelector", o.LabelSelector != "", "list"}, {"fieldSelector", o.FieldSelector != "", "list"},
		{"form", o.Form != "object", "get list"}, {"scope", o.Scope != "namespace", "list"},
	})
	v.between(path+".limit", float64(o.Limit), 0, 100_000)
	if o.AllPages && o.Limit == 0 {
		v.fail(path+".allPages", "write limit: 500", "a list without a limit has one page")
	}
	v.answer(path, l, o)
}

// verbHint says how what HTTP and kubectl call otherwise is written.
func verbHint(verb string) string {
	switch strings.ToLower(verb) {
	case "watch":
		return "watches are a load of their own, in a phase: {kind: watches, count: 100, rate: 50/s}"
	case "post":
		return "write create"
	case "put", "replace", "edit":
		return "write update"
	case "deletecollection":
		return "write delete: it takes one object at a time"
	case "get", "list", "create", "update", "patch", "delete", "apply":
		if lower := strings.ToLower(verb); lower != verb {
			return "write " + lower
		}
	}
	return ""
}

// answer checks what an operation or a watch asks for, and the form of answers.
func (v *validator) answer(path string, l *Load, o *Operation) {
	if strings.Trim(o.Resource, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" {
		v.fail(path+".resource", "as configmaps or deployments.apps", "%q is not a resource", o.Resource)
	} else {
		v.served(path, l, o)
	}
	if _, err := labels.Parse(o.LabelSelector); err != nil {
		v.fail(path+".labelSelector", "as app=web,tier!=cache", "%q is no label selector", o.LabelSelector)
	}
	v.fieldSelector(path+".fieldSelector", o.Resource, o.FieldSelector)
	v.oneOf(path+".form", o.Form, "object", "metadata", "table")
	v.oneOf(path+".scope", o.Scope, "namespace", "cluster")
	if v.oneOf(path+".encoding", o.Encoding, "json", "protobuf") && o.Encoding == "protobuf" {
		switch {
		case o.Form == "table":
			v.fail(path+".encoding", "write encoding: json", "API servers send no tables in protobuf")
		case o.Resource == WidgetResource && o.Form == "object":
			v.fail(path+".encoding", "write encoding: json", "custom resources have no protobuf")
		}
	}
}
