package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// forecastOf returns the rows of a preview. A key is "load verb resource" for requests (of the first phase that has
// such requests), and "kind for" for objects.
func forecastOf(t *testing.T, yaml string) map[string]string {
	t.Helper()
	p, rows := PreviewOf(parsed(t, yaml), PreviewOptions{}), map[string]string{}
	for _, r := range p.Requests {
		row := strings.Join([]string{r.Load, r.Verb, r.Resource}, " ")
		rows[row] = cmp.Or(rows[row], amount(r.Certainty, r.Total))
	}
	for _, x := range p.Creates {
		rows[x.Kind+" "+x.For] = amount(x.Certainty, int64(x.Count))
	}
	return rows
}

func TestForecastOfEachKindOfLoad(t *testing.T) {
	const app = `templates: [{replicas: 30, text: "{apiVersion: v1, kind: Secret, metadata: {name: 's-{{.Replica}}'}}"}]`
	for load, want := range map[string]map[string]string{
		"{kind: requests, name: l, verb: create, resource: secrets, rate: 50/s}":                  {"l create secrets": "about 500", "Secret load l, by its requests": "about 500"},
		"{kind: requests, name: l, verb: get, rate: 2/s, objects: 7}":                             {"l get configmaps": "about 20", "ConfigMap load l, before it starts": "7"},
		"{kind: requests, name: l, verb: delete, rate: 2/s, objects: 7}":                          {"l delete configmaps": "about 20", "ConfigMap load l, before it starts": "7", "ConfigMap load l, recreated after its requests deleted them": "at most 20"},
		"{kind: requests, name: l, verb: deletecollection, rate: 1/s, objects: 8, namespaces: 2}": {"l deletecollection configmaps": "about 10", "ConfigMap load l, recreated after its requests deleted them": "at most 40"},
		"{kind: requests, name: l, verb: create, resource: pods, subresource: eviction, rate: 1/s, objects: 5, body: {apiVersion: policy/v1, kind: Eviction}}": {
			"l create pods/eviction": "about 10", "Pod load l, before it starts": "5", "Pod load l, recreated after its requests deleted them": "at most 10",
		},
		"{kind: requests, name: l, verb: get, rate: 4/s, shape: {kind: burst, burst: 5, every: 3s}}":      {"l get configmaps": "about 55"},
		"{kind: requests, name: l, verb: get, rate: 0/s, shape: {kind: ramp, to: 10/s, over: 10s}}":       {"l get configmaps": "about 50"},
		"{kind: watches, name: l, count: 30, rate: 10/s}":                                                 {"l watch configmaps": "30", "ConfigMap load l, before it starts": "1"},
		"{kind: watches, name: l, count: 300, rate: 10/s}":                                                {"l watch configmaps": "about 100"},
		"{kind: watches, name: l, count: 5, rate: 10/s}, {kind: changes, name: c, watches: l, rate: 1/s}": {"c patch configmaps": "about 10"},
		"{kind: history, name: l, rate: 16/s}":                                                            {"l update configmaps": "about 80", "l get configmaps": "about 140", "ConfigMap load l, before it starts": "5"},
		"{kind: streams, name: l, rate: 3/s}":                                                             {"l connect pods/log": "about 30"},
		"{kind: objects, name: l, rate: 10/s, " + app + "}":                                               {"l create secrets": "30", "Secret load l, by its requests": "30"},
		"{kind: objects, name: l, rate: 1/s, " + app + "}":                                                {"l create secrets": "about 10", "Secret load l, by its requests": "about 10"},
	} {
		rows := forecastOf(t, "phases: [{name: a, for: 10s, load: ["+load+"]}]\n")
		for row, n := range want {
			if rows[row] != n {
				t.Errorf("%s: row %q = %q, want %q; all rows:\n%s", load, row, rows[row], n, lines(rows))
			}
		}
	}
}

func lines(rows map[string]string) (text string) {
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		text += fmt.Sprintf("  %s: %s\n", row, rows[row])
	}
	return text
}

