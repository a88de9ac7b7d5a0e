package h2conn

import (
	"errors"
	"fmt"

	"golang.org/x/net/http2"
)

// ErrClosed and ErrGoAway mean that a connection accepts no more streams. The caller may send the request on another
// connection.
var (
	ErrClosed = errors.New("connection closed")
	ErrGoAway = errors.New("the server is closing the connection (GOAWAY)")
)

// ErrNoHTTP2 means that the server accepts TLS connections but does not offer HTTP/2.
var ErrNoHTTP2 = errors.New("does not offer HTTP/2")

// ErrBusy means that all streams that the server allows are in use. Only functions that do not wait for a free stream
// return it.
var ErrBusy = errors.New("no free stream")

// errNoPong means that the server did not answer a PING in time, see Options.Ping.
var errNoPong = errors.New("the server did not answer a PING for 15 s")

// ErrTruncated means that a response ended with fewer bytes than its content-length.
var ErrTruncated = errors.New("the response ended before its content-length")

// DialError means that a connection could not be established. If the server refused the connection, Err wraps
// syscall.ECONNREFUSED.
type DialError struct {
	Addr string
	Err  error
}

func (e *DialError) Error() string { return fmt.Sprintf("connect to %s: %v", e.Addr, e.Err) }

func (e *DialError) Unwrap() error { return e.Err }

// LostError means that the peer closed the connection, or that the network failed. Err is io.EOF if the peer closed the
// connection in an orderly way.
type LostError struct{ Err error }

func (e *LostError) Error() string { return fmt.Sprintf("connection lost: %v", e.Err) }

func (e *LostError) Unwrap() error { return e.Err }

// ResetError means that the server reset the stream.
type ResetError struct{ Code http2.ErrCode }

func (e *ResetError) Error() string { return fmt.Sprintf("stream reset by the server: %s", e.Code) }

// GoAwayError means that the server sent a GOAWAY. It contains the reason that the server gave. errors.Is(e, ErrGoAway)
// is true.
type GoAwayError struct {
	Code  http2.ErrCode
	Debug string // the first 200 bytes of the server's debug data
}

func (e *GoAwayError) Error() string {
	if e.Debug == "" {
		return fmt.Sprintf("%v: %s", ErrGoAway, e.Code)
	}
	return fmt.Sprintf("%v: %s: %q", ErrGoAway, e.Code, e.Debug)
}

// Is makes errors.Is(e, ErrGoAway) true.
func (e *GoAwayError) Is(target error) bool { return target == ErrGoAway }

// ProtocolError means that the server violated RFC 9113 or exceeded a limit of this client. If Stream is 0, the error
// ends the connection, otherwise it ends only that stream.
type ProtocolError struct {
	Code   http2.ErrCode
	Reason string
	Stream uint32
}

func (e *ProtocolError) Error() string {
	if e.Stream != 0 {
		return fmt.Sprintf("protocol error of the server on stream %d: %s (%s)", e.Stream, e.Reason, e.Code)
	}
	return fmt.Sprintf("protocol error of the server: %s (%s)", e.Reason, e.Code)
}

// violation returns a ProtocolError with the code PROTOCOL_ERROR that ends the connection.
func violation(reason string) *ProtocolError {
	return &ProtocolError{Code: http2.ErrCodeProtocol, Reason: reason}
}

// malformed returns a ProtocolError with the code PROTOCOL_ERROR that ends only the given stream.
func malformed(stream uint32, reason string) *ProtocolError {
	return &ProtocolError{Code: http2.ErrCodeProtocol, Reason: reason, Stream: stream}
}
