package h2conn

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/net/http2"
)

// Request is the request of a stream.
type Request struct {
	Method string
	// Path with its query, percent-encoded.
	Path   string
	Accept string
	// ContentType of Body, where there is one.
	ContentType string
	Body        []byte
	UserAgent   string
	// Extra are further headers, such as Authorization. May be nil.
	Extra http.Header
	// Urgent requests may use the last of the server's concurrent streams.
	Urgent bool
}

// Header holds the part of a response's headers that is kept.
type Header struct {
	Status      int
	ContentType string
	// RetryAfter is zero if the server sent none.
	RetryAfter time.Duration
}

// Handler receives a stream's response in order, on the connection's read loop. It must not block, nor call Open
// and RoundTrip.
type Handler interface {
	Header(Header)
	// Data receives a piece of the body, valid during the call only.
	Data([]byte)
	// End is the last call, with nil for a whole response, or *ResetError, *GoAwayError, *LostError,
	// *ProtocolError, ErrTruncated, ErrClosed, or what CancelWith was given.
	End(error)
}

// Stream is one request under way. The zero value is ready for TryOpen.
type Stream struct {
	conn    *Conn
	id      uint32
	handler Handler

	// Under conn.mu.
	sendWindow int64
	kept       []byte // memory for rest
	rest       []byte // of the body, when flow control held it back
	held       bool   // the owner gives the window back
	unreported int    // bytes read since the stream's last WINDOW_UPDATE
	stopped    error  // End is due with this, once the call under way returns

	// The read loop's.
	headed bool  // headers were read
	length int64 // bytes of body to come; below 0: unknown
	head   bool
}

// Waited returns how long the bytes that the Handler is receiving had waited to be read, or 0 if unknown. With
// several pieces it counts the last. Only the Handler's methods may call it.
func (s *Stream) Waited() time.Duration {
	if s.conn == nil || s.conn.waited == nil {
		return 0
	}
	return *s.conn.waited
}

// Deferred reports whether the connection is read by calls of Receive alone.
func (s *Stream) Deferred() bool { return s.conn != nil && s.conn.deferred != nil }

// Open sends a request. It waits for a free stream. It copies the part of the body that flow control does not
// admit yet and sends it later. After an error the handler is not called.
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

// OpenFree is like Open but does not wait. It returns ErrBusy if fewer than least streams are free.
func (c *Conn) OpenFree(r *Request, h Handler, least int) (*Stream, error) {
	t := NewTemplate(*r)
	c.mu.Lock()
	if err := c.usable(); err != nil {
		c.mu.Unlock()
		return nil, err
	}
	if c.maxStreams-len(c.streams) < least {
		c.mu.Unlock()
		return nil, ErrBusy
	}
	s := &Stream{}
	open(c, s, t, r.Path, r.Body, h)
	c.unlock()
	return s, nil
}

// TryOpen sends a request made from a template. It does not wait and, in the long run, does not allocate. It
// copies path and body. It returns ErrBusy if all streams that the server allows are in use, otherwise the errors
// of Err and ErrGoAway. After an error nothing was sent and the handler is not called.
//
// The caller owns s. It may use s for another request once the handler's End is called, but never after Cancel:
// use CancelWith. On a connection without Options.Queued the call may wait for the network.
func (c *Conn) TryOpen(s *Stream, t *Template, path, body []byte, h Handler) error {
	c.mu.Lock()
	defer c.unlock()
	return c.try(s, t, path, body, h)
}

// TryQueue is like TryOpen but does not send. The caller must call Flush.
func (c *Conn) TryQueue(s *Stream, t *Template, path, body []byte, h Handler) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.try(s, t, path, body, h)
}

// try opens a stream if there is a free one. The caller holds mu.
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

// open queues a request. The caller holds mu and has found a free stream.
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

// free returns how many more streams may be opened now. It fails if no stream ever can be opened.
func (c *Conn) free() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.maxStreams - len(c.streams), c.usable()
}

// Cancel cancels the stream. Its handler is not called again, but a running call completes. It returns false if
// the stream has already ended.
func (s *Stream) Cancel() bool {
	c := s.conn
	c.mu.Lock()
	defer c.unlock()
	return c.cancel(s, http2.ErrCodeCancel)
}

// CancelWith cancels the stream and ends it with err. It calls End itself or, if a handler call is running,
// leaves that to the read loop. It returns false if the stream has ended or is ending with another error.
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

// cancel resets the stream. The caller holds mu.
func (c *Conn) cancel(s *Stream, code http2.ErrCode) bool {
	if !c.remove(s) {
		return false
	}
	c.out = appendNumber(c.out, http2.FrameRSTStream, s.id, uint32(code))
	return true
}

// remove takes the stream off the connection, once. The caller holds mu.
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

// freed wakes the goroutines that wait for a stream. The caller holds mu.
func (c *Conn) freed() {
	c.change.Broadcast()
	if c.pool != nil {
		c.pool.freed()
	}
	if c.goAway != nil && len(c.streams) == 0 {
		c.failLocked(c.goAway) // nothing is left to do on it
	}
}

// maxBody bounds a response that is read into memory.
const maxBody = 64 << 20

// Response is a whole response.
type Response struct {
	Header
	Body []byte
}

// RoundTrip sends a request and waits for the whole response or the end of ctx.
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
