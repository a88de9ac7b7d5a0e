package realplane

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/load/object"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const runLabel = "stormglass.dev/run"

// target returns the shared plane, with a separate namespace for the test.
func target(t *testing.T, name string) (load.Target, *kubernetes.Clientset) {
	t.Helper()
	config := loadConfig(t)
	client := kubernetes.NewForConfigOrDie(rest.CopyConfig(config))
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}}
	own, err := client.CoreV1().Namespaces().Create(t.Context(), own, metav1.CreateOptions{})
	must(t, err)
	return load.Target{Config: config, Namespace: own.Name, Labels: map[string]string{runLabel: "test"}, Seed: 1}, client
}

// newLoad returns a load with the defaults that a scenario's loader sets.
func newLoad(name string, change func(*scenario.Load)) scenario.Load {
	l := scenario.Load{
		Name: name, Kind: "requests", MaxInFlight: 1000, Timeout: scenario.Duration(time.Minute), Connections: 2,
		Objects: 5, Namespaces: 1, Spread: "even", Size: 1 << 10,
	}
	change(&l)
	defaults(&l.Operation)
	for i := range l.Mix {
		defaults(&l.Mix[i])
	}
	return l
}

func defaults(o *scenario.Operation) {
	for field, value := range map[*string]string{&o.Resource: "configmaps", &o.Form: "object", &o.Encoding: "json", &o.Scope: "namespace"} {
		if *field == "" {
			*field = value
		}
	}
	if o.Weight == 0 {
		o.Weight = 1
	}
}

// exchange is a request that an arrival sent, and its response.
type exchange struct {
	n       int64
	kind    request.Kind
	path    string
	outcome load.Outcome
	body    []byte
}

// into decodes the response into o.
func (e *exchange) into(t *testing.T, o any) {
	t.Helper()
	if err := json.Unmarshal(e.body, o); err != nil {
		t.Fatalf("%s: %v: %.300s", e.path, err, e.body)
	}
}

// recorder is an operation that records its requests and responses.
type recorder struct {
	request.Operation
	mu     sync.Mutex
	bodies map[*request.Request][]byte
	all    []exchange
	left   int
	done   chan struct{}
}

// Next also counts arrivals that send no request as ended.
func (r *recorder) Next(n int64, q *request.Request) bool {
	if r.Operation.Next(n, q) {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end()
	return false
}

// end counts an arrival as ended. The caller holds mu.
func (r *recorder) end() {
	if r.left--; r.left == 0 {
		close(r.done)
	}
}

func (r *recorder) Data(q *request.Request, status int, p []byte) error {
	r.mu.Lock()
	r.bodies[q] = append(r.bodies[q], p...)
	r.mu.Unlock()
	return r.Operation.Data(q, status, p)
}

func (r *recorder) Done(q *request.Request, o load.Outcome, end time.Time) bool {
	e := exchange{q.N, r.Kinds()[q.Kind], string(q.Path), o, nil}
	if o.Success() && r.Operation.Data(q, int(o), nil) != nil {
		e.outcome = load.Malformed
	}
	again := r.Operation.Done(q, e.outcome, end)
	r.mu.Lock()
	defer r.mu.Unlock()
	e.body = r.bodies[q]
	delete(r.bodies, q)
	r.all = append(r.all, e)
	if !again {
		r.end()
	}
	return again
}

// arrivals is a schedule with a number of arrivals, one every 5 ms.
type arrivals int64

func (a arrivals) At(n int64) time.Duration {
	if n >= int64(a) {
		return arrival.Never
	}
	return time.Duration(n) * 5 * time.Millisecond
}

func (a arrivals) Due(elapsed time.Duration) int64 {
	return min(int64(elapsed/(5*time.Millisecond))+1, int64(a))
}

// run makes n arrivals of a load and returns all their requests with the responses.
func run(t *testing.T, to load.Target, l scenario.Load, n int) []exchange {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	op, err := object.NewOperation(to, l)
	must(t, err)
	r := &recorder{Operation: op, bodies: map[*request.Request][]byte{}, left: n, done: make(chan struct{})}
	requests, err := request.New(to, l, r, arrivals(n))
	must(t, err)
	must(t, requests.Prepare(ctx))
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- requests.Run(running) }()
	select {
	case <-r.done:
	case <-ctx.Done():
		t.Errorf("%d of %d arrivals have not ended", r.left, n)
	}
	stop()
	must(t, <-ended)
	return r.all
}

// succeeded fails the test for each response that is not a success.
func succeeded(t *testing.T, all []exchange) {
	t.Helper()
	for _, e := range all {
		if !e.outcome.Success() {
			t.Fatalf("%s %s: %v: %.500s", e.kind.Verb, e.path, e.outcome, e.body)
		}
	}
}
