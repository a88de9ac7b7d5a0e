package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	fieldManager = "stormglass"
	definition   = "CustomResourceDefinition"

	// establishedWithin is how long Make waits until the API server serves new custom resource definitions.
	establishedWithin = time.Minute
	establishedPoll   = 200 * time.Millisecond
)

// Make creates or applies (as the action x says) the objects of a batch, in order and a few at a time. It first creates
// the custom resource definitions and waits until the API server serves them. It fails if an object that it must create
// exists, or if a cluster-scoped object that it must apply exists and does not belong to the run. It returns the number
// of created or applied objects.
func (a *Objects) Make(ctx context.Context, all *scenario.Objects, x scenario.Action) (int, error) {
	m := &making{Objects: a, all: all, action: x}
	if x.OnlyMissing {
		if err := meterOf(ctx).timed(func() error { return m.findPresent(WithMeter(ctx, nil)) }); err != nil {
			return 0, err
		}
	}
	if slices.ContainsFunc(all.Kinds(), isDefinition) {
		if err := m.pass(ctx, true); err != nil {
			return int(m.made.Load()), err
		}
		if err := a.awaitEstablished(ctx, m.definitions); err != nil {
			return int(m.made.Load()), err
		}
		a.mapper.Reset()
	}
	err := m.pass(ctx, false)
	return int(m.made.Load()), err
}

func isDefinition(k scenario.ObjectKind) bool { return k.Kind == definition }

// making is the state of one call of Make.
type making struct {
	*Objects
	all     *scenario.Objects
	action  scenario.Action
	present map[string]bool // paths of existing objects; nil: create all objects
	made    atomic.Int64

	mu          sync.Mutex // guards `definitions` and `all`
	definitions []string
}

func (m *making) at(i int) (scenario.Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, err := m.all.At(i)
	return o, err
}

// pass creates or applies either the custom resource definitions or all other objects of the batch. It sends requests
// at the action's rate. If the action sets OnlyMissing, it sends none for objects that exist already.
func (m *making) pass(ctx context.Context, definitions bool) error {
	missing, err := m.missing(definitions)
	if err != nil {
		return err
	}
	return each(ctx, len(missing), float64(m.action.Rate), func(ctx context.Context, i int) error {
		o, err := m.at(missing[i])
		if err != nil {
			return err
		}
		r, err := m.resourceOf(ctx, o)
		if err != nil {
			return err
		}
		if definitions && !m.defines(o.Name) {
			return nil // a batch contains a definition once per namespace, but it is cluster-scoped
		}
		if err := m.make(ctx, r, o, m.action.Kind == "apply"); err != nil {
			return err
		}
		m.made.Add(1)
		return nil
	})
}

// missing returns the indexes of the definitions, or of the other objects, without the objects in m.present.
func (m *making) missing(definitions bool) (all []int, err error) {
	for i := range m.all.Len() {
		if isDefinition(m.all.Kinds()[m.all.KindAt(i)]) != definitions {
			continue
		}
		if m.present != nil {
			o, err := m.at(i)
			if err != nil {
				return nil, err
			}
			r, err := ResourceOf(m.mapper, o)
			if err != nil {
				return nil, err
			}
			if m.present[r.Path(m.namespaceOf(o), o.Name)] {
				continue
			}
		}
		all = append(all, i)
	}
	return all, nil
}

// defines records the name of a definition. It reports whether the name is new.
func (m *making) defines(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.Contains(m.definitions, name) {
		return false
	}
	m.definitions = append(m.definitions, name)
	return true
}

// findPresent lists the existing objects of the kinds in the batch.
func (m *making) findPresent(ctx context.Context) error {
	m.present = map[string]bool{}
	for _, k := range m.all.Kinds() {
		r, err := m.resourceOf(ctx, scenario.Object{APIVersion: k.APIVersion, Kind: k.Kind})
		if err != nil {
			return err
		}
		there, err := m.inNamespaces(ctx, r, scenario.Selection{Resource: r.Resource})
		if err != nil {
			return err
		}
		for _, o := range there {
			m.present[r.Path(o.namespace, o.name)] = true
		}
	}
	return nil
}

// each calls f with each number from 0 to n-1, several at a time. It starts at most perSecond calls per second; 0 means no
// limit.
func each(ctx context.Context, n int, perSecond float64, f func(ctx context.Context, i int) error) error {
	meter := meterOf(ctx)
	if perSecond <= 0 {
		return load.Parallel(ctx, n, func(ctx context.Context, i int) error {
			return meter.request(func() error { return f(ctx, i) })
		})
	}
	limiter := rate.NewLimiter(rate.Limit(perSecond), 1)
	began := time.Now()
	err := load.Parallel(ctx, n, func(ctx context.Context, i int) error {
		if err := limiter.Wait(ctx); err != nil {
			return err
		}
		return meter.request(func() error { return f(ctx, i) })
	})
	meter.round(ctx, n, perSecond, time.Since(began))
	return err
}

// Try sends the first object of each kind in a batch to the API server, as a dry run. It returns a usage error if the
// API server can never accept such an object. It ignores other refusals, because an object may depend on something that
// does not exist yet. Make reports them if they persist.
func (a *Objects) Try(ctx context.Context, all *scenario.Objects) error {
	firsts, err := all.Firsts()
	if err != nil {
		return err
	}
	for _, o := range firsts {
		r, err := ResourceOf(a.mapper, o)
		if err != nil {
			continue // the batch may contain the definition of the kind
		}
		a.options.Complete(o, r.Namespaced)
		err = a.create(ctx, r, o, metav1.DryRunAll)
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			return exitcode.UsageError(refused("create", o, err))
		}
	}
	return nil
}

