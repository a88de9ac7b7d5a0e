package request

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn/h2test"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// patience is how long a test waits for an event that must happen.
const patience = 30 * time.Second

func target(s *h2test.Server) load.Target {
	return load.Target{
		Config: &rest.Config{Host: "https://" + s.Addr(), TLSClientConfig: rest.TLSClientConfig{CAData: s.CA()}}, Seed: 1,
	}
}

// schedule is a pacer with the given number of arrivals and the given gap between them.
type schedule struct {
	arrivals int64
	gap      time.Duration
}

func (s schedule) At(n int64) time.Duration {
	if n >= s.arrivals {
		return arrival.Never
	}
	return time.Duration(n) * s.gap
}

func (s schedule) Due(elapsed time.Duration) int64 {
	return min(s.arrivals, int64(elapsed/max(s.gap, 1))+1)
}

// newLoad returns a load of gets with the arrivals of p, in the phase "storm".
func newLoad(t *testing.T, to load.Target, p arrival.Pacer, change func(*gets, *scenario.Load)) *Requests {
	t.Helper()
	op := newGets(to)
	l := scenario.Load{Name: "test", MaxInFlight: 1000, Timeout: scenario.Duration(patience), Connections: 1}
	if change != nil {
		change(op, &l)
	}
	r, err := New(to, l, op, p)
	if err != nil {
		t.Fatal(err)
	}
	r.BeginPhase("storm", time.Now())
	return r
}

// start runs the load until stop is called. stop waits for the end of the load and returns the results of the phase
// "storm".
func start(t *testing.T, r *Requests) (stop func() result.Requests) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	stop = func() result.Requests {
		cancel()
		select {
		case <-done:
		case <-time.After(patience):
			t.Fatal("Run did not end")
		}
		got := one(r)
		addUp(t, got)
		return got
	}
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return stop
}

// one returns the results so far of the phase "storm".
func one(r *Requests) result.Requests {
	if all := r.Results()["storm"]; len(all) > 0 {
		return all[0]
	}
	return result.Requests{}
}

// addUp checks that the counts and the times in a result add up.
func addUp(t *testing.T, r result.Requests) {
	t.Helper()
	var ended int64
	for _, n := range r.Outcomes {
		ended += n
	}
	if r.Offered != r.Sent+r.Unsent || ended != r.Sent || r.Latency.Count != r.Sent || r.Lag.Count != r.Sent || r.Connect.Count != r.Sent || r.Service.Count != r.Sent {
		t.Errorf("%+v does not add up", r)
	}
	if sum := r.Lag.Mean + r.Connect.Mean + r.Service.Mean; sum < r.Latency.Mean*0.999-1e-6 || sum > r.Latency.Mean*1.001+1e-6 {
		t.Errorf("lag %v + connect %v + service %v s = latency %v s?", r.Lag.Mean, r.Connect.Mean, r.Service.Mean, r.Latency.Mean)
	}
}

// all runs a load until every arrival of its schedule has ended.
func all(t *testing.T, r *Requests, arrivals int64) result.Requests {
	t.Helper()
	stop := start(t, r)
	h2test.Await(t, "all arrivals to end", func() bool { got := one(r); return got.Unsent+got.Latency.Count == arrivals })
	return stop()
}

// gets is an operation that reads one object. Its hooks data, done and next may be nil.
type gets struct {
	template *Template
	err      error // error of NewTemplates, which Prepare returns
	data     func(status int, p []byte) error
	done     func(r *Request, o load.Outcome) bool
	next     func(n int64, r *Request) bool
}

func newGets(t load.Target) *gets {
	templates, err := NewTemplates(t)
	if err != nil {
		return &gets{err: err}
	}
	return &gets{template: templates.New("GET", "application/json", "", nil)}
}

func (o *gets) Kinds() []Kind                 { return []Kind{{Verb: "get", Resource: "configmaps"}} }
func (o *gets) Prepare(context.Context) error { return o.err }
func (o *gets) Background(context.Context)    {}
func (o *gets) KindOf(int64) int              { return 0 }

func (o *gets) Next(n int64, r *Request) bool {
	r.Template = o.template.Load()
	r.Path = append(r.Path, "/api/v1/namespaces/storm/configmaps/one"...)
	return o.next == nil || o.next(n, r)
}

func (o *gets) Data(_ *Request, status int, p []byte) error {
	if o.data == nil {
		return nil
	}
	return o.data(status, p)
}

func (o *gets) Done(r *Request, outcome load.Outcome, _ time.Time) bool {
	return o.done != nil && o.done(r, outcome)
}
