package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// BenchmarkRequests sends GETs of a ConfigMap of 1 KB, merge patches of 1 KB, and LISTs of 100 such ConfigMaps, at a
// constant rate, open loop.
func BenchmarkRequests(b *testing.B) { compareAll(b) }

func requestComparisons() []comparison {
	var all []comparison
	for _, a := range []asked{{"get", 6000, 1}, {"get", 2000, 1}, {"patch", 2000, 1}, {"list", 200, 10}} {
		all = append(all, comparison{name: fmt.Sprintf("%s/rate=%.0f", a.verb, a.perSecond), sides: []side{
			{"ours", a.against(ourRequests)},
			{"net/http", a.against(theirs(httpCalls))},
			{"client-go", a.against(theirs(typedCalls))},
			{"dynamic", a.against(theirs(dynamicCalls))},
		}})
	}
	return all
}

// listed is the number of objects in the stub. Each list returns all of them.
const listed = 100

// asked is the load of a request benchmark.
type asked struct {
	verb      string
	perSecond float64
	share     int // the benchmark sends 1/share of the job's requests
}

func (a asked) count(j job) int { return j.Requests / a.share }

// patch appends a merge patch with a payload of 1 KiB to b. The payload is different for each n.
func patch(b []byte, n int64) []byte {
	b = append(b, `{"data":{"payload":"`...)
	at := len(b)
	for range 1024 {
		b = append(b, 'x')
	}
	strconv.AppendInt(b[at:at], 1e18+n, 10) // overwrites the first digits of the payload
	return append(b, `"}}`...)
}

// requester prepares n requests of one side. send sends them and returns the number that it has sent. On a busy
// machine, the number may be lower than n, because the time of the open loop ends before the last request.
type requester func(ctx context.Context, a asked, stub *Child, n int) (send func() (int64, error), err error)

// against runs one side of a request benchmark.
func (a asked) against(side requester) func(context.Context, job) ([]figure, error) {
	return func(ctx context.Context, j job) ([]figure, error) {
		stub, err := startStub(ChildFill{N: listed, Size: 1024})
		if err != nil {
			return nil, err
		}
		defer stub.Close()
		n := a.count(j)
		warm, err := side(ctx, a, stub, n/10)
		if err != nil {
			return nil, err
		}
		if _, err := warm(); err != nil {
			return nil, err
		}
		work, err := side(ctx, a, stub, n)
		if err != nil {
			return nil, err
		}
		var sent int64
		used, err := costOf(func() (err error) {
			sent, err = work()
			return err
		})
		if err != nil {
			return nil, err
		}
		return used.per(sent, "request"), nil
	}
}

// calls maps a verb to a function that makes a call of the client. n is the number of the call.
type calls map[string]func(ctx context.Context, n int64) error

// theirs returns the side of a client-go client. Each call starts on schedule in a
// new goroutine, the usual way to build an open loop with client-go.
func theirs(client func(*Child) (calls, error)) requester {
	return func(ctx context.Context, a asked, stub *Child, n int) (func() (int64, error), error) {
		c, err := client(stub)
		if err != nil {
			return nil, err
		}
		return func() (int64, error) { return int64(n), a.openLoop(ctx, n, c[a.verb]) }, nil
	}
}