// TestForecastOfPhases checks that a load with hold opens its watches in later phases too. In phases that end by a
// condition, the numbers of requests, and of a CronJob's Jobs, are upper bounds.
func TestForecastOfPhases(t *testing.T) {
	rows := forecastOf(t, `
phases:
- {name: a, for: 10s, load: [{kind: watches, name: held, count: 150, rate: 10/s, hold: true}]}
- {name: b, until: count(configmaps) >= 1000, within: 10s, load: [{kind: requests, name: l, verb: get, rate: 2/s}]}
- {name: c, until: watchesOpen, within: 10s, load: [{kind: watches, name: w, count: 20, rate: 10/s}]}
- {name: d, until: count(configmaps) >= 2000, within: 3m, actions: [{kind: deploy, workload: CronJob, name: j, replicas: 2, runFor: 5s}]}
`)
	for row, n := range map[string]string{"held watch configmaps": "at most 150", "l get configmaps": "at most 20", "w watch configmaps": "20", "Job workloads, by controllers": "at most 3"} {
		if rows[row] != n {
			t.Errorf("row %q = %q, want %q; all rows:\n%s", row, rows[row], n, lines(rows))
		}
	}
}

const actions = `
setup: [{kind: create, count: 3, object: {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: "p-{i}"}, value: 1}}]
objects:
- {namespaces: 4, iterations: 8, templates: [&secrets {replicas: 10, object: {apiVersion: v1, kind: Secret, metadata: {name: "s-{{.Iteration}}-{{.Replica}}", labels: {app: shop}}}}]}
phases:
- name: a
  for: 1m
  actions:
  - {kind: delete, target: {resource: secrets, labelSelector: app=shop, share: 10%}, every: 10s}
  - {kind: create, onlyMissing: true, namespaces: 4, iterations: 8, templates: [*secrets], after: 5s, every: 10s}
  - {kind: patch, target: {resource: secrets}, patch: {metadata: {annotations: {a: b}}}, after: 58s, rate: 10/s}
  - {kind: evict, target: {resource: pods}, after: 1s}
- name: b
  for: 10s
  actions:
  - {kind: apply, namespaces: 4, iterations: 8, templates: [*secrets]}
  - {kind: delete, target: {resource: secrets}, collection: true}
  - {kind: deploy, name: web, count: 2, replicas: 4, service: true}
  - {kind: deploy, workload: StatefulSet, name: db, replicas: 3}
- {name: c, for: 10s, actions: [{kind: rollingUpdate, name: web, count: 2}, {kind: scale, name: db, replicas: 5}]}
- {name: d, for: 10s, actions: [{kind: delete, name: web, count: 2}, {kind: restart, target: {resource: statefulsets.apps}}, {kind: delete, target: {resource: pods}, after: 1s}]}
- name: e
  for: 10s
  actions:
  - {kind: patch, target: {resource: priorityclasses.scheduling.k8s.io, names: [p-1]}, patch: {metadata: {annotations: {a: b}}}}
  - {kind: patch, target: {resource: nodes}, patch: {metadata: {annotations: {a: b}}}}
teardown: [{kind: delete, target: {resource: statefulsets.apps}}]
`

func TestForecastOfActions(t *testing.T) {
	rows := forecastOf(t, actions)
	for row, n := range map[string]string{
		"action create p-{i} create priorityclasses.scheduling.k8s.io": "3", "PriorityClass setup creates p-{i}": "3", "Secret of objects[0]": "80",
		"action delete secrets delete secrets": "48", "action delete secrets list secrets": "24", "Secret of phases[0].actions[1]": "48", // of 6 rounds
		"action patch secrets patch secrets": "at most 21", "action evict pods create pods/eviction": "0", "action apply apply secrets": "80",
		"action delete secrets deletecollection secrets": "4", "action deploy web apply deployments.apps": "2", "action deploy web apply services": "2", "Service workloads": "3",
		"action rollingUpdate web patch deployments.apps": "2", "action scale db patch statefulsets.apps": "1", "action delete web delete services": "2",
		"ReplicaSet workloads, by controllers": "4", "Pod workloads, by controllers; at most 15 at a time": "at least 21", "action restart statefulsets.apps patch statefulsets.apps": "1", "action delete pods delete pods": "not known",
		"action delete statefulsets.apps delete statefulsets.apps": "1", "action patch nodes patch nodes": "not known",
		"action patch priorityclasses.scheduling.k8s.io patch priorityclasses.scheduling.k8s.io": "1",
	} {
		if rows[row] != n {
			t.Errorf("row %q = %q, want %q; all rows:\n%s", row, rows[row], n, lines(rows))
		}
	}
}

