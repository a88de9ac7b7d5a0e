package load

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
)

// ErrTimeout ends a request that had no whole answer within its timeout.
var ErrTimeout = errors.New("timeout")

// OutcomeOf is the kind of an error of package h2conn.
func OutcomeOf(err error) Outcome {
	var (
		reset    *h2conn.ResetError
		lost     *h2conn.LostError
		protocol *h2conn.ProtocolError
		netErr   net.Error
	)
	switch {
	case errors.Is(err, ErrTimeout), errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return TimedOut
	case errors.Is(err, h2conn.ErrClosed), errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, h2conn.ErrGoAway):
		return GoAway
	case errors.Is(err, h2conn.ErrTruncated):
		return Truncated
	case errors.As(err, &protocol):
		return Protocol
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.As(err, &reset), errors.As(err, &lost), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Reset
	case errors.As(err, &netErr) && netErr.Timeout():
		return TimedOut
	}
	return Other
}
