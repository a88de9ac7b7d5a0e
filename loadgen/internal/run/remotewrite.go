package run

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/remotewrite"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

// runLabel is the label that distinguishes the series of different runs at a receiver.
const runLabel = "run"

// receiver returns a client for the remote-write receiver, or nil if c has no URL. It does not connect.
func receiver(c remotewrite.Config) (*remotewrite.Client, error) {
	if c.URL == "" {
		return nil, nil
	}
	client, err := remotewrite.New(c)
	if err != nil {
		return nil, exitcode.Usagef("--remote-write: %w", err)
	}
	return client, nil
}

// newSender returns a sender of a recorder's samples. name is the value of the label `run` on the sent samples.
// Matchers select series; without matchers, the sender sends all series.
func newSender(client *remotewrite.Client, recorder *scrape.Recorder, name string, log func(string, ...any), matchers ...*labels.Matcher) *remotewrite.Sender {
	return remotewrite.NewSender(client, remotewrite.Options{
		Samples: recorder.Live(), Settled: recorder.Settled, From: time.Now(), Every: recorder.Interval(),
		Labels: map[string]string{runLabel: name}, Matchers: matchers, Log: log,
	})
}

// ownSeries matches the generator's own series. The user's Prometheus server already has all other series.
func ownSeries() *labels.Matcher { return archive.Equal("job", "loadgen") }

// runSending calls `run`, which runs a recorder, and sends the recorder's samples. After ctx has ended, it sends the
// remaining samples, as long as the user waits. It returns the recorder's error.
func runSending(ctx context.Context, run func(context.Context) error, s *remotewrite.Sender, hurry <-chan struct{}) error {
	if s == nil {
		return run(ctx)
	}
	recording, over := context.WithCancel(context.WithoutCancel(ctx))
	defer over()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		s.Run(recording, hurry)
	}()
	err := run(ctx)
	over()
	<-sent
	return err
}

// Run records until ctx ends, and sends the samples to the receiver, if any.
func (r *archiver) Run(ctx context.Context) error {
	return runSending(ctx, r.recorder.Run, r.sender, r.hurry)
}

// sent returns the numbers of samples that were sent and refused, or nil without a receiver.
func (r *archiver) sent() *result.RemoteWrite {
	if r.sender == nil {
		return nil
	}
	stats := r.sender.Stats()
	return &stats
}
