package history

import (
	"context"
	"testing"
	"time"
)

// After an interrupt, the check of the history takes at most 5 s.
func TestInterruptShortensCheck(t *testing.T) {
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, c := range []struct {
		ctx           context.Context
		allowed, want time.Duration
	}{
		{t.Context(), time.Minute, time.Minute}, {interrupted, time.Minute, 5 * time.Second}, {interrupted, time.Second, time.Second},
	} {
		if got := judgeWithin(c.ctx, Config{JudgeWithin: c.allowed}); got != c.want {
			t.Errorf("interrupted: %v, of %s: judged for %s, want %s", c.ctx.Err() != nil, c.allowed, got, c.want)
		}
	}
}
