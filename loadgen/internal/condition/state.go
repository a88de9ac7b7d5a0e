package condition

import (
	"maps"
	"slices"
	"strings"
)

// State is a state of an object, such as created or ready. Only the first time that an object reaches it counts.
type State struct {
	Text string
	Kind StateKind
	// Test is the test for a state of kind Tested.
	Test Test
}

// StateKind determines how to detect that an object is in a state.
type StateKind uint8

const (
	// Tested means that a test is true for the object.
	Tested StateKind = iota
	// Created means that the object exists.
	Created
	// Deleted means that the object was deleted.
	Deleted
	// Endpoints means that an EndpointSlice of the Service has a ready endpoint.
	Endpoints
)

// EndpointSlices is the resource that determines whether a Service is in the state Endpoints. ServiceLabel is the label
// of an EndpointSlice that contains the Service's name.
const (
	EndpointSlices = "endpointslices.discovery.k8s.io"
	ServiceLabel   = "kubernetes.io/service-name"
)

// namedStates returns the named states of a resource, with the test for each.
func namedStates(resource string) map[string]string {
	return map[string]map[string]string{
		"pods": {
			"scheduled": "condition=PodScheduled", "initialized": "condition=Initialized",
			"containersReady": "condition=ContainersReady", "ready": "condition=Ready",
		},
		"nodes":                  {"ready": "condition=Ready"},
		"deployments.apps":       {"available": "condition=Available"},
		"jobs.batch":             {"complete": "condition=Complete"},
		"persistentvolumeclaims": {"bound": "jsonpath={.status.phase}=Bound"},
		"customresourcedefinitions.apiextensions.k8s.io": {"established": "condition=Established"},
	}[resource]
}

// ParseState parses a state of the objects of a resource. text is a name, such as "created" or "ready", or a test as in
// Forms. If schema is nil, the fields in a test are not checked.
func ParseState(resource, text string, schema Schema) (State, error) {
	s := State{Text: text}
	switch {
	case text == "created":
		s.Kind = Created
		return s, nil
	case text == "deleted":
		s.Kind = Deleted
		return s, nil
	case text == "endpoints" && resource == "services":
		s.Kind = Endpoints
		return s, nil
	case text == "deleting":
		text = "jsonpath={.metadata.deletionTimestamp}"
	}
	named := namedStates(resource)
	if test, ok := named[text]; ok {
		text = test
	} else if !strings.Contains(text, "=") {
		words := append(slices.Sorted(maps.Keys(named)), "created", "deleting", "deleted")
		if resource == "services" {
			words = append(words, "endpoints")
		}
		return s, fail("states of "+resource+": "+strings.Join(words, ", ")+"; or "+Forms, "%q is not a state of %s", text, resource)
	}
	var err error
	s.Test, err = ParseTest(resource, text, schema)
	return s, err
}

// HasReadyEndpoint reports whether an EndpointSlice has a ready endpoint, and returns the Service to which it belongs.
func HasReadyEndpoint(slice Object) (namespace, service string, ready bool) {
	meta, _ := slice["metadata"].(map[string]any)
	namespace, _ = meta["namespace"].(string)
	all, _ := meta["labels"].(map[string]any)
	service, _ = all[ServiceLabel].(string)
	endpoints, _ := slice["endpoints"].([]any)
	for _, item := range endpoints {
		e, _ := item.(map[string]any)
		conditions, _ := e["conditions"].(map[string]any)
		if is, known := conditions["ready"].(bool); is || !known { // an unknown condition counts as ready
			return namespace, service, true
		}
	}
	return namespace, service, false
}
