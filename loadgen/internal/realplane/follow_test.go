package realplane

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/stormglass/stormglass/loadgen/internal/condition"
	"github.com/stormglass/stormglass/loadgen/internal/follow"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
)

// Conditions and transitions work for objects in the run's namespace, in another namespace, and without a namespace.
func TestConditionsAndTransitions(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	to, client := target(t, "follow")
	expr := func(text string) *condition.Condition {
		c, err := condition.Parse(text, nil)
		must(t, err)
		return c
	}
	lease := condition.Count{Set: condition.Set{Resource: "leases.coordination.k8s.io", Namespace: "kube-system"}, Name: "kube-scheduler"}
	var err error
	lease.Test, err = condition.ParseTest(lease.Resource, "jsonpath={.spec.holderIdentity}", nil)
	must(t, err)
	state := func(text string) condition.State {
		s, err := condition.ParseState("configmaps", text, nil)
		must(t, err)
		return s
	}
	f, err := follow.New(to.Config, follow.Options{
		Namespaces: []string{to.Namespace}, Selector: labels.Set(to.Labels).String(), Stalls: &stall.Meter{},
		Conditions: map[string]*condition.Condition{
			"three":  expr(`count(configmaps where has(data.x) && data.x == "1") >= 3 && nodes.size() == 0`),
			"leader": condition.OfObjects("leader", lease, condition.All),
			"gone":   expr(`count(configmaps where has(data.x)) == 0`),
		},
		Transitions: []follow.Transition{{
			Name: "written", Set: condition.Set{Resource: "configmaps"}, Selector: labels.Everything(), From: state("created"), To: state("jsonpath={.data.x}=1"),
		}},
	})
	must(t, err)
	watching, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- f.Run(watching) }()
	defer func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
	must(t, f.Wait(ctx, "leader"))
	must(t, f.Wait(ctx, "gone")) // the list of configmaps has arrived: later changes arrive as events
	f.BeginPhase("writes")
	maps := client.CoreV1().ConfigMaps(to.Namespace)
	for _, name := range []string{"a", "b", "c"} {
		made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		must(t, err)
		made.Data = map[string]string{"x": "1"}
		_, err = maps.Update(ctx, made, metav1.UpdateOptions{})
		must(t, err)
	}
	must(t, f.Wait(ctx, "three"))
	all := f.Results(time.Now())["writes"]
	if len(all) != 1 || all[0].Began < 3 || all[0].Latency.Count-all[0].Open != 3 || all[0].Latency.Max <= 0 {
		t.Errorf("%+v", all)
	}
	must(t, maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	must(t, f.Wait(ctx, "gone"))
}
