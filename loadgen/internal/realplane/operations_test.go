package realplane

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/object"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// deployment is a custom manifest of a load.
var deployment = map[string]any{
	"apiVersion": "apps/v1", "kind": "Deployment",
	"metadata": map[string]any{"name": "not-this", "namespace": "nor-this", "labels": map[string]any{"app": "x"}},
	"spec": map[string]any{
		"replicas": 0, "selector": map[string]any{"matchLabels": map[string]any{"app": "x"}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "x"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "none"}}},
		},
	},
}

// priority is an object of a resource without namespaces.
var priority = map[string]any{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 7}

// Every verb works on every resource with a built-in manifest, and on resources with a custom manifest. Every write
// changes something.
func TestVerbs(t *testing.T) {
	to, _ := target(t, "verbs")
	resources := map[string]any{"deployments.apps": deployment, "priorityclasses.scheduling.k8s.io": priority}
	for _, r := range scenario.Manifests {
		resources[r] = nil
	}
	for resource, manifest := range resources {
		for _, verb := range []string{"create", "get", "list", "update", "patch", "apply", "delete"} {
			t.Run(verb+"/"+resource, func(t *testing.T) {
				// The name includes the namespace, because some objects are cluster-scoped.
				name, _, _ := strings.Cut(resource, ".")
				l := newLoad(verb+"-"+name+"-"+to.Namespace, func(l *scenario.Load) {
					l.Verb, l.Resource, l.Object, l.Namespaces, l.Objects = verb, resource, manifest, 2, 12
				})
				all := run(t, to, l, 12)
				succeeded(t, all)
				if len(all) != 12 {
					t.Errorf("%d requests, want 12", len(all))
				}
				written(t, verb, l.Name, resource, all)
			})
		}
	}
}

// written checks the responses to writes.
func written(t *testing.T, verb, loadName, resource string, all []exchange) {
	versions := map[string]bool{}
	for _, e := range all {
		var o metav1.PartialObjectMetadata
		e.into(t, &o)
		switch verb {
		case "get", "list", "delete":
			continue
		}
		versions[o.ResourceVersion] = true
		if o.Labels[load.LoadLabel] != loadName || o.Labels[runLabel] != "test" {
			t.Errorf("%s has labels %v", o.Name, o.Labels)
		}
	}
	if want := len(all); len(versions) != want && len(versions) > 0 && resource != "deployments.apps" {
		t.Errorf("%d versions of %d writes: some changed nothing", len(versions), want)
	}
}

// Objects are spread over namespaces as `spread` says, and the other namespaces are created with the run's label.
// Objects have the configured sizes.
func TestNamespacesAndSizes(t *testing.T) {
	to, client := target(t, "spread")
	l := newLoad("zipf", func(l *scenario.Load) {
		l.Verb, l.Objects, l.Namespaces, l.Spread = "patch", 60, 4, "zipf"
		l.Sizes = []scenario.SizeShare{{Size: 100, Weight: 3}, {Size: 5000, Weight: 1}}
	})
	succeeded(t, run(t, to, l, 40))
	var counts []int
	large := 0
	for _, ns := range l.NamespacesIn(to.Namespace) {
		list, err := client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{LabelSelector: load.LoadLabel + "=zipf"})
		must(t, err)
		counts = append(counts, len(list.Items))
		for _, o := range list.Items {
			switch len(o.Data["payload"]) {
			case 5000:
				large++
			case 100:
			default:
				t.Errorf("got a payload of %d bytes", len(o.Data["payload"]))
			}
		}
		if ns == to.Namespace {
			continue
		}
		made, err := client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		must(t, err)
		if made.Labels[runLabel] != "test" {
			t.Errorf("namespace %s has labels %v", ns, made.Labels)
		}
	}
	if want := []int{29, 14, 10, 7}; !slices.Equal(counts, want) {
		t.Errorf("objects by namespace %v, want %v", counts, want)
	}
	if large < 5 || large > 30 {
		t.Errorf("%d of 60 are large, want about 15", large)
	}
}

