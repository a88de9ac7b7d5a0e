package h2conn

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/net/http2"
)

// Request is the HTTP request that opens a stream.
type Request struct {
	Method string
	// Path is the percent-encoded path with the query.
	Path   string
	Accept string
	// ContentType is the media type of Body. A request without a Body does not send this header.
	ContentType string
	Body        []byte
	UserAgent   string
	// Extra holds further headers, such as Authorization. It may be nil.
	Extra http.Header
	// Urgent allows the request to use the streams that Options.Urgent keeps free.
	Urgent bool
}

// Header holds the fields of a response's header that this package reads.
type Header struct {
	Status      int
	ContentType string
	// RetryAfter is the server's Retry-After, or 0 if it sent none.
	RetryAfter time.Duration
}

// Handler receives the response of a stream, in order, on the connection's read loop. Its methods must not block, and
// must not call Open or RoundTrip.
type Handler interface {
	Header(Header)
	// Data receives the next bytes of the body. They are valid only during the call.
	Data([]byte)
	// End is the last call. Its argument is nil if the response is complete. Otherwise it is a *ResetError,
	// *GoAwayError, *LostError, *ProtocolError, ErrTruncated, ErrClosed, or the argument of CancelWith.
	End(error)
}

// Stream is a request in flight. Pass a zero Stream to TryOpen, which fills it in.
type Stream struct {
	conn    *Conn
	id      uint32
	handler Handler

	// conn.mu guards the following fields.
	sendWindow int64
	kept       []byte // memory for rest, which the next request reuses
	rest       []byte // the part of the body that flow control still holds back
	held       bool   // whether HoldWindow was called, so that only Release returns the receive window
	unreported int    // bytes read since the stream's last WINDOW_UPDATE
	stopped    error  // argument of End, which the read loop calls when the handler's current call returns

	// Only the read loop uses the following fields.
	headed bool  // whether headers were read
	length int64 // remaining bytes of the body; negative if unknown
	head   bool
}

// Waited returns how long the bytes of the Handler's current call had waited in the kernel, or 0 if unknown. If the
// bytes arrived at different times, Waited returns the wait of the last byte. Only methods of the Handler may call
// Waited.
func (s *Stream) Waited() time.Duration {
	if s.conn == nil || s.conn.waited == nil {
		return 0
	}
	return *s.conn.waited
}

// Deferred reports whether the connection reads only when Receive is called.
func (s *Stream) Deferred() bool { return s.conn != nil && s.conn.deferred != nil }

// Open sends a request. It waits for a free stream. If flow control does not allow sending the whole body yet, the
// connection keeps a copy of the rest and sends it later. If Open returns an error, the handler is not called.
func (c *Conn) Open(r *Request, h Handler) (*Stream, error) {
	t := NewTemplate(*r)
	c.mu.Lock()
	for {
		if err := c.usable(); err != nil {
			c.mu.Unlock()
			return nil, err
		}
		limit := c.maxStreams
		if !r.Urgent {
			limit = min(max(limit-c.options.Urgent, 1), limit)
		}
		if len(c.streams) < limit {
			break
		}
		c.change.Wait()
	}
	s := &Stream{}
	open(c, s, t, r.Path, r.Body, h)
	c.unlock()
	return s, nil
}

// OpenFree is like Open, but does not wait. If the number of free streams is below `least`, it returns ErrBusy.
func (c *Conn) OpenFree(r *Request, h Handler, least int) (*Stream, error) {
	s, t := &Stream{}, NewTemplate(*r)
	c.mu.Lock()
	defer c.unlock()
	if err := c.usable(); err != nil {
		return nil, err
	}
	if c.maxStreams-len(c.streams) < least {
		return nil, ErrBusy
	}
	open(c, s, t, r.Path, r.Body, h)
	return s, nil
}

// TryOpen sends a request with the method and headers of a template. It does not wait for a free stream and, once
// buffers have grown, does not allocate. It copies path and body. If all streams that the server allows are in use, it
// returns ErrBusy. If the connection accepts no more streams, it returns the connection's error or ErrGoAway. If it
// returns an error, it has sent nothing and does not call the handler.
//
// The caller owns s, and may use s for another request after the connection has called the handler's End. Cancel does
// not call End, so a stream that was ended with Cancel cannot be reused. Use CancelWith instead. Without
// Options.Queued, TryOpen may wait for the network.
func (c *Conn) TryOpen(s *Stream, t *Template, path, body []byte, h Handler) error {
	c.mu.Lock()
	defer c.unlock()
	return c.try(s, t, path, body, h)
}

