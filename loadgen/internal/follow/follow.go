// Package follow watches objects of any resource. It evaluates the conditions that end phases, and measures the time
// that objects take from one state to another.
//
// For each resource and namespace, it opens one watch on a separate connection, which all conditions and transitions
// share. All times are the times at which events arrive on that connection.
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
	// Namespaces are the namespaces of the run, in which objects of namespaced resources are watched.
	Namespaces []string
	// Selector selects the objects of the run among cluster-scoped objects.
	Selector string
	// Conditions are the conditions for which Wait can wait, by name.
	Conditions map[string]*condition.Condition
	// Transitions are the transitions to measure.
	Transitions []Transition
	// Later reports whether the API server may start to serve a resource during the run, for example because the run
	// creates its definition. Nil means that no resource is served later.
	Later func(resource string) bool
	// Retry is the wait after the first failed list or watch. It doubles up to 5 s. Zero means 100 ms.
	Retry time.Duration
	// Recheck is the interval at which Wait reads the state from the API server again, while the watched state may be
	// older than the call of Wait. Zero means 2 s.
	Recheck time.Duration
	// Stalls measures the times in which the generator did not run. If nil, these times are unknown.
	Stalls *stall.Meter
}

// Follower watches the objects of conditions and transitions. It is safe for concurrent use. A nil Follower watches
// nothing.
type Follower struct {
	options Options
	http    *http.Client
	rest    *rest.RESTClient

	mu       sync.Mutex
	sets     map[condition.Set]*set
	awaited  map[string]awaited // by name of the condition
	passages []*passage
	waits    map[*wait]bool
	ended    error         // why Run ended; nil while it runs
	ready    chan struct{} // closed when all sets have been listed once, or Run has ended
	isReady  bool
}

// set is the state of the objects of one condition.Set.
type set struct {
	of      condition.Set
	counts  []condition.Count // the counts of all conditions over the set
	counter *condition.Counter
	// passages are the transitions of the objects in the set. endpoints are the transitions of Services that the
	// EndpointSlices in the set complete.
	passages, endpoints []*passage
	sources             []*source // nil until their paths are known from discovery
	absent              bool      // the API server does not serve the resource yet
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

// Run watches objects until ctx ends. It continues after lost connections and expired resourceVersions. It returns an
// error if the API server does not serve a resource, or does not allow this client to watch it.
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

// change calls apply, which changes the state, and ends the waits whose conditions then hold.
func (f *Follower) change(apply func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	apply()
	f.wake()
}

// BeginPhase sets the current phase. An object belongs to the phase in which it reached the first state of a transition.
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

// Results returns the results of all transitions by phase. The key "" holds the results from before the first phase.
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
