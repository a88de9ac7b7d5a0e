// Package follow watches objects of any resource. It evaluates the conditions that end phases, and measures how long
// objects take to get from one state to another.
//
// For each resource and namespace, all conditions and transitions share one watch. All times are the times at which the
// events of the watch arrive.
package follow

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/condition"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Options configure a Follower.
type Options struct {
	// Namespaces are the run's namespaces. The Follower watches objects of namespaced resources there.
	Namespaces []string
	// Selector is the label selector that distinguishes the run's objects among cluster-scoped objects.
	Selector string
	// Conditions are the conditions for which Wait can wait, by name.
	Conditions map[string]*condition.Condition
	// Transitions are the transitions to measure.
	Transitions []Transition
	// Later reports whether the run creates the CustomResourceDefinition of a resource, so that the API server may
	// serve the resource only later. Nil means that there are no such resources.
	Later func(resource string) bool
	// Retry is the wait after the first failed list or watch. It doubles up to 5 s. Zero means 100 ms.
	Retry time.Duration
	// Recheck is the interval at which Wait lists the objects again while the watches may be outdated. Zero means 2 s.
	Recheck time.Duration
	// Stalls measures how long the generator was stalled. Nil means that it never was.
	Stalls *stall.Meter
}

// Follower watches the objects of conditions and transitions. It is safe for concurrent use. A nil *Follower watches
// nothing.
type Follower struct {
	options Options
	http    *http.Client
	rest    *rest.RESTClient

	mu       sync.Mutex
	sets     map[condition.Set]*set
	awaited  map[string]awaited // conditions by name
	passages []*passage         // measurements of all transitions
	waits    map[*wait]bool
	ended    error         // why Run ended; nil while it runs
	ready    chan struct{} // closed when all sets have been listed once, or Run has ended
	isReady  bool
}

// set is a set of objects to watch, and the state of its watches.
type set struct {
	of      condition.Set
	counts  []condition.Count // the Counts of all conditions for this set
	counter *condition.Counter
	// passages measure the transitions of the objects in the set. endpoints measure transitions of Services. If
	// endpoints is not empty, the set contains the EndpointSlices of these Services.
	passages, endpoints []*passage
	sources             []*source // nil until discovery has returned the paths
	absent              bool      // whether the API server does not serve the resource yet
}

// New returns a Follower. It sends no request.
func New(cfg *rest.Config, o Options) (*Follower, error) {
	o.Retry, o.Recheck = cmp.Or(o.Retry, 100*time.Millisecond), cmp.Or(o.Recheck, 2*time.Second)
	restClient, client, err := apiclient.NewREST(cfg)
	if err != nil {
		return nil, fmt.Errorf("follow: %w", err)
	}
	f := &Follower{options: o, http: client, rest: restClient, sets: map[condition.Set]*set{}, awaited: map[string]awaited{}, waits: map[*wait]bool{}, ready: make(chan struct{})}
	for name, c := range o.Conditions {
		a := awaited{Condition: c}
		for _, n := range c.Counts {
			s := f.set(n.Set)
			a.places = append(a.places, place{s, len(s.counts)})
			s.counts = append(s.counts, n)
		}
		f.awaited[name] = a
	}
	for _, t := range o.Transitions {
		p := newPassage(t, o.Stalls.Total)
		f.passages = append(f.passages, p)
		s := f.set(t.Set)
		s.passages = append(s.passages, p)
		if t.To.Kind == condition.Endpoints {
			s := f.set(condition.Set{Resource: condition.EndpointSlices, Namespace: t.Set.Namespace})
			s.endpoints = append(s.endpoints, p)
		}
	}
	for _, s := range f.sets {
		s.counter = condition.NewCounter(s.counts)
	}
	return f, nil
}

func (f *Follower) set(of condition.Set) *set {
	s, ok := f.sets[of]
	if !ok {
		s = &set{of: of}
		f.sets[of] = s
	}
	return s
}

// Run watches objects until ctx ends. It continues after lost connections and expired resourceVersions. It fails if the
// API server does not serve a resource, or does not allow the client to watch it.
func (f *Follower) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, s := range f.sets {
		wg.Go(func() {
			if err := f.follow(ctx, s); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	<-ctx.Done()
	wg.Wait()
	f.http.CloseIdleConnections()
	err := context.Cause(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = fmt.Errorf("the watches of followed objects have ended: %w", err)
	f.wake()
	return err
}

// change calls apply, which changes the state, and then ends the calls of Wait whose conditions are true.
func (f *Follower) change(apply func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	apply()
	f.wake()
}

// BeginPhase sets the current phase. A transition counts for the phase in which the object reached the transition's
// first state.
func (f *Follower) BeginPhase(name string) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.passages {
		p.beginPhase(name)
	}
}

// Results returns the results of all transitions by phase. The key "" stands for the time before the first phase.
// Unfinished transitions count with their duration up to the time `now`.
func (f *Follower) Results(now time.Time) map[string][]result.Transition {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string][]result.Transition{}
	for _, p := range f.passages {
		for phase, t := range p.results(now) {
			all[phase] = append(all[phase], t)
		}
	}
	return all
}
