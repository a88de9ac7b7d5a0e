package condition

import (
	"strings"
	"testing"
)

func deployment(generation, observed int64, conditions ...any) Object {
	return Object{
		"metadata": map[string]any{"name": "web", "generation": generation},
		"status":   map[string]any{"observedGeneration": observed, "replicas": int64(3), "phase": "Running", "conditions": conditions},
	}
}

func TestTests(t *testing.T) {
	available := map[string]any{"type": "Available", "status": "True"}
	failing := map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
	o := deployment(2, 2, available, failing)
	for text, want := range map[string]bool{
		"condition=Available":              true,
		"condition=available":              true,
		"condition=Available=False":        false,
		"condition=Progressing":            false,
		"condition=Progressing=false":      true,
		"condition=Absent":                 false,
		"jsonpath={.status.phase}=Running": true,
		"jsonpath=.status.phase=Running":   true,
		"jsonpath={.status.phase}=Pending": false,
		"jsonpath={.status.replicas}=3":    true,
		"jsonpath={.status.phase}":         true,
		"jsonpath={.status.absent}":        false,
		"jsonpath={.status.absent}=x":      false,
		`jsonpath={.status.conditions[?(@.type=="Available")].status}=True`:                                true,
		`jsonpath={.status.conditions[?(@.type=="Progressing")].reason}=Other`:                             false,
		"cel=object.status.replicas == 3 && object.metadata.generation == 2":                               true,
		`cel=object.status.conditions.exists(c, c.type == "Progressing" && c.reason.contains("Deadline"))`: true,
	} {
		x, err := ParseTest("deployments.apps", text, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := x.Holds(o); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// As with kubectl wait, a condition that a controller observed for an older generation does not count.
func TestConditionOfAnOlderGeneration(t *testing.T) {
	x, err := StatusCondition("Available")
	if err != nil {
		t.Fatal(err)
	}
	if holds, _ := x.Holds(deployment(3, 2, map[string]any{"type": "Available", "status": "True"})); holds {
		t.Error("the condition is true, although it was observed for generation 2 of an object of generation 3")
	}
	own := map[string]any{"type": "Available", "status": "True", "observedGeneration": int64(3)}
	if holds, _ := x.Holds(deployment(3, 2, own)); !holds {
		t.Error("the condition is false, although its own observedGeneration is 3")
	}
}

func TestTestsWithoutAnAnswer(t *testing.T) {
	for text, want := range map[string]string{
		"jsonpath={.status.conditions[*].type}=Available": "several values",
		"jsonpath={.status}=Running":                      "not one value",
		"cel=object.status.absent > 3":                    "no such key: absent",
		"cel=object.status.phase > 3":                     "no such overload",
		"cel=object.status.phase":                         "neither true nor false",
	} {
		x, err := ParseTest("deployments.apps", text, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		o := deployment(1, 1, map[string]any{"type": "A"}, map[string]any{"type": "B"})
		if holds, err := x.Holds(o); holds || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %s", text, holds, err, want)
		}
	}
}

func TestTestsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"Ready":                           `"Ready" is not a valid condition of an object (write condition=Ready`,
		"condition=":                      "is not a condition of an object",
		"condition=Ready Now":             "is not a condition of an object",
		"jsonpath={.status.phase":         "is not a valid JSONPath",
		"jsonpath={.status.phase}=":       "does not name a value",
		"jsonpath={.status[}=x":           "is not a valid JSONPath",
		`jsonpath=.c[?(@.t=="A")].s=True`: "write braces around the path",
		"cel=status.phase == 'x'":         "undeclared reference to 'status' (the variable is named object, as in object.status.phase)",
		"cel=object.status.":              "is not valid CEL",
		"cel=1":                           "must be true or false",
		"cel=object.a" + strings.Repeat(" ", maxText): "the expression has 16396 bytes (at most 16384)",
	} {
		if _, err := ParseTest("pods", text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestStates(t *testing.T) {
	for text, want := range map[string]string{
		"scheduled": "", "ready": "", "created": "", "deleting": "", "deleted": "", "condition=Ready": "",
		"bound": `"bound" is not a state of pods (states of pods: containersReady, initialized, ready, scheduled, created, deleting, deleted; or condition=Ready`,
	} {
		_, err := ParseState("pods", text, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if s, err := ParseState("services", "endpoints", nil); err != nil || s.Kind != Endpoints {
		t.Errorf("ParseState of endpoints = %+v, %v", s, err)
	}
	if s, err := ParseState("pods", "deleting", nil); err != nil {
		t.Error(err)
	} else if holds, _ := s.Test.Holds(Object{"metadata": map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}}); !holds {
		t.Error("state deleting is false for an object with a deletionTimestamp")
	}
}
