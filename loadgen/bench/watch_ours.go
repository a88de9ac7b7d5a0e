package main

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/load/watch"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// ours is the engine's watches, as a scenario makes them.
type ours struct {
	target   load.Target
	encoding string
	watches  *watch.Watches
	cancel   context.CancelFunc
	done     chan error
}

func ourWatches(encoding string) func(*stubapi.Child) (drainer, error) {
	return func(stub *stubapi.Child) (drainer, error) {
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

// fixed is the stub's object.
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
