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
	// batchSamples is the maximum number of samples in a request.
	batchSamples = 5_000
	// window is the time range of the archive that a Sender reads into memory at once.
	window = 30 * time.Second
	// lookBack is the maximum age of the 0 sample of a new counter. The recorder adds this sample at the time of the
	// target's previous scrape, which may be long ago if the target was unavailable.
	lookBack = 15 * time.Minute
	// drainWithin is the default time limit for sending after the end of the recording.
	drainWithin = 30 * time.Second
)

// Options configure a Sender. Samples and Settled are required.
type Options struct {
	// Samples is the storage of the recording. The Sender reads it repeatedly while the recorder writes it.
	Samples storage.Queryable
	// Settled returns the time up to which the recording is complete. Before that time, the recorder only adds a 0 for
	// each counter that appears later (see scrape.Recorder.Settled).
	Settled func() time.Time
	// From is the time of the earliest samples to send.
	From time.Time
	// Every is the interval at which the Sender sends samples; zero means 5 s.
	Every time.Duration
	// Labels are labels to add to each series, with archive.WithLabels.
	Labels map[string]string
	// Matchers select the series to send. No matchers means all series.
	Matchers []*labels.Matcher
	// Log logs when the receiver becomes unavailable, when it is available again, and when it first rejects samples.
	// Nil means no log.
	Log func(format string, args ...any)
	// Drain is the time limit for sending after the end of the recording; zero means 30 s.
	Drain time.Duration
}

// Sender sends the samples of a recording while it is in progress.
type Sender struct {
	client *Client
	o      Options

	// done is the time, in ms, up to which the Sender has read samples from the archive into the queue.
	done  int64
	known map[uint64]bool // hashes of the series that earlier windows contain
	queue []batch         // unsent batches of the current window

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

// Stats returns the numbers of samples that were sent and rejected so far.
func (s *Sender) Stats() result.RemoteWrite {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// Run sends samples until ctx ends. It sends a sample when the recording is complete up to the sample's time
// (Options.Settled). After the end of ctx, it sends the remaining samples until Options.Drain has passed or hurry is
// closed. It counts the samples that are still unsent then.
func (s *Sender) Run(ctx context.Context, hurry <-chan struct{}) {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	over := make(chan struct{})
	var patience sync.WaitGroup
	defer patience.Wait()
	defer close(over)
	patience.Go(func() { // do not cancel a request in progress when ctx ends: the Sender would send it twice
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
			_ = s.flush(sending, s.o.Settled().UnixMilli()) // the next flush sends these samples again
		}
	}
	// The timestamp of the last scrape may be slightly ahead of the clock.
	settled := s.o.Settled().Add(time.Second).UnixMilli()
	if err := s.flush(sending, settled); err != nil {
		s.countUnsent(context.WithoutCancel(ctx), settled)
	}
}

// Send sends all samples in o.Samples up to the time `to`, for example the samples of an old run. It returns an error
// if ctx ended, the archive could not be read, or the receiver did not respond. The counts are correct in any case.
func Send(ctx context.Context, c *Client, o Options, to time.Time) (result.RemoteWrite, error) {
	s := NewSender(c, o)
	err := s.flush(ctx, to.UnixMilli())
	if err != nil {
		s.countUnsent(context.WithoutCancel(ctx), to.UnixMilli())
	}
	return s.Stats(), err
}

// flush sends all samples up to the time `to`, window by window. It returns an error if ctx ended, the archive could
// not be read, or the receiver could not be reached.
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

// read returns the samples of the next window, from done to end. For new series, it also returns earlier samples,
// because the recorder adds a 0 before the first sample of a counter.
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

// sendQueue sends the batches in the queue. It returns an error if ctx ended, or if all attempts failed. Unsent batches
// then stay in the queue.
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
			s.o.Log("remote write to %s fails; trying again: %s", s.client.URL(), oneLine(why))
		}
	})
	switch {
	case err != nil && (ctx.Err() != nil || s.client.gaveUp(retries)):
		return err
	case err != nil:
		s.refused(b.samples, err)
		return nil
	case retries > 0:
		s.o.Log("remote write to %s works again", s.client.URL())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Sent += b.samples
	return nil
}

// refused counts samples that the receiver rejected. The Sender does not send them again.
func (s *Sender) refused(samples int64, why error) {
	s.mu.Lock()
	first := s.stats.Refused == 0
	s.stats.Refused += samples
	s.mu.Unlock()
	if first {
		s.failed(why)
		s.o.Log("%s rejects samples: %s", s.client.URL(), oneLine(why))
	}
}

// failed records the first error for Stats.
func (s *Sender) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stats.Error == "" {
		s.stats.Error = oneLine(err)
	}
}

// countUnsent counts the unsent samples in the queue, and in the archive up to the time `to`.
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
