package remotewrite

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Send sends all samples in o.Samples up to the time to, for example the samples of an old run. It returns an error if
// ctx ended, the archive could not be read, or the receiver did not answer. The counts are correct in any case.
func Send(ctx context.Context, c *Client, o Options, to time.Time) (result.RemoteWrite, error) {
	s := NewSender(c, o)
	err := s.flush(ctx, to.UnixMilli())
	if err != nil {
		s.countUnsent(context.WithoutCancel(ctx), to.UnixMilli())
	}
	return s.Stats(), err
}
