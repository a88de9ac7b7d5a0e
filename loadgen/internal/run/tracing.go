package run

import (
	"context"
	"crypto/rand"
	"net"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/internal/spans/otlp"
)

// tracing receives the spans of the run's control plane and keeps traces. A nil *tracing does nothing.
type tracing struct {
	share    float64
	tracer   *spans.Tracer
	receiver *otlp.Receiver
	config   control.Tracing
}

// startTracing starts a receiver of spans on the loopback device, if the scenario traces requests.
func startTracing(o Options, started *undo) (*tracing, error) {
	share := o.Scenario.Traced()
	switch {
	case share == 0:
		return nil, nil
	case o.Workers.Count > 0:
		return nil, exitcode.Usagef("tracing.sample: workers cannot trace requests (run without workers, or without --trace)")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, exitcode.Environmentf("the receiver of spans: %w", err)
	}
	t := &tracing{share: share, tracer: spans.NewTracer(spans.Limits{}, share, uint64(o.Scenario.Seed))}
	t.config = control.Tracing{Endpoint: l.Addr().String(), Token: rand.Text(), SamplingRatePerMillion: int(share * 1e6)}
	t.receiver = otlp.New(otlp.Options{Token: t.config.Token, Take: t.tracer.Received})
	go func() { _ = t.receiver.Serve(l) }() // Serve ends when close is called
	started.add(t.close)
	return t, nil
}

// close stops the receiver.
func (t *tracing) close() error {
	if t != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		t.receiver.Stop(ctx)
	}
	return nil
}

// sampler returns the tracer for the loads, or nil.
func (t *tracing) sampler() *spans.Tracer {
	if t == nil {
		return nil
	}
	return t.tracer
}

// spansAfter is how long the components may hold a span before they send it: twice the interval of their batches.
const spansAfter = 2 * time.Second

// settle waits for the spans of the last requests.
func (t *tracing) settle(ctx context.Context) {
	if t == nil {
		return
	}
	select {
	case <-time.After(spansAfter):
	case <-ctx.Done():
	}
	t.tracer.Flush()
}

// save writes the traces that are kept so far to the run's directory.
func (t *tracing) save(dir string) error {
	if t == nil {
		return nil
	}
	all, index := t.tracer.Kept()
	received := t.receiver.Counts()
	index.Exports, index.Refused, index.Invalid = received.Exports, received.Refused, received.Invalid
	return exitcode.EnvironmentError(index.Write(dir, all))
}
