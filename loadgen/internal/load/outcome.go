package load

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
)

// Outcome is the result of a request: an HTTP status, or a kind of failure.
type Outcome int16

// Kinds of failures. The method String returns their keys in result.Requests.Outcomes.
const (
	// Other is any failure that is not one of the kinds below, such as an invalid certificate.
	Other Outcome = -iota - 1
	// TimedOut means that no complete response arrived within the load's timeout.
	TimedOut
	// Reset means that the connection or stream was lost before the response was complete.
	Reset
	// Refused means that the server refused the connection.
	Refused
	// Truncated means that the server ended the stream before the response was complete, without an HTTP/2 error.
	Truncated
	// Canceled means that the client gave up because the run ended.
	Canceled
	// Malformed means that the response was complete but its body does not match the request.
	Malformed
	// GoAway means that the server closed the connection with GOAWAY and did not accept the request.
	GoAway
	// Protocol means that the server violated HTTP/2, or exceeded a limit of the client, such as the size of headers.
	Protocol
)

// String returns the outcome's key in result.Requests.Outcomes. The metrics use it as the value of the label "code".
func (o Outcome) String() string {
	if o >= 0 || o < Protocol {
		return strconv.Itoa(int(o))
	}
	names := [...]string{"other", "timeout", "reset", "refused", "truncated", "canceled", "malformed", "goaway", "protocol"}
	return names[-o-1]
}

// Success reports whether the response was 2xx.
func (o Outcome) Success() bool { return 200 <= o && o < 300 }

// ErrTimeout is the error of a request that had no complete response within its timeout.
var ErrTimeout = errors.New("timeout")

// ErrMalformed is the error of a request whose response is complete but does not match the request.
var ErrMalformed = errors.New("malformed response")

// OutcomeOf returns the outcome for an error of package h2conn or of a Caller.
func OutcomeOf(err error) Outcome {
	var netErr net.Error
	switch {
	case errors.Is(err, ErrTimeout), errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return TimedOut
	case errors.Is(err, h2conn.ErrClosed), errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, ErrMalformed):
		return Malformed
	case errors.Is(err, h2conn.ErrGoAway):
		return GoAway
	case errors.Is(err, h2conn.ErrTruncated):
		return Truncated
	case errors.As(err, new(*h2conn.ProtocolError)):
		return Protocol
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.As(err, new(*h2conn.ResetError)), errors.As(err, new(*h2conn.LostError)), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Reset
	case errors.As(err, &netErr) && netErr.Timeout():
		return TimedOut
	}
	return Other
}