// refused adds the place of the object o in the scenario, the verb and the object to an error. It returns nil if err is
// nil.
func refused(verb string, o scenario.Object, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s %s: %w", o.Place, verb, &o, err)
}

func (a *Objects) make(ctx context.Context, r Resource, o scenario.Object, apply bool) error {
	a.options.Complete(o, r.Namespaced)
	if apply {
		return refused("apply", o, a.apply(ctx, r, o))
	}
	attempts := 0
	err := a.options.Retry(ctx, func() error {
		attempts++
		return a.create(ctx, r, o, "")
	})
	if apierrors.IsAlreadyExists(err) && attempts > 1 && a.own(ctx, r, o) {
		return nil // an earlier attempt created the object, but its response was lost
	}
	return refused("create", o, err)
}

func (a *Objects) namespaceOf(o scenario.Object) string { return a.options.Namespaces[o.Namespace] }

func (a *Objects) create(ctx context.Context, r Resource, o scenario.Object, dryRun string) error {
	body, err := json.Marshal(o.Manifest)
	if err != nil {
		return fmt.Errorf("encode the value as JSON: %w", err)
	}
	request := a.rest.Post().AbsPath(r.Path(a.namespaceOf(o))).Param("fieldManager", Creator(a.options.Labels)).
		Param("fieldValidation", metav1.FieldValidationStrict).SetHeader("Content-Type", "application/json").Body(body)
	if dryRun != "" {
		request = request.Param("dryRun", dryRun)
	}
	return request.Do(ctx).Error()
}

// apply applies an object server-side, and takes over the ownership of all its fields.
func (a *Objects) apply(ctx context.Context, r Resource, o scenario.Object) error {
	if o.Name == "" {
		return errors.New("an object without a name cannot be applied")
	}
	if !r.Namespaced { // every object in the run's namespaces belongs to the run
		there, err := a.metadata.Resource(r.GroupVersionResource).Get(ctx, o.Name, metav1.GetOptions{})
		if err == nil && !a.options.owns(there.Labels) {
			return errors.New("the cluster already has an object with this name, but this run did not create it")
		}
	}
	body, err := json.Marshal(o.Manifest)
	if err != nil {
		return fmt.Errorf("encode the value as JSON: %w", err)
	}
	return a.options.Retry(ctx, func() error {
		return a.rest.Patch(types.ApplyPatchType).AbsPath(r.Path(a.namespaceOf(o), o.Name)).Param("fieldManager", fieldManager).
			Param("force", "true").Param("fieldValidation", metav1.FieldValidationStrict).Body(body).Do(ctx).Error()
	})
}

func (a *Objects) own(ctx context.Context, r Resource, o scenario.Object) bool {
	if r.Namespaced {
		return true
	}
	there, err := a.metadata.Resource(r.GroupVersionResource).Get(ctx, o.Name, metav1.GetOptions{})
	return err == nil && a.options.owns(there.Labels)
}

// awaitEstablished waits until the API server serves the named custom resource definitions.
func (a *Objects) awaitEstablished(ctx context.Context, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, establishedWithin)
	defer cancel()
	for _, name := range names {
		for {
			why, err := a.notEstablished(ctx, name)
			if err == nil && why == "" {
				break
			}
			if !apiclient.Pause(ctx, establishedPoll) {
				return fmt.Errorf("%s %s is not established within %s: %w", definition, name, establishedWithin, errors.Join(err, errors.New(why)))
			}
		}
	}
	return nil
}

// crd holds the fields of a CustomResourceDefinition that this package needs.
type crd struct {
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Plural string `json:"plural"`
		} `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Served bool   `json:"served"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// notEstablished returns why a definition cannot be used yet, or "". It also checks discovery, because this package
// finds resources there: a definition can be established before discovery lists its resource.
func (a *Objects) notEstablished(ctx context.Context, name string) (string, error) {
	var d crd
	if err := a.read(ctx, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+name, &d); err != nil {
		return "", err
	}
	why := "it has no condition Established"
	for _, c := range d.Status.Conditions {
		switch {
		case c.Type == "Established" && c.Status == metav1.ConditionTrue:
			return a.undiscovered(ctx, d)
		case c.Status == metav1.ConditionFalse:
			why = c.Reason + ": " + c.Message
		}
	}
	return why, nil
}

// undiscovered returns a version of the custom resource that discovery does not list yet, or "".
func (a *Objects) undiscovered(ctx context.Context, d crd) (string, error) {
	for _, v := range d.Spec.Versions {
		if !v.Served {
			continue
		}
		var list metav1.APIResourceList
		err := a.read(ctx, "/apis/"+d.Spec.Group+"/"+v.Name, &list)
		if err != nil && !apierrors.IsNotFound(err) {
			return "", err
		}
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == d.Spec.Names.Plural }) {
			return "the API server does not list its version " + v.Name, nil
		}
	}
	return "", nil
}

func (a *Objects) read(ctx context.Context, path string, into any) error {
	body, err := apiclient.Body(a.rest.Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read the response to GET %s: %w", path, err)
	}
	return nil
}
