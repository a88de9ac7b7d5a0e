package remotewrite

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	// batchSamples is how many samples a request holds at most.
	batchSamples = 5_000
	// window is the longest stretch of the archive that is in memory.
	window = 30 * time.Second
	// lookBack is how far before what was sent the zero of a new counter may lie: at the last
	// scrape of its target, which may have been away.
	lookBack = 15 * time.Minute
	// drainWithin bounds what is sent after the end of the recording.
	drainWithin = 30 * time.Second
)

// Options of a Sender. Samples and Settled are needed.
type Options struct {
	// Samples are read again and again while they are recorded.
	Samples storage.Queryable
	// Settled returns a time up to which no sample is added any more, except the zeros that
	// the recorder puts before new counters.
	Settled func() time.Time
	// From is the time of the first sample, at the earliest.
	From time.Time
	// Every is how often samples are sent; zero means 5 s.
	Every time.Duration
	// Labels are added to each series, as archive.WithLabels does.
	Labels map[string]string
	// Matchers select series; none means all.
	Matchers []*labels.Matcher
	// Log takes a line when the receiver goes away, when it is back, and when it refuses
	// samples for the first time. Nil means silence.
	Log func(format string, args ...any)
	// Drain bounds what is sent after the end; zero means 30 s.
	Drain time.Duration
}

// Sender sends the samples of a recording in progress.
type Sender struct {
	client *Client
	o      Options

	// done is the time, in ms, up to which all samples are in the queue or were before.
	done  int64
	known map[uint64]bool // series that were sent, by their hash
	queue []batch         // of one window, the next to send first

	mu    sync.Mutex
	stats result.RemoteWrite
}

// NewSender returns a Sender. It sends nothing before Run.
func NewSender(c *Client, o Options) *Sender {
	if o.Every == 0 {
		o.Every = 5 * time.Second
	}
	if o.Drain == 0 {
		o.Drain = drainWithin
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if len(o.Matchers) == 0 {
		o.Matchers = []*labels.Matcher{archive.Named()}
	}
	return &Sender{client: c, o: o, done: o.From.UnixMilli() - 1, known: map[uint64]bool{}, stats: result.RemoteWrite{URL: c.URL()}}
}

// Stats counts the samples so far.
func (s *Sender) Stats() result.RemoteWrite {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// Run sends samples as they settle until ctx ends, which means that the recording is over,
// and then the rest, for a bounded time or until hurry is closed. What it could not send is
// counted.
func (s *Sender) Run(ctx context.Context, hurry <-chan struct{}) {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	over := make(chan struct{})
	var patience sync.WaitGroup
	defer patience.Wait()
	defer close(over)
	patience.Go(func() { // a request under way at the end is not cut off: it would be sent twice
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		limit := time.NewTimer(s.o.Drain)
		defer limit.Stop()
		select {
		case <-over:
		case <-limit.C:
		case <-hurry:
		}
		stop()
	})
	tick := time.NewTicker(s.o.Every)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			s.flush(sending, s.o.Settled().UnixMilli())
		}
	}
	// A last scrape may be stamped a moment ahead.
	settled := s.o.Settled().Add(time.Second).UnixMilli()
	if err := s.flush(sending, settled); err != nil {
		s.countUnsent(context.WithoutCancel(ctx), settled)
	}
}

// flush sends all samples up to a time, a window after another. An error is the context's,
// or one of reading the archive.
func (s *Sender) flush(ctx context.Context, to int64) error {
	for {
		if err := s.sendQueue(ctx); err != nil {
			return err
		}
		if s.done >= to {
			return nil
		}
		end := min(to, s.done+window.Milliseconds())
		queue, err := s.read(ctx, end)
		if err != nil {
			s.failed(err)
			return err
		}
		s.queue, s.done = queue, end
	}
}

// read returns the samples of the window after done, and those before it of series that
// are new: the recorder puts a zero before a counter's first sample.
func (s *Sender) read(ctx context.Context, end int64) ([]batch, error) {
	b := builder{more: s.o.Labels}
	born := map[uint64]bool{}
	old := func(l labels.Labels) bool {
		id := l.Hash()
		if !s.known[id] {
			born[id] = true
		}
		return s.known[id]
	}
	err := archive.StreamSome(ctx, s.o.Samples, s.done+1, end, old, b.add, s.o.Matchers...)
	if err != nil || len(born) == 0 {
		return b.batches(), err
	}
	young := func(l labels.Labels) bool { return born[l.Hash()] }
	from := max(s.o.From.UnixMilli(), s.done-lookBack.Milliseconds())
	if err = archive.StreamSome(ctx, s.o.Samples, from, end, young, b.add, s.o.Matchers...); err == nil {
		maps.Copy(s.known, born)
	}
	return b.batches(), err
}

// sendQueue sends the batches of the queue. An error means that ctx has ended, or that the
// receiver stayed away for all attempts; the batches from then on stay in the queue.
func (s *Sender) sendQueue(ctx context.Context) error {
	for len(s.queue) > 0 {
		if err := s.send(ctx, s.queue[0]); err != nil {
			return err
		}
		s.queue = s.queue[1:]
	}
	return nil
}

func (s *Sender) send(ctx context.Context, b batch) error {
	retries := 0
	err := s.client.write(ctx, b, func(why error) {
		if retries++; retries == 1 {
			s.o.Log("remote write to %s fails and is tried again: %s", s.client.URL(), oneLine(why))
		}
	})
	switch {
	case err != nil && (ctx.Err() != nil || s.client.gaveUp(retries)):
		return err
	case err != nil:
		s.refused(b.samples, err)
		return nil
	case retries > 0:
		s.o.Log("remote write to %s is back", s.client.URL())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Sent += b.samples
	return nil
}

// refused counts samples that the receiver does not want. They are not sent again.
func (s *Sender) refused(samples int64, why error) {
	s.mu.Lock()
	first := s.stats.Refused == 0
	s.stats.Refused += samples
	s.mu.Unlock()
	if first {
		s.failed(why)
		s.o.Log("%s refuses samples: %s", s.client.URL(), oneLine(why))
	}
}

// failed notes the first error.
func (s *Sender) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stats.Error == "" {
		s.stats.Error = oneLine(err)
	}
}

// countUnsent counts the unsent samples in the queue and in the archive.
func (s *Sender) countUnsent(ctx context.Context, to int64) {
	var left int64
	first := to
	for _, b := range s.queue {
		left, first = left+b.samples, min(first, b.first)
	}
	err := archive.Stream(ctx, s.o.Samples, s.done+1, to, func(_ labels.Labels, points []promql.FPoint) error {
		left, first = left+int64(len(points)), min(first, points[0].T)
		return nil
	}, s.o.Matchers...)
	if err != nil {
		s.failed(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Unsent = left
	if left > 0 {
		s.stats.UnsentFrom = time.UnixMilli(first).UTC()
	}
}
