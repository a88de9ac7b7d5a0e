package importer

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

var (
	blockKey    = regexp.MustCompile(`^( *(?:- )*)([A-Za-z][\w.]*: ?)`)
	flowMap     = regexp.MustCompile(`(^|[^{$])\{([A-Za-z][\w.]*:)`)
	scalarValue = regexp.MustCompile(`(^|[\s{,-])([A-Za-z][\w.]*): +("[^"]*"|'[^']*'|[^\s{}\[\],&*|>#'"][^{}\[\],#]*?)(\s*$|\s*[},])`)
)

// withUnknownKeys adds the unknown key zzN to each mapping of a configuration, where N counts from n. where maps each key to its
// place.
func withUnknownKeys(name string, data []byte, n int, where map[string]string) []byte {
	var out []string
	next := func(i int, line string) string {
		n++
		key := fmt.Sprintf("zz%dzz", n)
		where[key] = fmt.Sprintf("%s:%d: %s", name, i+1, strings.TrimSpace(line))
		return key
	}
	for i, line := range strings.Split(string(data), "\n") {
		rest := line
		if m := blockKey.FindStringSubmatch(line); m != nil {
			out = append(out, m[1]+next(i, line)+": 1")
			rest = strings.Repeat(" ", len(m[1])) + line[len(m[1]):]
		}
		rest = flowMap.ReplaceAllStringFunc(rest, func(m string) string {
			at := strings.IndexByte(m, '{') + 1
			return m[:at] + next(i, line) + ": 1, " + m[at:]
		})
		out = append(out, rest)
	}
	return []byte(strings.Join(out, "\n"))
}

// leftOut matches the parts of the configurations in testdata that a remark leaves out as a whole, or that take any key.
var leftOut = regexp.MustCompile(strings.Join([]string{
	`Params: \{action: gather\}$`,                                                   // of a measurement that is not supported
	`globalQPSLoad: |name: shared`,                                                  // no phase uses the tuning set
	`Size: |Min: |size: |count: |namespaces: |actionName: `,                         // values of templates
	`: (- )?(phase|conditions|containerStatuses|state|terminated|exitCode|reason):`, // text of a status
	`labelSelector: \{(component: kube-apiserver|app: etcd)`,                        // labels
	`namespaceAnnotations: `, `net.yml:`, `indexer: `,
	`kustomization.yaml:`, `weightFrom: `, `slow: "true"`, `phase: Succeeded`,
}, "|"))

// TestUnknownKeysAreNoticed adds an unknown key to each mapping of each configuration in testdata. A remark or the scenario
// contains each of them.
func TestUnknownKeysAreNoticed(t *testing.T) {
	forEachArchive(t, func(t *testing.T, _ string, a *txtar.Archive, line string) {
		where := map[string]string{}
		for _, f := range a.Files {
			if !strings.HasPrefix(f.Name, "want.") {
				write(t, f.Name, withUnknownKeys(f.Name, f.Data, len(where), where))
			}
		}
		r, err := runImport(t, line)
		if err != nil {
			t.Fatal(err)
		}
		said := fmt.Sprint(r.Remarks) + string(r.Scenario)
		for key, place := range where {
			if !strings.Contains(said, key) && !leftOut.MatchString(place) {
				t.Errorf("nothing says that an unknown key was lost in %s", place)
			}
		}
	})
}

// noEffect matches fields that change nothing in a run, and parts that a remark leaves out as a whole.
var noEffect = regexp.MustCompile(strings.Join([]string{
	`metricVersion|Identifier|\bname:`,   // names of results, and of steps and stages that become no phase
	`burst|namespace:|preLoadImages|gc:`, // every import says so at the top of the scenario
	`qps: 8|size: 5|number: 1$`,          // a tuning set without phases, a value that no template reads, namespaces without objects
	`parallelismLimit: 1$`,               // all requests are in flight at once
	`objectVersion|jobIterations: 1$`,    // conditions name no version; incrementalLoad sets the iterations
	// Parts that a remark leaves out as a whole.
	`action: gather|metricName: empty|unit: s$|max_over_time\(up`, // of measurements that are not supported, or cover no phase
	`pprofInterval: 1m|svcTimeout|qps: 5$|qps: 1$|note: x|colour|kubeVirtOp|url: "https://localhost:10250|description: (pods fail|no PromQL)|networking.k8s.io|NetworkPolicy`,
	`expressionFrom|slow:|: 30000|tier|phase: Failed$|subresource|phase: Bound`,
}, "|"))

// TestChangedValuesAreNoticed changes each scalar of each configuration in testdata. The scenario or the remarks differ then, or the
// import fails.
func TestChangedValuesAreNoticed(t *testing.T) {
	forEachArchive(t, func(t *testing.T, _ string, a *txtar.Archive, line string) {
		before, err := runImport(t, line)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			if strings.HasPrefix(f.Name, "want.") {
				continue
			}
			lines := strings.Split(string(f.Data), "\n")
			for i, was := range lines {
				for _, at := range scalarValue.FindAllStringSubmatchIndex(was, -1) {
					lines[i] = was[:at[6]] + other(was[at[6]:at[7]]) + was[at[7]:]
					write(t, f.Name, []byte(strings.Join(lines, "\n")))
					after, err := runImport(t, line)
					if err == nil && bytes.Equal(before.Scenario, after.Scenario) && fmt.Sprint(before.Remarks) == fmt.Sprint(after.Remarks) && !noEffect.MatchString(was[at[4]:at[7]]) {
						t.Errorf("%s:%d: nothing differs after a change of %s", f.Name, i+1, was[at[4]:at[7]])
					}
				}
				lines[i] = was
			}
			write(t, f.Name, f.Data)
		}
	})
}