// A tenant's requests use the tenant's user, groups and rights.
func TestTenants(t *testing.T) {
	to, client := target(t, "tenants")
	_, err := client.RbacV1().RoleBindings(to.Namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "readers"}},
	}, metav1.CreateOptions{})
	must(t, err)
	l := newLoad("tenants", func(l *scenario.Load) {
		l.Verb, l.Tenants = "get", []scenario.Tenant{{Name: "blue", Share: 3, Groups: []string{"readers"}}, {Name: "yellow", Share: 1}}
	})
	// Authorizers notice new rights by a watch.
	for granted := false; !granted; {
		all := run(t, to, newLoad("probe", func(l *scenario.Load) {
			l.Verb, l.Tenants = "get", []scenario.Tenant{{Name: "blue", Share: 1, Groups: []string{"readers"}}}
		}), 1)
		granted = all[0].outcome.Success()
	}
	outcomes := map[string]int{}
	for _, e := range run(t, to, l, 200) {
		outcomes[fmt.Sprint(e.kind.Tenant, " ", e.outcome)]++
		if e.kind.Tenant == "yellow" && !strings.Contains(string(e.body), `User \"stormglass:tenant:yellow\" cannot get`) {
			t.Errorf("answer to yellow: %s", e.body)
		}
	}
	if blue := outcomes["blue 200"]; blue < 120 || blue > 180 || blue+outcomes["yellow 403"] != 200 {
		t.Errorf("outcomes %v, want about 150 of blue and all others refused", outcomes)
	}
}

// Updates that name the resourceVersion that they replace do not conflict with each other, even if they run at the same
// time.
func TestUpdatesNameTheVersionTheyReplace(t *testing.T) {
	to, _ := target(t, "updates")
	for _, resource := range []string{scenario.WidgetResource, "leases.coordination.k8s.io"} {
		succeeded(t, run(t, to, newLoad("update", func(l *scenario.Load) {
			l.Verb, l.Resource, l.Objects = "update", resource, 30
		}), 200))
	}
}

// A load creates deleted objects again. Meanwhile, a get may return 404; no other error occurs.
func TestMix(t *testing.T) {
	to, _ := target(t, "mix")
	l := newLoad("mix", func(l *scenario.Load) {
		l.Objects = 20
		l.Mix = []scenario.Operation{
			{Verb: "get", Weight: 5}, {Verb: "delete", Weight: 1}, {Verb: "list", Weight: 1, Limit: 7, AllPages: true},
			{Verb: "patch", Resource: scenario.WidgetResource, Weight: 2}, {Verb: "get", Resource: "services", Weight: 1},
			{Verb: "get", Resource: "pods", Weight: 1}, {Verb: "create", Resource: "pods", Weight: 1},
		}
	})
	verbs := map[string]int{}
	for _, e := range run(t, to, l, 300) {
		verbs[e.kind.Verb+" "+e.kind.Resource]++
		missing := e.outcome == 404 && e.kind.Verb == "get" && e.kind.Resource != "services"
		if !e.outcome.Success() && !missing {
			t.Errorf("%s %s: %v: %s", e.kind.Verb, e.path, e.outcome, e.body)
		}
	}
	if len(verbs) != len(l.Mix) || verbs["get configmaps"] < 80 {
		t.Errorf("requests %v", verbs)
	}
}

// Loads that cannot work are refused before they start, with a hint.
func TestUnpreparableObjectsAreRefused(t *testing.T) {
	to, _ := target(t, "refused")
	for hint, change := range map[string]func(*scenario.Load){
		"kubectl api-resources":     func(l *scenario.Load) { l.Verb, l.Resource = "list", "unicorns" },
		"unicorns.example.com":      func(l *scenario.Load) { l.Verb, l.Resource = "list", "unicorns.example.com" },
		"does not support the verb": func(l *scenario.Load) { l.Verb, l.Resource = "list", "tokenreviews.authentication.k8s.io" },
		`create deployments.apps "x-`: func(l *scenario.Load) {
			l.Verb, l.Resource, l.Object = "patch", "deployments.apps", map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}
		},
		"give the load an object of that kind": func(l *scenario.Load) { l.Verb, l.Resource, l.Object = "patch", "daemonsets.apps", deployment },
		"in an annotation of at most":          func(l *scenario.Load) { l.Verb, l.Resource, l.Size = "patch", "services", 300<<10 },
	} {
		op, err := object.NewOperation(to, newLoad("x", change))
		must(t, err)
		if err := op.Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("error %v, want one with %q", err, hint)
		}
	}
}

// A review has no metadata and is answered, not stored.
func TestReviewsAreAnswered(t *testing.T) {
	to, _ := target(t, "reviews")
	for user, allowed := range map[string]bool{"system:kube-scheduler": true, "jane": false} {
		l := newLoad("reviews", func(l *scenario.Load) {
			l.Verb, l.Resource = "create", "subjectaccessreviews.authorization.k8s.io"
			l.Object = map[string]any{
				"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
				"spec": map[string]any{"user": user, "resourceAttributes": map[string]any{"verb": "list", "resource": "pods"}},
			}
		})
		all := run(t, to, l, 3)
		succeeded(t, all)
		for _, e := range all {
			var review authorizationv1.SubjectAccessReview
			if e.into(t, &review); review.Status.Allowed != allowed {
				t.Errorf("%s: %+v", user, review.Status)
			}
		}
	}
}
