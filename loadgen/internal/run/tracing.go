package run

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/internal/spans/otlp"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// tracing traces requests of a run. It gets spans from a receiver, a file or both, and keeps traces. A nil *tracing does
// nothing.
type tracing struct {
	tracer   *spans.Tracer
	receiver *otlp.Receiver     // receiver of spans; nil if the run receives none
	config   control.SpanExport // how a bundled control plane reaches the receiver
	file     *spans.Tail        // reader of spans from a file; nil if the run reads none
	late     time.Duration      // maximum time from the end of a span until it arrives

	mu        sync.Mutex // held during reads of the file and saves of the traces
	fileError error      // error that ended the reads of the file
}

// How long components and a collector may hold a span before they send or write it. Components of the bundled control
// plane send their spans every second. By default, other components send them every 5 s, and a collector writes them
// every second.
const (
	lateSpans     = 2 * time.Second
	lateUserSpans = 8 * time.Second
)

// startTracing opens the sources of spans, if the scenario traces requests. The options have passed checkTracing.
func startTracing(o Options, c console, started *undo) (*tracing, error) {
	share := traced(o.Scenario)
	if share == 0 {
		return nil, nil
	}
	t := &tracing{late: lateSpans}
	if !o.startsPlane() {
		t.late = lateUserSpans
	}
	t.tracer = spans.NewTracer(spans.Limits{Settle: t.late + time.Second}, share, uint64(o.Scenario.Seed))
	started.add(t.close)
	if o.startsPlane() {
		var err error
		t.config.Token, t.config.SamplingRatePerMillion = rand.Text(), int(share*1e6)
		t.config.Endpoint, err = t.listen("127.0.0.1:0", otlp.Options{Token: t.config.Token})
		return t, err
	}
	return t, t.follow(o.Spans, c)
}

// follow opens the file, and starts the receiver, for the spans of a user's cluster.
func (t *tracing) follow(s SpanSources, c console) (err error) {
	if s.File != "" {
		if t.file, err = spans.OpenTail(s.File); err != nil {
			return exitcode.Usagef("--trace-file %s: %w", s.File, err)
		}
	}
	if s.Listen == "" {
		return nil
	}
	credentials, err := s.receiver()
	if err != nil {
		return err
	}
	addr, err := t.listen(s.Listen, credentials)
	if err == nil {
		c.step("receiving spans at %s", addr)
	}
	return err
}

// listen starts the receiver and returns its address.
func (t *tracing) listen(addr string, o otlp.Options) (string, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", exitcode.Environmentf("the receiver of spans: %w", err)
	}
	o.Take = t.tracer.Received
	t.receiver = otlp.New(o)
	go func() { _ = t.receiver.Serve(l) }() // Serve ends when close is called
	return l.Addr().String(), nil
}

// close closes the sources of spans.
func (t *tracing) close() error {
	if t == nil {
		return nil
	}
	if t.receiver != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		t.receiver.Stop(ctx)
	}
	if t.file != nil {
		return t.file.Close()
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

// Intervals of tracing.run. It reads the file at each followInterval, and saves traces after every saveEvery reads.
const (
	followInterval = time.Second
	saveEvery      = 10
)

// run reads the file while spans are appended to it, and saves the traces to the directory of the run, so that a killed
// run has them. It returns when ctx ends.
func (t *tracing) run(ctx context.Context, dir string) error {
	if t == nil {
		return nil
	}
	tick := time.NewTicker(followInterval)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		t.read(ctx)
		t.tracer.Settle(time.Now())
		if n%saveEvery == 0 {
			if err := t.save(dir); err != nil {
				return err
			}
		}
	}
}

// read takes the spans that were appended to the file since the last call.
func (t *tracing) read(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file != nil && t.fileError == nil && ctx.Err() == nil {
		t.fileError = t.file.Read(ctx, func(s spans.Span) { t.tracer.Received(s, time.Now()) })
	}
}

// settle waits until the spans of the last requests have arrived.
func (t *tracing) settle(ctx context.Context) {
	if t == nil {
		return
	}
	wait := t.late
	if deadline, ok := ctx.Deadline(); ok { // keep time for the file
		wait = min(wait, time.Until(deadline)/2)
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
	t.read(ctx)
	t.tracer.Flush()
}

// warnings says which spans the run could not read, and whether it received none. The caller calls it after run has
// returned.
func (t *tracing) warnings() (all []string) {
	if t == nil {
		return nil
	}
	if t.file != nil {
		c := t.file.Counts()
		for _, lack := range []struct {
			n    int
			what string
		}{{c.Broken, "%d lines are not OTLP/JSON or are too long"}, {c.Partial, "%d lines are incomplete"}} {
			if lack.n > 0 {
				all = append(all, fmt.Sprintf("--trace-file: "+lack.what, lack.n))
			}
		}
		if t.fileError != nil {
			all = append(all, fmt.Sprintf("--trace-file: %v", t.fileError))
		}
	}
	if _, index := t.tracer.Kept(); index.Requests > 0 && index.Spans == 0 {
		all = append(all, fmt.Sprintf("--trace: %d requests were traced, but no spans arrived (API servers of your own cluster trace the load only if their samplingRatePerMillion is greater than 0)", index.Requests))
	}
	return all
}

// save writes the traces kept so far to the run's directory.
func (t *tracing) save(dir string) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all, index := t.tracer.Kept()
	if t.receiver != nil {
		c := t.receiver.Counts()
		index.Exports, index.Refused, index.Invalid = c.Exports, c.Refused, c.Invalid
	}
	if t.file != nil {
		index.Invalid += int64(t.file.Counts().Invalid)
	}
	return exitcode.EnvironmentError(index.Write(dir, all))
}

// traced returns the fraction of the requests to trace, 0 to 1. Zero means that the run traces no requests.
func traced(s *scenario.Scenario) float64 {
	if s.Tracing.Sample == nil {
		return 0
	}
	return s.Tracing.Sample.Value
}
