package load

import "strconv"

// Outcome is how a request ended: an HTTP status, or a kind of failure.
type Outcome int16

// The kinds of failure, as result.Requests.Outcomes names them.
const (
	// Other is a failure of no kind below, such as a certificate's.
	Other Outcome = -iota - 1
	// TimedOut: no whole answer within the load's timeout.
	TimedOut
	// Reset: the connection or stream was lost before the end of the answer.
	Reset
	// Refused: the connection was refused.
	Refused
	// Truncated: the answer ended before its end.
	Truncated
	// Canceled: given up by us, because the run ended.
	Canceled
	// Malformed: a whole answer whose body is not what was asked for.
	Malformed
	// GoAway: the server closed the connection in order without taking on the request.
	GoAway
	// Protocol: the server broke the rules of HTTP/2, or sent headers without end.
	Protocol
)

// String is the key in result.Requests.Outcomes and the code label.
func (o Outcome) String() string {
	if o >= 0 || o < Protocol {
		return strconv.Itoa(int(o))
	}
	names := [...]string{"other", "timeout", "reset", "refused", "truncated", "canceled", "malformed", "goaway", "protocol"}
	return names[-o-1]
}

// Success tells a 2xx answer.
func (o Outcome) Success() bool { return 200 <= o && o < 300 }
