package scenario

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the expected errors in testdata")

func TestCatalogueIsValidAndResolves(t *testing.T) {
	for _, name := range Names() {
		s, err := Read(name, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		// The name has no slash because it becomes part of object names.
		if s.Name != name && !(strings.HasPrefix(name, featurePrefix) && strings.HasPrefix(s.Name, "features-")) {
			t.Errorf("%s has the name %q", name, s.Name)
		}
		text, err := s.Resolved()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("resolved", text, nil)
		if err != nil {
			t.Fatalf("%s does not read its own resolved form: %v\n%s", name, err, text)
		}
		second, err := again.Resolved()
		if err != nil {
			t.Fatal(err)
		}
		if string(second) != string(text) {
			t.Errorf("%s: resolving it twice returns\n%s\nwant\n%s", name, second, text)
		}
	}
}

// A recorded run can be judged again even if newer checks would refuse its scenario.
func TestRecordedScenarioSkipsNewChecks(t *testing.T) {
	for name, body := range map[string]string{
		"sizes":               "nodes: {count: 3, memory: 32, cpu: 8Gi}\nphases: [{name: a, for: 30s}]",
		"a deploy":            "phases: [{name: a, for: 30s, actions: [{kind: deploy, name: web, replicas: 1, memory: 128m, evictAfter: 500ms, maxSurge: 1}]}]",
		"a partition of none": "controlPlane: {etcd: {members: 3}}\nphases: [{name: a, for: 30s, faults: [{kind: partition, component: etcd-0, peers: [etcd-0]}]}]",
		"an object":           "phases: [{name: a, for: 30s, load: [{kind: requests, verb: create, resource: configmaps, rate: 1/s, object: {apiVersion: v1, kind: ConfigMap, data: {a: 1}}}]}]",
	} {
		text := []byte("apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: old\n" + body + "\n")
		if _, err := Parse("old.yaml", text, nil); err == nil {
			t.Errorf("%s: Parse returns no error", name)
		}
		if _, err := ParseRecorded("old.yaml", text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOverrides(t *testing.T) {
	s, err := Read("rollout-500", []string{
		"nodes.count=50", "gates.mutating-latency.max=1ms", "phases.steady.for=5s",
		"phases[1].actions[0].replicas=100", "controlPlane.apiServer.flags.disabled-metrics=a_b",
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.Nodes.Count != 50 || s.Phase("steady").For.String() != "5s" || s.Phases[1].Actions[0].Replicas != 100 {
		t.Errorf("overrides did not arrive: %+v", s)
	}
	if got := s.ControlPlane.APIServer.Flags["disabled-metrics"]; got != "a_b" {
		t.Errorf("a flag that was not in the file: %q", got)
	}
	for _, g := range s.Gates {
		if g.Name == "mutating-latency" && g.Max.Value != 0.001 {
			t.Errorf("gate bound is %v, want 0.001", g.Max.Value)
		}
	}
}

func TestUnknownScenarioSuggestsTheNearest(t *testing.T) {
	_, err := Read("rolout-500", nil)
	if err == nil || !strings.Contains(err.Error(), `did you mean "rollout-500"?`) {
		t.Errorf("got %v", err)
	}
	_, err = Read(filepath.Join(t.TempDir(), "none.yaml"), nil)
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "none.yaml: cannot read") {
		t.Errorf("got %v", err)
	}
}

// FuzzParse checks that no input panics, and that every error is one line
// that names the file.
func FuzzParse(f *testing.F) {
	for _, name := range Names() {
		text, err := Source(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "nodes.count=3")
	}
	f.Add([]byte("a: &a [*a]"), "a[0]=1")
	f.Add([]byte("? [x]\n: y\n--- z"), "x.y.z={}")
	f.Add([]byte("phases: [{name: a, for: 1s}]\n<<: {gates: 1}"), "phases.a.for=-1s")
	f.Fuzz(func(t *testing.T, data []byte, set string) {
		s, err := Parse("f.yaml", data, []string{set})
		if err == nil {
			if _, err := s.Resolved(); err != nil {
				t.Errorf("valid but cannot be written: %v", err)
			}
			return
		}
		for _, line := range strings.Split(err.Error(), "\n") {
			if !strings.HasPrefix(line, "f.yaml:") && !strings.HasPrefix(line, "--set ") {
				t.Errorf("error line %q has no position", line)
			}
		}
	})
}
