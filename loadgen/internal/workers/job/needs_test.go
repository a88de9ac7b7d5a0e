package job

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apimachinery/pkg/watch"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
)

// Needs lists exactly the permissions that a run uses to start, watch and remove workers.
func TestNeedsAreWhatIsAsked(t *testing.T) {
	for name, namespace := range map[string]string{"in a namespace that there is": "load", "in one that is made": ""} {
		t.Run(name, func(t *testing.T) {
			in := namespace
			if in == "" {
				in = "stormglass-id-workers"
			}
			client := fake.NewClientset(
				&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}, Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{{Port: 443}}}},
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: rootCA}, Data: map[string]string{"ca.crt": "x"}},
			)
			client.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: "v1.36.0"}
			c := &runJob{
				setup:      setup{Options: Options{Image: "loadgen:v1", Namespace: namespace}, name: account + "-id", namespace: in, makes: namespace == "", count: 1, coordinator: "10.0.0.2:7443", run: "id"},
				Invitation: workers.Invitation{Run: "id", Count: 1, Tell: func(string, ...any) {}},
				client:     client, where: "fake", ended: func(int, error) {}, reached: map[types.UID]bool{}, gone: map[types.UID]bool{},
			}
			c.ctx, c.cancel = context.WithCancel(t.Context())
			if err := c.make(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := c.api(t.Context()); err != nil {
				t.Fatal(err)
			}
			watched := make(chan struct{}, 2)
			client.PrependWatchReactor("*", func(kubetesting.Action) (bool, watch.Interface, error) {
				watched <- struct{}{}
				return false, nil, nil
			})
			c.all.Go(c.watchPods)
			c.all.Go(c.watchEvents)
			<-watched
			<-watched
			if err := c.stop(); err != nil {
				t.Fatal(err)
			}
			asked := map[string]bool{}
			for _, a := range client.Actions() {
				if a.GetResource().Resource == "version" {
					continue // discovery, which every user may read
				}
				in := a.GetNamespace()
				if namespace == "" && in != "default" {
					in = "" // no rule can contain this name
				}
				asked[fmt.Sprintf("%s %s %q", a.GetVerb(), a.GetResource().GroupResource(), in)] = true
			}
			// An informer sends list requests, or a watch that starts with a list.
			for _, resource := range []string{"pods", "events"} {
				asked[fmt.Sprintf("list %s %q", resource, namespace)] = true
			}
			allowed := map[string]bool{}
			needs := Starter{Options: c.Options, OfTarget: true}.Needs(false)
			each(needs, func(namespace, verb, group, resource string) {
				allowed[fmt.Sprintf("%s %s %q", verb, strings.TrimSuffix(resource+"."+group, "."), namespace)] = true
			})
			for a := range asked {
				if !allowed[a] {
					t.Errorf("the run uses %s, but Needs does not contain it:\n%v", a, needs)
				}
			}
			for a := range allowed {
				if !asked[a] {
					t.Errorf("Needs contains %s, but the run only uses\n%v", a, asked)
				}
			}
		})
	}
}

// each calls fn with every permission that rules grant.
func each(rules cluster.Rules, fn func(namespace, verb, group, resource string)) {
	for namespace, all := range rules {
		for _, r := range all {
			expand(r, func(verb, group, resource string) { fn(namespace, verb, group, resource) })
		}
	}
}

func expand(r rbacv1.PolicyRule, fn func(verb, group, resource string)) {
	for _, verb := range r.Verbs {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				fn(verb, group, resource)
			}
		}
	}
}

// If the coordinator connects to the workers, it needs permission to forward their ports.
func TestCarriedWorkersNeedPortForward(t *testing.T) {
	for _, carried := range []bool{false, true} {
		needs := Starter{Options: Options{Namespace: "load"}}.Needs(carried)
		has := slices.ContainsFunc(needs["load"], func(r rbacv1.PolicyRule) bool { return r.Resources[0] == "pods/portforward" })
		if has != carried {
			t.Errorf("Needs(%v) = %v", carried, needs)
		}
	}
}
