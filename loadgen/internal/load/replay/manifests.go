package replay

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/load/object"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

type fields = map[string]any

// idle returns labels that no existing object has, for the pod templates of workloads and for selectors.
func idle() fields { return fields{"stormglass.dev/replay": "none"} }

// podTemplate returns the pod template for workloads. If a controller created a pod from it, the pod would stay
// Pending.
func podTemplate(restart string) fields {
	return fields{
		"metadata": fields{"labels": idle()},
		"spec": fields{
			"schedulerName": "stormglass-none", "nodeSelector": fields{"stormglass.dev/no-such-node": "true"}, "restartPolicy": restart,
			"containers": []any{fields{"name": "none", "image": "stormglass.invalid/none"}},
		},
	}
}

// manifestOf returns a manifest without metadata for a resource that has no built-in manifest in package object. The
// manifest has only the fields that the API server requires, and makes no controller create pods. For an unknown
// resource, manifestOf returns an empty spec, which the API server may refuse, and false.
func manifestOf(resource string) (fields, bool) {
	workload := func(more fields) fields {
		spec := fields{"replicas": 0, "selector": fields{"matchLabels": idle()}, "template": podTemplate("Always")}
		maps.Copy(spec, more)
		return fields{"spec": spec}
	}
	switch resource {
	case "deployments.apps", "replicasets.apps":
		return workload(nil), true
	case "statefulsets.apps":
		return workload(fields{"serviceName": "none"}), true
	case "daemonsets.apps":
		f := workload(nil)
		delete(f["spec"].(fields), "replicas")
		return f, true
	case "replicationcontrollers":
		return workload(fields{"selector": idle()}), true
	case "jobs.batch":
		// Set the selector explicitly, so that an update can send the same manifest.
		return fields{"spec": fields{"suspend": true, "manualSelector": true, "selector": fields{"matchLabels": idle()}, "template": podTemplate("Never")}}, true
	case "cronjobs.batch":
		return fields{"spec": fields{"suspend": true, "schedule": "0 0 1 1 *", "jobTemplate": fields{"spec": fields{"template": podTemplate("Never")}}}}, true
	case "podtemplates":
		return fields{"template": podTemplate("Always")}, true
	case "controllerrevisions.apps":
		return fields{"revision": 1, "data": fields{}}, true
	case "endpoints":
		return fields{}, true
	case "endpointslices.discovery.k8s.io":
		return fields{"addressType": "IPv4", "endpoints": []any{}}, true
	case "events":
		return fields{
			"involvedObject": fields{"kind": "Pod", "namespace": object.NamespaceSlot, "name": "none"},
			"reason":         "Replayed", "message": "replayed", "type": "Normal", "source": fields{"component": "stormglass"},
		}, true
	case "events.events.k8s.io":
		return fields{
			"regarding": fields{"kind": "Pod", "namespace": object.NamespaceSlot, "name": "none"}, "eventTime": "2026-01-01T00:00:00.000000Z",
			"reason": "Replayed", "note": "replayed", "type": "Normal", "action": "Replay",
			"reportingController": "stormglass.dev/replay", "reportingInstance": "stormglass",
		}, true
	case "persistentvolumeclaims":
		return fields{"spec": fields{
			"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "stormglass-none", "resources": fields{"requests": fields{"storage": "1Gi"}},
		}}, true
	case "roles.rbac.authorization.k8s.io":
		return fields{"rules": []any{}}, true
	case "networkpolicies.networking.k8s.io":
		return fields{"spec": fields{"podSelector": fields{"matchLabels": idle()}, "policyTypes": []any{"Ingress"}}}, true
	case "ingresses.networking.k8s.io":
		return fields{"spec": fields{"defaultBackend": fields{"service": fields{"name": "none", "port": fields{"number": 80}}}}}, true
	case "poddisruptionbudgets.policy":
		return fields{"spec": fields{"minAvailable": 0, "selector": fields{"matchLabels": idle()}}}, true
	case "horizontalpodautoscalers.autoscaling":
		return fields{"spec": fields{"maxReplicas": 1, "scaleTargetRef": fields{"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}}}, true
	case "resourcequotas":
		return fields{"spec": fields{"hard": fields{}}}, true
	case "limitranges":
		return fields{"spec": fields{"limits": []any{}}}, true
	}
	return fields{"spec": fields{}}, false
}

// versioned reports whether updates of a resource must contain a resourceVersion. Custom resources and a few built-in
// ones require it.
func versioned(resource string) bool {
	if slices.Contains([]string{"leases.coordination.k8s.io", "poddisruptionbudgets.policy", scenario.WidgetResource}, resource) {
		return true
	}
	_, known := manifestOf(resource)
	return !known && !slices.Contains(scenario.Manifests, resource)
}

// fixedBody returns the body of a request that does not send the object's manifest, such as an eviction or a review. It
// returns "" for all other requests.
func fixedBody(s recording.Shape, apiVersion, namespace, name string) string {
	switch resource := s.GroupResource(); {
	case s.Subresource == "eviction" && s.Verb == "create":
		return fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q,"namespace":%q}}`, name, namespace)
	case s.Subresource == "token" && s.Verb == "create":
		return `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600}}`
	case s.Subresource == "scale" && s.Verb == "update":
		return fmt.Sprintf(`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":%q,"namespace":%q},"spec":{"replicas":0}}`, name, namespace)
	case s.Subresource == "scale" && s.Verb == "patch":
		return `{"spec":{"replicas":0}}`
	case builtin.IsReview(resource):
		return reviewBody(resource, apiVersion, namespace)
	}
	return ""
}

// reviewBody returns the body of a review. The user and the token in the review do not exist.
func reviewBody(resource, apiVersion, namespace string) string {
	about := `{"verb":"get","resource":"pods"}`
	kind, spec, meta := "", "{}", ""
	switch plural, _, _ := strings.Cut(resource, "."); plural {
	case "tokenreviews":
		kind, spec = "TokenReview", `{"token":"stormglass"}`
	case "subjectaccessreviews":
		kind, spec = "SubjectAccessReview", `{"user":"stormglass:nobody","resourceAttributes":`+about+`}`
	case "localsubjectaccessreviews":
		kind, meta = "LocalSubjectAccessReview", fmt.Sprintf(`"metadata":{"namespace":%q},`, namespace)
		spec = fmt.Sprintf(`{"user":"stormglass:nobody","resourceAttributes":{"verb":"get","resource":"pods","namespace":%q}}`, namespace)
	case "selfsubjectaccessreviews":
		kind, spec = "SelfSubjectAccessReview", `{"resourceAttributes":`+about+`}`
	case "selfsubjectrulesreviews":
		kind, spec = "SelfSubjectRulesReview", `{"namespace":"default"}`
	case "selfsubjectreviews":
		return fmt.Sprintf(`{"apiVersion":%q,"kind":"SelfSubjectReview"}`, apiVersion)
	}
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,%s"spec":%s}`, apiVersion, kind, meta, spec)
}
