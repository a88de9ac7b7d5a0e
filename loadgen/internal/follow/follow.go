// Package follow watches objects of any resource: for the conditions that end phases, and to measure how long objects
// take from one state to another.
//
// It opens one watch for each resource and namespace, however many conditions and transitions use it, on a separate
// connection. All times are arrivals at that connection.
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

// Options of a Follower.
type Options struct {
	// Namespaces of the run. Their objects of namespaced resources are followed.
	Namespaces []string
	// Selector selects the run's objects of cluster-scoped resources.
	Selector string
	// Conditions that may be awaited, by name.
	Conditions map[string]*condition.Condition
	// Transitions to measure.
	Transitions []Transition
	// Later reports whether a resource may be served only later, such as one that the run defines. Nil: none.
	Later func(resource string) bool
	// Retry is the first wait after a failed list or watch, doubled up to 5 s. Zero: 100 ms.
	Retry time.Duration
	// Recheck is how often a state that may predate the wait is read again. Zero: 2 s.
	Recheck time.Duration
	// Stalls tells when the generator was not run. Nil: unknown.
	Stalls *stall.Meter
}

// Follower watches the objects of conditions and transitions. It is safe for concurrent use. A nil Follower follows
// nothing.
type Follower struct {
	options Options
	http    *http.Client
	rest    *rest.RESTClient

	mu       sync.Mutex
	sets     map[condition.Set]*set
	awaited  map[string]awaited // conditions, by name
	passages []*passage
	waits    map[*wait]bool
	ended    error         // why Run ended, if it has
	ready    chan struct{} // closed when all sets have been listed once
	isReady  bool
}

// set holds what is known about the objects of one condition.Set.
type set struct {
	of      condition.Set
	counts  []condition.Count // of all conditions over it
	counter *condition.Counter
	// passages over its objects; endpoints are those over its EndpointSlices.
	passages, endpoints []*passage
	sources             []*source // nil until the API server has told their paths
	absent              bool      // the API server does not serve them yet
}

// New makes a Follower. It sends nothing yet.
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

// Run watches until ctx ends, and survives lost connections and versions. A resource that the API server does not have
// or does not let us watch is an error.
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
	f.ended = fmt.Errorf("the watches have ended: %w", err)
	f.wake()
	return err
}

// change applies a change of the state and ends the waits that it satisfies.
func (f *Follower) change(apply func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	apply()
	f.wake()
}

// BeginPhase makes a phase the current one. An object belongs to the phase in which it reached a transition's first
// state.
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

// Results returns the transitions by phase, in order; transitions before the first phase are under "".
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