// TryQueue is like TryOpen, but does not write to the network. The caller must call Flush afterwards.
func (c *Conn) TryQueue(s *Stream, t *Template, path, body []byte, h Handler) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.try(s, t, path, body, h)
}

// try sends a request if a stream is free, otherwise it returns an error. The caller holds mu.
func (c *Conn) try(s *Stream, t *Template, path, body []byte, h Handler) error {
	if err := c.usable(); err != nil {
		return err
	}
	if len(c.streams) >= c.maxStreams {
		return ErrBusy
	}
	open(c, s, t, path, body, h)
	return nil
}

// open queues the frames of a request. A stream must be free. The caller holds mu.
func open[T string | []byte](c *Conn, s *Stream, t *Template, path T, body []byte, h Handler) {
	*s = Stream{
		conn: c, id: c.nextID, handler: h, head: t.head,
		sendWindow: c.initialWindow, kept: s.kept,
	}
	c.nextID += 2
	c.streams[s.id] = s
	appendHeaders(c, s.id, t, path, len(body))
	if left := c.push(s, body); len(left) > 0 {
		s.kept = append(s.kept[:0], left...)
		s.rest = s.kept
		c.blocked = append(c.blocked, s)
	}
}

// free returns how many more streams may be opened now, and an error if the connection accepts no more streams.
func (c *Conn) free() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.maxStreams - len(c.streams), c.usable()
}

// Cancel cancels the stream. A call of its handler that is in progress completes; afterwards the handler is not called
// again. Cancel returns false if the stream has already ended.
func (s *Stream) Cancel() bool {
	c := s.conn
	c.mu.Lock()
	defer c.unlock()
	return c.cancel(s, http2.ErrCodeCancel)
}

// CancelWith cancels the stream and passes err to the handler's End. If a call of the handler is in progress, the read
// loop calls End after that call; otherwise CancelWith calls it. CancelWith returns false if the stream has already
// ended or been cancelled.
func (s *Stream) CancelWith(err error) bool {
	c := s.conn
	c.mu.Lock()
	if !c.cancel(s, http2.ErrCodeCancel) {
		c.mu.Unlock()
		return false
	}
	if c.current == s {
		s.stopped = err
		c.unlock()
		return true
	}
	h := s.handler
	c.unlock()
	h.End(err)
	return true
}

// cancel removes the stream and queues a RST_STREAM frame. It returns false if the stream has already ended. The caller
// holds mu.
func (c *Conn) cancel(s *Stream, code http2.ErrCode) bool {
	if !c.remove(s) {
		return false
	}
	c.out = appendNumber(c.out, http2.FrameRSTStream, s.id, uint32(code))
	return true
}

// remove removes the stream from the connection. It returns false if the stream was removed before. The caller holds
// mu.
func (c *Conn) remove(s *Stream) bool {
	if c.streams[s.id] != s {
		return false
	}
	delete(c.streams, s.id)
	if len(s.rest) > 0 {
		s.rest = nil
		c.blocked = slices.DeleteFunc(c.blocked, func(b *Stream) bool { return b == s })
	}
	c.freed()
	return true
}

// freed wakes the goroutines that wait for a free stream. The caller holds mu.
func (c *Conn) freed() {
	c.change.Broadcast()
	if c.pool != nil {
		c.pool.freed()
	}
	if c.goAway != nil && len(c.streams) == 0 {
		c.failLocked(c.goAway) // the last stream after a GOAWAY has ended
	}
}

// maxBody is the maximum size, in bytes, of a response body that RoundTrip reads.
const maxBody = 64 << 20

// Response is a complete response. RoundTrip returns it.
type Response struct {
	Header
	Body []byte
}

// RoundTrip sends a request and waits for the complete response. If ctx ends first, it cancels the request.
func (c *Conn) RoundTrip(ctx context.Context, r *Request) (*Response, error) {
	w := &waiter{done: make(chan struct{})}
	s, err := c.Open(r, w)
	if err != nil {
		return nil, err
	}
	select {
	case <-w.done:
		if w.err != nil {
			return nil, w.err
		}
		return &w.response, nil
	case <-ctx.Done():
		s.Cancel()
		return nil, ctx.Err()
	}
}

type waiter struct {
	response Response
	err      error
	done     chan struct{}
}

func (w *waiter) Header(h Header) { w.response.Header = h }

func (w *waiter) Data(p []byte) {
	if w.err != nil {
		return
	}
	if len(w.response.Body)+len(p) > maxBody {
		w.err = fmt.Errorf("response of more than %d bytes", maxBody)
		w.response.Body = nil
		return
	}
	w.response.Body = append(w.response.Body, p...)
}

func (w *waiter) End(err error) {
	if w.err == nil {
		w.err = err
	}
	close(w.done)
}
