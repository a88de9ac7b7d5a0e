// Package accuracy compares the load engines' own numbers with a stub API server
// that knows what really happened. Most tests run in virtual time (see
// stubapi.Pipes), so their assertions are exact, whether the machine is busy or
// not.
package accuracy

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// gets is an operation in which each arrival reads one object. The query
// contains the arrival's number, so that the stub's record can be compared with
// the schedule.
type gets struct{ template *request.Template }

func newGets(t *testing.T, target load.Target) *gets {
	t.Helper()
	templates, err := request.NewTemplates(target)
	if err != nil {
		t.Fatal(err)
	}
	return &gets{templates.New("GET", "application/json", "", nil)}
}

func (o *gets) Kinds() []request.Kind {
	return []request.Kind{{Verb: "get", Resource: "configmaps"}}
}
func (o *gets) KindOf(int64) int              { return 0 }
func (o *gets) Prepare(context.Context) error { return nil }
func (o *gets) Background(context.Context)    {}

func (o *gets) Next(n int64, r *request.Request) bool {
	r.Template = o.template.Load()
	r.Path = strconv.AppendInt(append(r.Path, "/api/v1/namespaces/storm/configmaps/x-0?n="...), n, 10)
	return true
}

// Data accepts a 200 response if it begins like the stub's object.
func (o *gets) Data(r *request.Request, status int, p []byte) error {
	if status == 200 && len(r.Scratch) == 0 && !strings.HasPrefix(string(p), `{"apiVersion"`) {
		return fmt.Errorf("no object: %q", p)
	}
	r.Scratch = append(r.Scratch, p...)
	return nil
}

func (o *gets) Done(*request.Request, load.Outcome, time.Time) bool { return false }

// experiment is one load against one stub.
type experiment struct {
	pacer    arrival.Pacer
	length   time.Duration
	inFlight int           // default 10,000
	timeout  time.Duration // default a minute
	// policy returns the stub's policy for a load that begins at the given time.
	policy func(begin time.Time) stubapi.Policy
	pipes  bool

	begin     time.Time
	result    result.Requests
	exchanges []stubapi.Exchange
}

func newPacer(t *testing.T, arrivals string, rate float64, shape arrival.Shape) arrival.Pacer {
	t.Helper()
	p, err := arrival.NewShaped(arrivals, rate, shape, 11)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run runs the experiment. With pipes it must be called in a synctest bubble.
func (x *experiment) run(t *testing.T) {
	t.Helper()
	o := stubapi.Options{}
	if x.pipes {
		o.Listener = stubapi.NewPipes()
	}
	s, err := stubapi.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Fill("storm", "x", 1, 100, nil)
	target := load.Target{Config: s.Config(), Namespace: "storm", Seed: 1}
	l := scenario.Load{Name: "truth", MaxInFlight: x.inFlight, Timeout: scenario.Duration(x.timeout)}
	if l.MaxInFlight == 0 {
		l.MaxInFlight = 10_000
	}
	if l.Timeout == 0 {
		l.Timeout = scenario.Duration(time.Minute)
	}
	r, err := request.New(target, l, newGets(t, target), x.pacer)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.begin = time.Now()
	if x.policy != nil {
		s.SetPolicy(x.policy(x.begin))
	}
	ctx, cancel := context.WithTimeout(t.Context(), x.length)
	defer cancel()
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	all := r.Results()[""]
	if len(all) != 1 {
		t.Fatalf("got results of %d kinds", len(all))
	}
	x.result, x.exchanges = all[0], s.Exchanges()
}

// number returns the number of the arrival that a request belongs to.
func number(t *testing.T, e stubapi.Exchange) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.TrimPrefix(e.Query, "n="), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// latencies returns the true latencies from the intended starts, sorted.
func (x *experiment) latencies(t *testing.T) []time.Duration {
	t.Helper()
	var all []time.Duration
	for _, e := range x.exchanges {
		all = append(all, e.Answered.Sub(x.begin.Add(x.pacer.At(number(t, e)))))
	}
	slices.Sort(all)
	return all
}

// quantiles checks that the quantiles and the mean of a distribution differ from the true ones by at most 1%.
func quantiles(t *testing.T, what string, got result.Latency, truth []time.Duration) {
	t.Helper()
	if got.Count != int64(len(truth)) {
		t.Errorf("%s: %d latencies, in truth %d", what, got.Count, len(truth))
		return
	}
	for _, q := range []struct {
		name string
		q    float64
		got  float64
	}{{"p50", 0.5, got.P50}, {"p90", 0.9, got.P90}, {"p99", 0.99, got.P99}, {"p99.9", 0.999, got.P999}, {"max", 1, got.Max}} {
		rank := max(int(math.Ceil(q.q*float64(len(truth)))), 1)
		want := truth[rank-1].Seconds()
		if math.Abs(q.got-want) > 0.01*want {
			t.Errorf("%s: %s is %.4f s, in truth %.4f s", what, q.name, q.got, want)
		}
	}
	var sum time.Duration
	for _, d := range truth {
		sum += d
	}
	if mean := sum.Seconds() / float64(len(truth)); math.Abs(got.Mean-mean) > 0.01*mean {
		t.Errorf("%s: mean = %.4f s, want %.4f s", what, got.Mean, mean)
	}
}
