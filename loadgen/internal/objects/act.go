package objects

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stormglass/stormglass/loadgen/internal/template"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Done is the outcome of an action, for the run's timeline.
type Done struct {
	// Selected is the number of objects that the action's target matched. Objects is the number to which the action was
	// applied. Refused is the number of evictions that a PodDisruptionBudget refused. Gone is the number of objects
	// that no longer existed when the action reached them.
	Selected, Objects, Refused, Gone int
}

// String describes the outcome in a few words.
func (d Done) String() string {
	words := []string{fmt.Sprintf("%d objects", d.Objects)}
	if d.Refused > 0 {
		words = append(words, fmt.Sprintf("%d refused by a PodDisruptionBudget", d.Refused))
	}
	if d.Gone > 0 {
		words = append(words, fmt.Sprintf("%d were gone", d.Gone))
	}
	return strings.Join(words, ", ")
}

type one struct {
	namespace, name string
	index           int
	created         time.Time
}

// Act performs an action on the objects that its target selects.
func (a *Objects) Act(ctx context.Context, x scenario.Action) (Done, error) {
	var r Resource
	err := a.options.Retry(ctx, func() (err error) {
		r, err = a.named(x.Target.Resource)
		return err
	})
	if err != nil {
		return Done{}, err
	}
	if x.Kind == "delete" && x.Collection {
		return a.deleteCollection(ctx, r, x)
	}
	selected, err := a.selected(ctx, r, x.Target)
	if err != nil {
		return Done{}, err
	}
	do, err := a.doing(r, x)
	if err != nil {
		return Done{}, err
	}
	var done, refusals, gone atomic.Int64
	err = each(ctx, len(selected), float64(x.Rate), func(ctx context.Context, i int) error {
		err := do(ctx, selected[i])
		switch {
		case err == nil:
			done.Add(1)
		case apierrors.IsNotFound(err):
			if verb, of := x.Request(); verb == "patch" && of != "" && a.isThere(ctx, r, selected[i]) {
				return fmt.Errorf("%s %s %s: the API server does not serve its subresource %s", x.Kind, r.Kind, selected[i].name, of)
			}
			gone.Add(1)
		case x.Kind == "evict" && apierrors.IsTooManyRequests(err):
			refusals.Add(1)
			meterOf(ctx).refuse()
		default:
			return fmt.Errorf("%s %s %s: %w", x.Kind, r.Kind, selected[i].name, err)
		}
		return nil
	})
	return Done{len(selected), int(done.Load()), int(refusals.Load()), int(gone.Load())}, err
}

// isThere reports whether the object o exists. It returns false after an error.
func (a *Objects) isThere(ctx context.Context, r Resource, o one) bool {
	_, err := a.metadata.Resource(r.GroupVersionResource).Namespace(o.namespace).Get(ctx, o.name, metav1.GetOptions{})
	return err == nil
}

