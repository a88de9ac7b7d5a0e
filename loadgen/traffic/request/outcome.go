package request

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/stormglass/stormglass/loadgen/h2conn"
	"github.com/stormglass/stormglass/loadgen/traffic"
)

// errTimeout ends a request that had no whole answer within its timeout.
var errTimeout = errors.New("timeout")

// OutcomeOf is the kind of an error of package h2conn, with which a request
// ended.
func OutcomeOf(err error) traffic.Outcome {
	var (
		reset    *h2conn.ResetError
		lost     *h2conn.LostError
		protocol *h2conn.ProtocolError
		netErr   net.Error
	)
	switch {
	case errors.Is(err, errTimeout), errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return traffic.TimedOut
	case errors.Is(err, h2conn.ErrClosed), errors.Is(err, context.Canceled):
		return traffic.Canceled
	case errors.Is(err, h2conn.ErrGoAway):
		return traffic.GoAway
	case errors.Is(err, h2conn.ErrTruncated):
		return traffic.Truncated
	case errors.As(err, &protocol):
		return traffic.Protocol
	case errors.Is(err, syscall.ECONNREFUSED):
		return traffic.Refused
	case errors.As(err, &reset), errors.As(err, &lost), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return traffic.Reset
	case errors.As(err, &netErr) && netErr.Timeout():
		return traffic.TimedOut
	}
	return traffic.Other
}