// other returns a value of the same type that is not value.
func other(value string) string {
	switch bare := strings.Trim(value, `"'`); {
	case bare == "true":
		return "false"
	case bare == "false":
		return "true"
	case bare != "" && bare[0] >= '0' && bare[0] <= '9':
		return "7" + bare
	}
	return "zz"
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestMergedFields checks that a merge key gives a mapping the fields of other mappings. Fields of the mapping itself take
// precedence, then fields of the first of the other mappings.
func TestMergedFields(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "map.yml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'm{{.Iteration}}-{{.Replica}}'}\n"))
	write(t, "config.yml", []byte(`jobs:
- &first {name: one, jobIterations: 3, qps: 7, objects: [{objectTemplate: map.yml, replicas: 2}]}
- <<: [{jobIterations: 4}, *first]
  name: two
`))
	r, err := KubeBurner("config.yml", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Remarks) > 0 {
		t.Error(r.Remarks)
	}
	s, err := scenario.Parse("imported.yaml", r.Scenario, nil)
	if err != nil {
		t.Fatal(err)
	}
	var loads []string
	for _, l := range s.Loads() {
		loads = append(loads, fmt.Sprintf("%s %v", l.Name, l.Rate))
	}
	if got, want := fmt.Sprint(loads), "[one 7/s two 7/s]"; got != want {
		t.Errorf("got %s, want %s\n%s", got, want, r.Scenario)
	}
}

// TestAliases checks that an alias in a list, in labels and in the values of templates stands for the value of its anchor.
func TestAliases(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "map.yml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'm{{.Iteration}}-{{.Replica}}'}\ndata: {of: '{{.of}}'}\n"))
	write(t, "up.yml", []byte("- {expr: up < 1, severity: error}\n"))
	write(t, "config.yml", []byte(`metricsEndpoints: [{indexer: {type: &file up.yml}, alerts: [*file]}]
jobs:
- name: &job one
  qps: 7
  hooks: [{when: beforeJobExecution, cmd: [echo, *job]}]
  namespace: n
  namespaceLabels: {team: *job}
  objects: [{objectTemplate: map.yml, inputVars: {of: *job}}]
- name: two
  jobType: delete
  objects: [{kind: ConfigMap, labelSelector: {kube-burner.io/job: *job}}]
`))
	r, err := KubeBurner("config.yml", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"run: [echo, one]", "team: one", "of: one", "labelSelector: kube-burner.io/job=one", "name: alert-up"} {
		if !strings.Contains(string(r.Scenario), want) {
			t.Errorf("the scenario does not contain %s:\n%s", want, r.Scenario)
		}
	}
}

func TestMergedScalar(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "config.yml", []byte("jobs:\n- name: one\n  <<: 5\n"))
	_, err := KubeBurner("config.yml", Options{})
	if want := "config.yml:3: <<: must be a mapping or a list of mappings"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestTypedValues checks that --set types values as helm does. A template prints each of them unchanged.
func TestTypedValues(t *testing.T) {
	values, err := ParseValues([]string{"n=0", "m=-7", "on=true", "zip=007", "half=0.50", "big=99999999999999999999", "s=t"}, false)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"n": 0, "m": -7, "on": true, "zip": "007", "half": "0.50", "big": "99999999999999999999", "s": "t"}
	if !maps.Equal(values, want) {
		t.Errorf("got %#v, want %#v", values, want)
	}
}

// TestMissingValue checks that an object with a missing value is refused.
func TestMissingValue(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "d.yaml", []byte("kind: ConfigMap\napiVersion: v1\nmetadata: {name: {{.Name}}}\ndata: {size: {{.Size}}}\n"))
	write(t, "config.yaml", []byte(`name: x
tuningSets: [{name: q, qpsLoad: {qps: 1}}]
steps:
- phases: [{replicasPerNamespace: 1, tuningSet: q, objectBundle: [{basename: d, objectTemplatePath: d.yaml, templateFillMap: {Size: {{.NOT_SET}}}}]}]
`))
	_, err := ClusterLoader2("config.yaml", Options{})
	want := "config.yaml:4: steps[0].phases[0].objectBundle[0].objectTemplatePath: d.yaml: a value is missing: data: {size: <no value>} (add it to templateFillMap, --set NAME=VALUE or --testoverrides FILE)"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestInvalidModule checks that a module of a test is refused if it is not a mapping.
func TestInvalidModule(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "module.yaml", []byte("- name: x\n"))
	write(t, "config.yaml", []byte("name: x\nsteps: [{module: {path: module.yaml}}, {measurements: [{method: Sleep, params: {duration: 1s}}]}]\n"))
	_, err := ClusterLoader2("config.yaml", Options{})
	if want := "module.yaml:1: must be a mapping (write NAME: VALUE lines)"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
