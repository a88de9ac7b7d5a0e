package object

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// PayloadAnnotation is the annotation for the payload of objects that have no field for it.
const PayloadAnnotation = "stormglass.dev/payload"

// place is the field of an object that contains the payload.
type place uint8

const (
	inAnnotation place = iota
	inData             // the payload is in data.payload, as text
	inSecret           // the payload is in data.payload, in base64
	inSpec             // the payload is in spec.payload
	noPlace            // there is no payload: reviews have neither payload nor metadata
)

// manifest is a template for the objects of a resource. rest contains all fields except name, namespace, labels and
// payload, which compile adds.
type manifest struct {
	apiVersion, kind string
	rest             map[string]any
	payload          place
}

type object = map[string]any

// builtIn returns the built-in manifest for a resource. The manifest is as small as possible, and its objects cause no
// work for controllers.
func builtIn(resource string) (manifest, bool) {
	switch resource {
	case "configmaps":
		return manifest{"v1", "ConfigMap", nil, inData}, true
	case "secrets":
		return manifest{"v1", "Secret", object{"type": "Opaque"}, inSecret}, true
	case "services":
		// Controllers write no IPAddress and no EndpointSlice for a headless Service without a selector.
		return manifest{"v1", "Service", object{"spec": object{"clusterIP": "None", "ports": []any{object{"port": 80}}}}, inAnnotation}, true
	case "serviceaccounts":
		return manifest{"v1", "ServiceAccount", nil, inAnnotation}, true
	case "leases.coordination.k8s.io":
		return manifest{"coordination.k8s.io/v1", "Lease", object{"spec": object{"holderIdentity": "stormglass", "leaseDurationSeconds": 3600}}, inAnnotation}, true
	case "pods":
		return manifest{"v1", "Pod", object{"spec": podSpec()}, inAnnotation}, true
	case scenario.WidgetResource:
		return manifest{widgetGroup + "/" + widgetVersion, widgetKind, nil, inSpec}, true
	}
	return manifest{}, false
}

// podSpec returns the spec of a pod that never runs, because no scheduler and no node matches it. It contains the
// fields that admission sets by default, so that an update can send the same manifest.
func podSpec() object {
	tolerate := func(taint string) object {
		return object{"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
	}
	return object{
		"schedulerName":                "stormglass-none",
		"nodeSelector":                 object{"stormglass.dev/no-such-node": "true"},
		"serviceAccountName":           "default",
		"automountServiceAccountToken": false, // otherwise admission adds a volume with a random name
		"priority":                     0, "preemptionPolicy": "PreemptLowerPriority",
		"tolerations": []any{tolerate("node.kubernetes.io/not-ready"), tolerate("node.kubernetes.io/unreachable")},
		"containers":  []any{object{"name": "none", "image": "stormglass.invalid/none"}},
	}
}

// given converts the manifest that the scenario gives for a load's objects. It fails if the manifest is not valid.
func given(from any) (manifest, error) {
	m, ok := from.(map[string]any)
	if !ok {
		return manifest{}, fmt.Errorf("the load's object is not a manifest")
	}
	// Copy the object through JSON, so that the scenario stays unchanged.
	text, err := json.Marshal(m)
	if err != nil {
		return manifest{}, fmt.Errorf("the load's object cannot be written as JSON: %w", err)
	}
	rest := object{}
	if err := json.Unmarshal(text, &rest); err != nil {
		return manifest{}, fmt.Errorf("the load's object: %w", err)
	}
	apiVersion, _ := rest["apiVersion"].(string)
	kind, _ := rest["kind"].(string)
	if apiVersion == "" || kind == "" {
		return manifest{}, fmt.Errorf("the load's object needs apiVersion and kind")
	}
	if strings.Contains(string(text), mark) {
		return manifest{}, fmt.Errorf("the load's object contains the character U+E000")
	}
	return manifest{apiVersion, kind, rest, inAnnotation}, nil
}

// compile returns the body for requests: the manifest with name, namespace, labels and payload. If version is true, it
// also contains a resourceVersion, for updates.
func (m manifest) compile(labels map[string]string, loadName string, namespaced, version bool) (body, error) {
	all := object{}
	maps.Copy(all, m.rest)
	all["apiVersion"], all["kind"] = m.apiVersion, m.kind
	if m.payload == noPlace {
		return compile(all)
	}
	meta := child(all, "metadata")
	delete(meta, "generateName")
	delete(meta, "resourceVersion")
	meta["name"] = string(slotName)
	delete(meta, "namespace")
	if namespaced {
		meta["namespace"] = string(slotNamespace)
	}
	marked := child(meta, "labels")
	for k, v := range labels {
		marked[k] = v
	}
	marked[load.LoadLabel] = loadName
	if version {
		meta["resourceVersion"] = string(slotVersion)
	}
	switch m.payload {
	case inAnnotation:
		child(meta, "annotations")[PayloadAnnotation] = string(slotPayload)
	case inData, inSecret:
		child(all, "data")["payload"] = string(slotPayload)
	case inSpec:
		child(all, "spec")["payload"] = string(slotPayload)
	}
	return compile(all)
}

// child replaces the object at a key by a copy, or by an empty object if the key has no object. It returns the new
// object.
func child(of object, key string) object {
	c, _ := of[key].(object)
	if c = maps.Clone(c); c == nil {
		c = object{}
	}
	of[key] = c
	return c
}

// letters returns the number of letters to write for a payload of `size` bytes.
func (p place) letters(size int) int {
	if p == inSecret { // base64 without padding: a multiple of 4
		return (size + 2) / 3 * 4
	}
	return size
}

// most returns the maximum number of letters of a payload that the API server accepts.
func (p place) most() int {
	switch p {
	case inAnnotation:
		return scenario.AnnotationLimit
	case inSecret:
		return scenario.DataLimit / 3 * 4
	}
	return scenario.DataLimit
}

// appendPatch appends a JSON merge patch that sets the payload. Unless key is empty, the patch also sets the annotation
// named key to value. Neither key nor value may contain characters that need escaping in JSON.
func (p place) appendPatch(b []byte, text payload, size int, turn int64, key string, value []byte) []byte {
	b = append(b, '{')
	if p == inAnnotation || key != "" {
		b = append(b, `"metadata":{"annotations":{"`...)
		if key != "" {
			b = append(append(append(append(b, key...), `":"`...), value...), '"')
			if p == inAnnotation {
				b = append(b, `,"`...)
			}
		}
		if p == inAnnotation {
			b = text.append(append(b, PayloadAnnotation+`":"`...), size, turn)
			return append(b, `"}}}`...)
		}
		b = append(b, `}},`...)
	}
	if p == inSpec {
		b = append(b, `"spec":{"payload":"`...)
	} else {
		b = append(b, `"data":{"payload":"`...)
	}
	return append(text.append(b, size, turn), `"}}`...)
}
