package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/load/watch"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	namespace = "storm"
	object    = "bench" // prefix of the names of the stub's objects
	eventSize = 1200    // bytes of payload; with metadata, an event has 1.5 KB
	// perSecond is the number of writes per second. It is so low that no side can save work by handling several events
	// at once.
	perSecond = 20
)

// BenchmarkWatch opens watches of one ConfigMap, which is written 20 times a second. Each event has 1.5 KB.
func BenchmarkWatch(b *testing.B) { compareAll(b) }

func watchComparisons() []comparison {
	return []comparison{{
		name: "json",
		sides: []side{
			{"ours", drain(ourWatches("json"))},
			{"net/http", drain(newHTTPWatches)},
			{"client-go", drain(typedWatch(jsonType))},
			{"informer", drain(newInformers)},
		},
	}, {
		name: "protobuf",
		sides: []side{
			{"ours", drain(ourWatches("protobuf"))},
			{"client-go", drain(typedWatch(protobufType))},
		},
	}}
}

type drainer interface {
	// open opens n watches; it may return before they are established.
	open(ctx context.Context, n int) error
	// events returns the number of delivered change events.
	events() int64
	close()
}

func drain(start func(*Child) (drainer, error)) func(context.Context, job) ([]figure, error) {
	return func(ctx context.Context, j job) ([]figure, error) {
		fill := ChildFill{N: 1, Size: eventSize, Labels: map[string]string{"stormglass.dev/load": object}}
		stub, err := startStub(fill)
		if err != nil {
			return nil, err
		}
		defer stub.Close()
		d, err := start(stub)
		if err != nil {
			return nil, err
		}
		defer d.close()
		empty, err := memoryNow()
		if err != nil {
			return nil, err
		}
		opened, err := costOf(func() error {
			if err := d.open(ctx, j.Watches); err != nil {
				return err
			}
			return await(ctx, func() (bool, error) {
				c, err := stub.Cost()
				return c.Watches >= j.Watches, err
			})
		})
		if err != nil {
			return nil, fmt.Errorf("open the watches: %w", err)
		}
		before := d.events()
		round := func(writes int) error {
			want := d.events() + int64(writes)*int64(j.Watches)
			storm := ChildStorm{Namespace: namespace, Prefix: object, Objects: 1, Writes: writes, PerSecond: perSecond}
			if err := stub.Storm(storm); err != nil {
				return err
			}
			return await(ctx, func() (bool, error) { return d.events() >= want, nil })
		}
		if err := round(2); err != nil { // now buffers and stacks have grown
			return nil, fmt.Errorf("first events: %w", err)
		}
		full, err := memoryNow()
		if err != nil {
			return nil, err
		}
		sent, err := stub.Cost()
		if err != nil {
			return nil, err
		}
		used, err := costOf(func() error { return round(j.Writes) })
		if err != nil {
			return nil, fmt.Errorf("events: %w", err)
		}
		served, err := stub.Cost()
		if err != nil {
			return nil, err
		}
		descriptors, err := descriptorsNow()
		if err != nil {
			return nil, err
		}
		if got, want := d.events()-before, int64(j.Writes+2)*int64(j.Watches); got != want {
			return nil, fmt.Errorf("%d events of %d", got, want)
		}
		figures := used.per(int64(j.Writes)*int64(j.Watches), "event")
		figures = append(figures, full.per(empty, j.Watches, "watch")...)
		figures = append(figures,
			figure{"wire-B/event", float64(served.Sent-sent.Sent) / float64(j.Writes*j.Watches)},
			figure{"descriptors", descriptors})
		return append(figures, opened.per(int64(j.Watches), "watch-opened")...), nil
	}
}

// await checks ok every 50 ms until it returns true, for at most two minutes.
func await(ctx context.Context, ok func() (bool, error)) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) { return ok() })
}

// ours opens watches with the load engine, as a scenario does.
type ours struct {
	target   load.Target
	encoding string
	watches  *watch.Watches
	cancel   context.CancelFunc
	done     chan error
}

func ourWatches(encoding string) func(*Child) (drainer, error) {
	return func(stub *Child) (drainer, error) {
		t := load.Target{Config: stub.Config(), Namespace: namespace, Seed: 1}
		return &ours{target: t, encoding: encoding, cancel: func() {}, done: make(chan error, 1)}, nil
	}
}

const phase = "bench"

func (o *ours) open(ctx context.Context, n int) error {
	l := scenario.Load{Name: object, Kind: "watches", Count: n, Rate: 1000, Arrival: "constant", Connect: "shared", Start: "list"}
	l.Resource, l.Encoding, l.Form, l.Objects = "configmaps", o.encoding, "object", 1
	pacer, err := arrival.New(l.Arrival, float64(l.Rate), 1)
	if err != nil {
		return err
	}
	if o.watches, err = watch.New(o.target, l, pacer, fixed{}); err != nil {
		return err
	}
	if err := o.watches.Prepare(ctx); err != nil {
		return err
	}
	o.watches.BeginPhase(phase, time.Now())
	ctx, o.cancel = context.WithCancel(ctx)
	go func() { o.done <- o.watches.Run(ctx) }()
	return nil
}

func (o *ours) events() int64 {
	if o.watches == nil {
		return 0
	}
	r := o.watches.Results()[phase]
	return r.Events - r.Bookmarks
}

func (o *ours) close() {
	o.cancel()
	if o.watches != nil {
		<-o.done
	}
}

type fixed struct{}

func (fixed) Prepare(context.Context) error { return nil }
func (fixed) Len() int                      { return 1 }
func (fixed) Collection() string            { return "/api/v1/namespaces/" + namespace + "/configmaps" }

func (f fixed) AppendPath(b []byte, _ int) []byte {
	return append(b, f.Collection()+"/"+object+"-0"...)
}

func (fixed) AppendPatch(b []byte, _ int, _ int64, key string, value []byte) []byte {
	b = append(b, `{"metadata":{"annotations":{"`...)
	b = append(append(b, key...), `":"`...)
	return append(append(b, value...), `"}}}`...)
}