// doing returns a function that applies the action x to one object.
func (a *Objects) doing(r Resource, x scenario.Action) (func(context.Context, one) error, error) {
	retried := func(f func(context.Context, one) error) func(context.Context, one) error {
		return func(ctx context.Context, o one) error {
			return a.options.Retry(ctx, func() error { return f(ctx, o) })
		}
	}
	_, subresource := x.Request()
	merge := func(patch any) (func(context.Context, one) error, error) {
		body, err := json.Marshal(patch)
		return retried(func(ctx context.Context, o one) error {
			return a.patch(ctx, r, o, subresource, types.MergePatchType, body)
		}), err
	}
	switch x.Kind {
	case "delete":
		return retried(func(ctx context.Context, o one) error {
			return a.rest.Delete().AbsPath(r.Path(o.namespace, o.name)).Param("propagationPolicy", propagation(x)).Do(ctx).Error()
		}), nil
	case "evict":
		return a.evict(r), nil
	case "exec":
		return func(ctx context.Context, o one) error { return a.exec(ctx, o, x.Command) }, nil
	case "scale":
		return merge(map[string]any{"spec": map[string]any{"replicas": x.Replicas}})
	case "restart":
		at := map[string]any{"kubectl.kubernetes.io/restartedAt": time.Now().UTC().Format(time.RFC3339)}
		return merge(map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": at}}}})
	case "patch":
		render, err := a.patches(r, x)
		return func(ctx context.Context, o one) error {
			body, err := render(o)
			if err != nil {
				return err
			}
			how := types.PatchType(scenario.PatchTypes[patchType(x)])
			return a.options.Retry(ctx, func() error { return a.patch(ctx, r, o, subresource, how, body) })
		}, err
	}
	return nil, fmt.Errorf("unknown action %q", x.Kind)
}

func propagation(x scenario.Action) string {
	return cmp.Or(x.Propagation, string(metav1.DeletePropagationBackground))
}

func patchType(x scenario.Action) string { return cmp.Or(x.PatchType, "merge") }

func (a *Objects) patch(ctx context.Context, r Resource, o one, subresource string, how types.PatchType, body []byte) error {
	request := a.rest.Patch(how).AbsPath(r.Path(o.namespace, o.name, subresource)).Param("fieldManager", fieldManager).Body(body)
	if how == types.ApplyPatchType {
		request = request.Param("force", "true")
	}
	return request.Do(ctx).Error()
}

// evict evicts a pod. It does not repeat an eviction that a PodDisruptionBudget refuses.
func (a *Objects) evict(r Resource) func(context.Context, one) error {
	return func(ctx context.Context, o one) error {
		body, err := json.Marshal(map[string]any{
			"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]any{"name": o.name, "namespace": o.namespace},
		})
		if err != nil {
			return err
		}
		var refused error
		err = a.options.Retry(ctx, func() error {
			err := a.rest.Post().AbsPath(r.Path(o.namespace, o.name, "eviction")).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
			if refused = nil; apierrors.IsTooManyRequests(err) {
				refused, err = err, nil
			}
			return err
		})
		return cmp.Or(err, refused)
	}
}

// patches returns a function that renders the patch of an action for one object. Each call of patches draws new random
// values: otherwise a repeated action would change nothing.
func (a *Objects) patches(r Resource, x scenario.Action) (func(one) ([]byte, error), error) {
	t, err := template.ParseValue(x.Patch)
	if err != nil {
		return nil, fmt.Errorf("the patch: %w", err)
	}
	turn := uint64(a.patched.Add(1)-1) << 32
	var mu sync.Mutex // guards the template, which is not safe for concurrent use
	return func(o one) ([]byte, error) {
		values := map[string]any{"Name": o.name, "Namespace": o.namespace, "Index": o.index}
		maps.Copy(values, x.Vars)
		mu.Lock()
		patch, err := t.Value(values, a.options.Seed, turn+uint64(o.index))
		mu.Unlock()
		if err != nil {
			return nil, fmt.Errorf("the patch: %w", err)
		}
		if fields, ok := patch.(map[string]any); ok && patchType(x) == "apply" {
			fields["apiVersion"], fields["kind"] = r.GroupVersion().String(), r.Kind
			child(fields, "metadata")["name"] = o.name
		}
		return json.Marshal(patch)
	}, nil
}

func (a *Objects) deleteCollection(ctx context.Context, r Resource, x scenario.Action) (Done, error) {
	selected, err := a.selected(ctx, r, x.Target)
	if err != nil || len(selected) == 0 {
		return Done{}, err
	}
	namespaces := a.namespacesOf(r, x.Target)
	err = each(ctx, len(namespaces), float64(x.Rate), func(ctx context.Context, i int) error {
		err := a.options.Retry(ctx, func() error {
			return a.rest.Delete().AbsPath(r.Path(namespaces[i])).Param("propagationPolicy", propagation(x)).
				Param("labelSelector", a.selector(r, x.Target)).Param("fieldSelector", notGiven(x.Target)).Do(ctx).Error()
		})
		if err != nil {
			return fmt.Errorf("delete the collection of %s in %s: %w", x.Target.Resource, namespaces[i], err)
		}
		return nil
	})
	return Done{Selected: len(selected), Objects: len(selected)}, err
}

// selector returns the label selector of a selection. For cluster-scoped resources it selects only the run's own
// objects.
func (a *Objects) selector(r Resource, s scenario.Selection) string {
	selector := s.LabelSelector
	if !r.Namespaced {
		if selector != "" {
			selector += ","
		}
		selector += a.options.OwnLabel + "=" + a.options.Labels[a.options.OwnLabel]
	}
	return selector
}

// given maps resources to the name of an object that the controller manager creates in each namespace, and creates
// again after the object is deleted.
var given = map[string]string{"configmaps": "kube-root-ca.crt", "serviceaccounts": "default"}

// notGiven returns a field selector that excludes the object of the resource that the controller manager creates in each
// namespace (see given). It returns "" if there is no such object, or if the selection lists names.
func notGiven(s scenario.Selection) string {
	if name := given[s.Resource]; name != "" && len(s.Names) == 0 {
		return "metadata.name!=" + name
	}
	return ""
}

// namespacesOf returns the namespaces in which a selection selects objects, or a single "" for a cluster-scoped
// resource.
func (a *Objects) namespacesOf(r Resource, s scenario.Selection) []string {
	switch {
	case !r.Namespaced:
		return []string{""}
	case s.NamespaceGroup != "":
		return a.options.Group(s.NamespaceGroup).Names()
	}
	return a.options.Namespaces
}

func (a *Objects) inNamespaces(ctx context.Context, r Resource, s scenario.Selection) ([]one, error) {
	namespaces := a.namespacesOf(r, s)
	found := make([][]one, len(namespaces))
	err := each(ctx, len(namespaces), 0, func(ctx context.Context, i int) error {
		return a.options.Retry(ctx, func() (err error) {
			found[i], err = a.list(ctx, r, namespaces[i], s)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", s.Resource, err)
	}
	return slices.Concat(found...), nil
}

// selected returns the objects that the selection matches. If the selection has a share, each call returns only that
// fraction of the objects: a new random choice or the oldest objects.
func (a *Objects) selected(ctx context.Context, r Resource, s scenario.Selection) ([]one, error) {
	var all []one
	err := meterOf(ctx).timed(func() (err error) {
		all, err = a.inNamespaces(WithMeter(ctx, nil), r, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(all) < s.AtLeast {
		return nil, fmt.Errorf("the target selects only %d %s%s, but atLeast is %d", len(all), s.Resource, suchAs(s), s.AtLeast)
	}
	if s.Share != nil && len(all) > 0 {
		if s.Order == "oldest" {
			slices.SortStableFunc(all, func(a, b one) int { return a.created.Compare(b.created) })
		} else {
			random := rand.New(rand.NewPCG(uint64(a.options.Seed), uint64(a.draws.Add(1))))
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}
		all = all[:s.Of(len(all))]
	}
	for i := range all {
		all[i].index = i
	}
	return all, nil
}

func suchAs(s scenario.Selection) string {
	switch {
	case len(s.Names) > 0:
		return " of these names: " + strings.Join(s.Names, ", ")
	case s.LabelSelector != "":
		return " with labels " + s.LabelSelector
	}
	return ""
}

// ListPage is the maximum number of objects per page when an action lists its objects.
const ListPage = 500

func (a *Objects) list(ctx context.Context, r Resource, namespace string, s scenario.Selection) ([]one, error) {
	var all []one
	for options := (metav1.ListOptions{LabelSelector: a.selector(r, s), FieldSelector: notGiven(s), Limit: ListPage}); ; {
		page, err := a.metadata.Resource(r.GroupVersionResource).Namespace(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			m := &page.Items[i]
			if m.DeletionTimestamp == nil && (len(s.Names) == 0 || slices.Contains(s.Names, m.Name)) {
				all = append(all, one{namespace: m.Namespace, name: m.Name, created: m.CreationTimestamp.Time})
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return all, nil
		}
	}
}
