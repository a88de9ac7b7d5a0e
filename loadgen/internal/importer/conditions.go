package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// celName matches resource names that can be written in a CEL expression without quoting, such as deployments.apps.
var celName = regexp.MustCompile(`^[a-z][a-z0-9]*(\.[a-z][a-z0-9]*)*$`)

// readyTest returns a CEL expression that is true if object o is ready, as kube-burner and ClusterLoader2 define it for
// the kind. It returns "" if they do not wait for objects of this kind.
func readyTest(kind string) string {
	switch kind {
	case "Deployment", "ReplicaSet", "ReplicationController", "StatefulSet":
		return "o.spec.replicas == 0 || has(o.status.readyReplicas) && o.status.readyReplicas == o.spec.replicas"
	case "DaemonSet":
		return "has(o.status.observedGeneration) && o.status.numberReady == o.status.desiredNumberScheduled"
	case "Pod":
		return `o.status.phase == "Running" && ` + conditionTest("Ready", "True")
	case "Job":
		return conditionTest("Complete", "True")
	case "PersistentVolumeClaim", "PersistentVolume":
		return `o.status.phase == "Bound"`
	case "VirtualMachine", "VirtualMachineInstance", "DataVolume", "DataSource":
		return conditionTest("Ready", "True")
	case "VolumeSnapshot":
		return "o.status.readyToUse"
	case "VirtualMachineInstanceReplicaSet":
		return "has(o.status.readyReplicas) && o.status.readyReplicas == o.spec.replicas"
	}
	return ""
}

// updatedTest returns a CEL expression that is true if all pods of object o have its current template. It returns "" for kinds
// that do not count these pods.
func updatedTest(kind string) string {
	switch kind {
	case "Deployment", "StatefulSet":
		return "(o.spec.replicas == 0 || has(o.status.updatedReplicas) && o.status.updatedReplicas == o.spec.replicas)"
	case "DaemonSet":
		return "(o.status.desiredNumberScheduled == 0 || has(o.status.updatedNumberScheduled) && o.status.updatedNumberScheduled == o.status.desiredNumberScheduled)"
	}
	return ""
}

func conditionTest(kind, status string) string {
	return fmt.Sprintf(`o.status.conditions.exists(c, c.type == %q && c.status == %q)`, kind, status)
}

// These jq expressions are used in kube-burner's examples to read a status.
var (
	jqCondition = regexp.MustCompile(`^\(?\s*\.conditions\.?\[\]\s*\|\s*select\(\s*\.type\s*==\s*"([A-Za-z]+)"\s*\)\s*\)?\s*\|?\s*\.status$`)
	jqPath      = regexp.MustCompile(`^((?:\.[A-Za-z_][A-Za-z0-9_]*)+)(\s*\|\s*tostring)?(\s*\|\s*ascii_downcase)?$`)
)

// jqTest returns the CEL expression that is true if the jq expression path, applied to an object's status, yields want.
// It returns "" if it does not support the jq expression.
func jqTest(path, want string) string {
	path = strings.TrimSpace(path)
	if m := jqCondition.FindStringSubmatch(path); m != nil {
		return conditionTest(m[1], want)
	}
	if m := jqPath.FindStringSubmatch(path); m != nil {
		value := "string(o.status" + m[1] + ")"
		if m[3] != "" {
			value += ".lowerAscii()"
		}
		return fmt.Sprintf("%s == %q", value, want)
	}
	return ""
}

// allOf returns the condition that test is true for each matching object of a resource. An object matches if it has the
// given labels. It must also have the labels named in present, with any value.
func allOf(resource string, labels map[string]string, test string, present ...string) string {
	var others []string
	for _, key := range present {
		others = append(others, fmt.Sprintf(`!(%q in o.metadata.labels)`, key))
	}
	for _, key := range sortedKeys(labels) {
		others = append(others, fmt.Sprintf(`!(%q in o.metadata.labels) || o.metadata.labels[%q] != %q`, key, key, labels[key]))
	}
	if len(others) > 0 {
		if strings.Contains(test, "||") || strings.Contains(test, "&&") {
			test = "(" + test + ")"
		}
		test = "!has(o.metadata.labels) || " + strings.Join(append(others, test), " || ")
	}
	return fmt.Sprintf("%s.all(o, %s)", resource, test)
}

// countOf returns the CEL expression for the number of objects of a resource that have the labels, and for which all tests are
// true.
func countOf(resource string, labels map[string]string, tests ...string) string {
	if tests = append(tests, labelTests(labels)...); len(tests) > 0 {
		resource += " where " + strings.Join(tests, " && ")
	}
	return fmt.Sprintf("count(%s)", resource)
}

// labelTests returns a CEL expression for each label.
func labelTests(labels map[string]string) (tests []string) {
	for _, key := range sortedKeys(labels) {
		tests = append(tests, fmt.Sprintf(`metadata.labels[%q] == %q`, key, labels[key]))
	}
	return tests
}

// noneOf returns the condition that no object of a resource has the given labels.
func noneOf(resource string, labels map[string]string) string {
	return countOf(resource, labels) + " == 0"
}

// selector formats labels as an equality-based label selector.
func selector(labels map[string]string) string {
	var parts []string
	for _, key := range sortedKeys(labels) {
		parts = append(parts, key+"="+labels[key])
	}
	return strings.Join(parts, ",")
}

// selects reports whether labels contains every key and value of asked.
func selects(asked, labels map[string]string) bool {
	return !slices.ContainsFunc(sortedKeys(asked), func(key string) bool { return labels[key] != asked[key] })
}

func resourceOf(apiVersion, kind string) string { return scenario.ResourceOf(apiVersion, kind) }

func groupOf(apiVersion string) string {
	gv, _ := schema.ParseGroupVersion(apiVersion)
	return gv.Group
}