// An action lists the objects that its labelSelector selects, in pages of 500.
func TestForecastOfLists(t *testing.T) {
	for selector, n := range map[string]string{"part": "6", "part=one": "4", "part=none": "2"} {
		rows := forecastOf(t, `
objects:
- namespaces: 2
  iterations: 2
  templates:
  - {replicas: 1000, object: {apiVersion: v1, kind: Secret, metadata: {name: "one-{{.Iteration}}-{{.Replica}}", labels: {part: one}}}}
  - {replicas: 1, object: {apiVersion: v1, kind: Secret, metadata: {name: "two-{{.Iteration}}-{{.Replica}}", labels: {part: two}}}}
phases: [{name: a, for: 10s, actions: [{kind: patch, target: {resource: secrets, labelSelector: "`+selector+`"}, patch: {metadata: {annotations: {a: b}}}}]}]
`)
		if got := rows["action patch secrets list secrets"]; got != n {
			t.Errorf("selector %q: %s list requests, want %s", selector, got, n)
		}
	}
}

// Tenants have their own permissions, and nodes with tokens have ServiceAccounts.
func TestForecastOfIdentities(t *testing.T) {
	rows := forecastOf(t, `
nodes: {count: 5, identity: token, kubeProxy: true}
phases: [{name: a, for: 10s, load: [{kind: requests, verb: get, rate: 1/s, namespaces: 3, tenants: [{name: x}]}]}]
`)
	for row, n := range map[string]string{
		"Namespace the run and its loads": "3", "ClusterRole tenants of loads": "1", "RoleBinding tenants of loads": "3",
		"Namespace accounts of simulated nodes": "1", "ServiceAccount simulated nodes": "6", "RoleBinding simulated nodes": "3",
	} {
		if rows[row] != n {
			t.Errorf("row %q = %q, want %q; all rows:\n%s", row, rows[row], n, lines(rows))
		}
	}
}

// An action whose target names a namespace group lists and selects only the objects in that group. The preview and the
// plan include the namespaces of groups.
func TestForecastOfNamespaceGroups(t *testing.T) {
	const text = `
namespaces: [{name: web, count: 3}, {name: shared}]
objects:
- {namespaceGroup: web, templates: [&secrets {replicas: 10, object: {apiVersion: v1, kind: Secret, metadata: {name: "s-{{.Replica}}"}}}]}
- {namespaceGroup: shared, templates: [*secrets]}
phases:
- name: a
  for: 1m
  actions:
  - {kind: delete, target: {resource: secrets, namespaceGroup: shared}}
  - {kind: patch, target: {resource: secrets, namespaceGroup: web}, patch: {metadata: {annotations: {a: b}}}}
`
	rows := forecastOf(t, text)
	for row, n := range map[string]string{
		"action delete secrets list secrets": "1", "action delete secrets delete secrets": "10",
		"action patch secrets list secrets": "3", "action patch secrets patch secrets": "30",
		"Namespace the run and its loads": "5",
	} {
		if rows[row] != n {
			t.Errorf("row %q = %q, want %q; all rows:\n%s", row, rows[row], n, lines(rows))
		}
	}
	s := parsed(t, text)
	plan := newTarget("3f9a", s).Plan().String()
	for _, want := range []string{"Creates   namespace stormglass-3f9a with ", "\n          namespaces web-0 to web-2\n", "\n          namespace shared\n"} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan does not contain %q:\n%s", want, plan)
		}
	}
}
