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

// outcome is how a request ended: an HTTP status, or one of the kinds of
// failure below it.
type outcome int16

// The kinds of failure, as result.Requests.Outcomes names them.
const (
	// other is a failure of no kind below: a protocol error, a certificate.
	other outcome = -iota - 1
	// timedOut: no whole answer within the load's timeout.
	timedOut
	// reset: the connection or the stream was lost before an answer's header
	// or within its body, or the server went away (GOAWAY).
	reset
	// refused: nobody listens.
	refused
	// truncated: the answer ended before its end.
	truncated
	// canceled: given up by us, because the run ended.
	canceled
)

// String is the key in result.Requests.Outcomes and the code label.
func (o outcome) String() string {
	switch o {
	case timedOut:
		return "timeout"
	case reset:
		return "reset"
	case refused:
		return "refused"
	case truncated:
		return "truncated"
	case canceled:
		return "canceled"
	case other:
		return "other"
	}
	return strconv.Itoa(int(o))
}

// success tells a 2xx answer.
func (o outcome) success() bool { return 200 <= o && o < 300 }

// failureOf is the kind of an error of a request; inBody tells that it came
// while the answer's body was read.
func failureOf(err error, inBody bool) outcome {
	var netErr net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return canceled
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return timedOut
	case errors.Is(err, syscall.ECONNREFUSED):
		return refused
	case errors.Is(err, io.ErrUnexpectedEOF) && inBody:
		return truncated
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), resetByHTTP(err):
		return reset
	case errors.As(err, &netErr) && netErr.Timeout():
		return timedOut
	}
	return other
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

func (e streamError) Error() string { return "stream reset with code " + strconv.Itoa(int(e.Code)) }