func (a asked) openLoop(ctx context.Context, n int, call func(context.Context, int64) error) error {
	var all sync.WaitGroup
	var failed atomic.Pointer[error]
	start := time.Now()
	for i := range n {
		due := start.Add(time.Duration(float64(i) / a.perSecond * float64(time.Second)))
		if !apiclient.Pause(ctx, time.Until(due)) {
			break
		}
		all.Go(func() {
			if err := call(ctx, int64(i)); err != nil {
				failed.Store(&err)
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}

func typedCalls(stub *Child) (calls, error) {
	c, err := typedClient(stub, jsonType)
	if err != nil {
		return nil, err
	}
	maps := c.CoreV1().ConfigMaps(namespace)
	get := func(ctx context.Context, name string) (*corev1.ConfigMap, error) {
		return maps.Get(ctx, name, metav1.GetOptions{})
	}
	return callsOf(get, maps.Patch, maps.List), nil
}

func dynamicCalls(stub *Child) (calls, error) {
	c, err := dynamic.NewForConfig(stub.Config())
	if err != nil {
		return nil, err
	}
	maps := c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace)
	get := func(ctx context.Context, name string) (*unstructured.Unstructured, error) {
		return maps.Get(ctx, name, metav1.GetOptions{})
	}
	return callsOf(get, maps.Patch, maps.List), nil
}

func callsOf[Object, List any](
	get func(context.Context, string) (Object, error),
	change func(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (Object, error),
	list func(context.Context, metav1.ListOptions) (List, error),
) calls {
	name := func(n int64) string { return fmt.Sprintf("%s-%d", object, n%listed) }
	return calls{
		"get": func(ctx context.Context, n int64) error {
			_, err := get(ctx, name(n))
			return err
		},
		"patch": func(ctx context.Context, n int64) error {
			_, err := change(ctx, name(n), types.MergePatchType, patch(nil, n), metav1.PatchOptions{})
			return err
		},
		"list": func(ctx context.Context, _ int64) error {
			_, err := list(ctx, metav1.ListOptions{})
			return err
		},
	}
}

func ourRequests(ctx context.Context, a asked, stub *Child, n int) (func() (int64, error), error) {
	r, err := newLoad(ctx, a, stub)
	if err != nil {
		return nil, err
	}
	return func() (sent int64, err error) {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(float64(n)/a.perSecond*float64(time.Second)))
		defer cancel()
		if err := r.Run(ctx); err != nil {
			return 0, err
		}
		for _, got := range r.Results()[""] {
			if got.Succeeded != got.Sent {
				return 0, fmt.Errorf("%d of %d succeeded: %v", got.Succeeded, got.Sent, got.Outcomes)
			}
			sent += got.Sent
		}
		if sent < int64(n)/2 {
			return 0, fmt.Errorf("%d of %d were sent: the machine is too busy", sent, n)
		}
		return sent, nil
	}, nil
}

func newLoad(ctx context.Context, a asked, stub *Child) (*request.Requests, error) {
	target := load.Target{Config: stub.Config(), Namespace: namespace, Seed: 1}
	op, err := newOperation(target, a.verb)
	if err != nil {
		return nil, err
	}
	pacer, err := arrival.New("constant", a.perSecond, 1)
	if err != nil {
		return nil, err
	}
	r, err := request.New(target, scenario.Load{Name: object, MaxInFlight: 10000, Timeout: scenario.Duration(time.Minute)}, op, pacer)
	if err != nil {
		return nil, err
	}
	return r, r.Prepare(ctx)
}

// operation requests the stub's objects in turn.
type operation struct {
	verb     string
	template *request.Template
}

func newOperation(t load.Target, verb string) (*operation, error) {
	templates, err := request.NewTemplates(t)
	if err != nil {
		return nil, err
	}
	method, content := "GET", ""
	if verb == "patch" {
		method, content = "PATCH", "application/merge-patch+json"
	}
	return &operation{verb, templates.New(method, jsonType, content, nil)}, nil
}

func (o *operation) Kinds() []request.Kind {
	return []request.Kind{{Verb: o.verb, Resource: "configmaps"}}
}
func (o *operation) KindOf(int64) int              { return 0 }
func (o *operation) Prepare(context.Context) error { return nil }
func (o *operation) Background(context.Context)    {}

func (o *operation) Next(n int64, r *request.Request) bool {
	r.Template = o.template.Load()
	r.Path = append(r.Path, "/api/v1/namespaces/"+namespace+"/configmaps"...)
	if o.verb != "list" {
		r.Path = strconv.AppendInt(append(r.Path, "/"+object+"-"...), n%listed, 10)
	}
	if o.verb == "patch" {
		r.Body = patch(r.Body, n)
	}
	return true
}

func (o *operation) Data(*request.Request, int, []byte) error            { return nil }
func (o *operation) Done(*request.Request, load.Outcome, time.Time) bool { return false }
