package remotewrite

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Send sends what o.Samples has up to a time, as of an old run. An error means that ctx has
// ended or that the receiver stayed away; the counts are right in any case.
func Send(ctx context.Context, c *Client, o Options, to time.Time) (result.RemoteWrite, error) {
	s := NewSender(c, o)
	err := s.flush(ctx, to.UnixMilli())
	if err != nil {
		s.countUnsent(context.WithoutCancel(ctx), to.UnixMilli())
	}
	return s.Stats(), err
}
