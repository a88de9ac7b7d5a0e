package traffic

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Outcome is how a request ended: an HTTP status, or one of the kinds of
// failure below it.
type Outcome int16

// The kinds of failure, as result.Requests.Outcomes names them.
const (
	// Other is a failure of no kind below, such as a certificate's.
	Other Outcome = -iota - 1
	// TimedOut: no whole answer within the load's timeout.
	TimedOut
	// Reset: the connection or the stream was lost before an answer's header
	// or within its body.
	Reset
	// Refused: nobody listens.
	Refused
	// Truncated: the answer ended before its end.
	Truncated
	// Canceled: given up by us, because the run ended.
	Canceled
	// Malformed: a whole answer whose body is not what was asked for.
	Malformed
	// GoAway: the server closed the connection in order (GOAWAY) and did not
	// take the request on.
	GoAway
	// Protocol: the server broke the rules of HTTP/2, or sent headers without
	// end.
	Protocol
)

// String is the key in result.Requests.Outcomes and the code label.
func (o Outcome) String() string {
	switch o {
	case TimedOut:
		return "timeout"
	case Reset:
		return "reset"
	case Refused:
		return "refused"
	case Truncated:
		return "truncated"
	case Canceled:
		return "canceled"
	case Malformed:
		return "malformed"
	case GoAway:
		return "goaway"
	case Protocol:
		return "protocol"
	case Other:
		return "other"
	}
	return strconv.Itoa(int(o))
}

// Success tells a 2xx answer.
func (o Outcome) Success() bool { return 200 <= o && o < 300 }

// failureOf is the kind of an error of a request; inBody tells that it came
// while the answer's body was read.
func failureOf(err error, inBody bool) Outcome {
	var netErr net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return TimedOut
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, io.ErrUnexpectedEOF) && inBody:
		return Truncated
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), resetByHTTP(err):
		return Reset
	case errors.As(err, &netErr) && netErr.Timeout():
		return TimedOut
	}
	return Other
}

// resetByHTTP knows the losses that net/http reports by errors it does not
// export. A stream error can be had by errors.As into a type of the same shape
// (net/http/h2_error.go); the others only by their text, as apimachinery's
// IsHTTP2ConnectionLost and IsProbableEOF have it too.
func resetByHTTP(err error) bool {
	var stream streamError
	if errors.As(err, &stream) {
		return true
	}
	text := err.Error()
	for _, lost := range []string{
		"http2: server sent GOAWAY",
		"http2: Transport received Server's graceful shutdown GOAWAY",
		"http2: client conn",
		"http: server closed idle connection",
		"http: CloseIdleConnections called",
	} {
		if strings.Contains(text, lost) {
			return true
		}
	}
	return false
}

// streamError has the shape of net/http's unexported http2StreamError.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return "stream Reset with code " + strconv.Itoa(int(e.Code)) }
