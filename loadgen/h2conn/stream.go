package h2conn

import (
	"net/http"
	"strconv"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Request is what a stream asks for.
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

// Header is what is kept of a response's headers.
type Header struct {
	Status      int
	ContentType string
	// RetryAfter is zero where the server gave none.
	RetryAfter time.Duration
}

// Handler is told of a stream's response, on the connection's read loop and in
// order: it must not block, and must not open a stream. Close, Cancel and
// Usable may be called.
type Handler interface {
	Header(Header)
	// Data brings a piece of the body, valid during the call only.
	Data([]byte)
	// End is the last call: nil for a whole response.
	End(error)
}

// Stream is one request under way.
type Stream struct {
	conn    *Conn
	id      uint32
	handler Handler

	sendWindow int64 // under conn.mu
	headed     bool  // headers were read; the read loop's
	unreported int   // as Conn's; the read loop's
}

// Open sends a request. It waits while the server's limit of concurrent
// streams is reached, or the body does not fit its flow-control window. After
// an error the handler is not called.
func (c *Conn) Open(r *Request, h Handler) (*Stream, error) {
	if err := c.reserve(r.Urgent); err != nil {
		return nil, err
	}
	s := &Stream{conn: c, handler: h}
	c.wmu.Lock()
	c.mu.Lock()
	if err := c.usable(); err != nil {
		c.reserved--
		c.mu.Unlock()
		c.wmu.Unlock()
		return nil, err
	}
	s.id, s.sendWindow = c.nextID, c.initialWindow
	c.nextID += 2
	c.streams[s.id] = s
	body, rest := c.take(s, r.Body)
	c.mu.Unlock()
	c.writeRequest(s.id, r, body, len(rest) == 0)
	err := c.flush()
	c.wmu.Unlock()
	if err != nil {
		c.fail(err)
		// The read loop ends the stream.
		return s, nil
	}
	return s, s.sendRest(rest)
}

// reserve waits for one of the server's concurrent streams.
func (c *Conn) reserve(urgent bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if err := c.usable(); err != nil {
			return err
		}
		limit := c.maxStreams
		if !urgent {
			limit = max(limit-urgentReserve, 1)
		}
		if c.reserved < limit {
			c.reserved++
			return nil
		}
		c.change.Wait()
	}
}

// usable is called with mu held.
func (c *Conn) usable() error {
	switch {
	case c.err != nil:
		return c.err
	case c.goAway || c.nextID > 1<<30:
		c.goAway = true
		return ErrGoAway
	}
	return nil
}

// take splits off what of body may be sent now in one frame, and charges it to
// the windows. The caller holds mu.
func (c *Conn) take(s *Stream, body []byte) (now, rest []byte) {
	n := int(max(0, min(int64(len(body)), c.sendWindow, s.sendWindow, maxFrame)))
	c.sendWindow -= int64(n)
	s.sendWindow -= int64(n)
	return body[:n], body[n:]
}

func (c *Conn) writeRequest(id uint32, r *Request, body []byte, whole bool) {
	c.hbuf.Reset()
	field := func(name, value string) {
		if value != "" {
			_ = c.hpack.WriteField(hpack.HeaderField{Name: name, Value: value}) // to a buffer: cannot fail
		}
	}
	field(":method", r.Method)
	field(":scheme", "https")
	field(":authority", c.authority)
	field(":path", r.Path)
	field("accept", r.Accept)
	field("user-agent", r.UserAgent)
	if len(r.Body) > 0 {
		field("content-type", r.ContentType)
		field("content-length", strconv.Itoa(len(r.Body)))
	}
	for name, values := range r.Extra {
		for _, v := range values {
			field(lower(name), v)
		}
	}
	block := c.hbuf.Bytes()
	first := block[:min(len(block), maxFrame)]
	_ = c.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: first, EndStream: len(r.Body) == 0, EndHeaders: len(first) == len(block),
	})
	for block = block[len(first):]; len(block) > 0; block = block[len(first):] {
		first = block[:min(len(block), maxFrame)]
		_ = c.framer.WriteContinuation(id, len(first) == len(block), first)
	}
	if len(body) > 0 {
		_ = c.framer.WriteData(id, whole, body)
	}
}

// sendRest sends what did not fit the first frame or the windows.
func (s *Stream) sendRest(rest []byte) error {
	c := s.conn
	for len(rest) > 0 {
		var part []byte
		c.mu.Lock()
		for {
			if c.streams[s.id] != s || c.err != nil { // ended: the handler is told
				c.mu.Unlock()
				return nil
			}
			if part, rest = c.take(s, rest); len(part) > 0 {
				break
			}
			c.change.Wait()
		}
		c.mu.Unlock()
		c.send(func(f *http2.Framer) { _ = f.WriteData(s.id, len(rest) == 0, part) })
	}
	return nil
}

// Cancel gives the stream up. Its handler is not called again, unless a call
// is under way just now.
func (s *Stream) Cancel() {
	if s.remove() {
		s.conn.send(func(f *http2.Framer) { _ = f.WriteRSTStream(s.id, http2.ErrCodeCancel) })
	}
}

// remove takes the stream off the connection, once.
func (s *Stream) remove() bool {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams[s.id] != s {
		return false
	}
	delete(c.streams, s.id)
	c.reserved--
	c.change.Broadcast()
	return true
}

// lower is the wire form of a canonical header name.
func lower(name string) string {
	b := []byte(name)
	for i, ch := range b {
		if 'A' <= ch && ch <= 'Z' {
			b[i] = ch + 'a' - 'A'
		}
	}
	return string(b)
}
