package h2conn

import (
	"slices"

	"golang.org/x/net/http2"
)

// take splits body into two parts: `now` can be sent immediately in one frame, and `rest` must wait. take subtracts the
// size of `now` from the send windows. The caller holds mu.
func (c *Conn) take(s *Stream, body []byte) (now, rest []byte) {
	n := int(max(0, min(int64(len(body)), c.sendWindow, s.sendWindow, maxFrame)))
	c.sendWindow -= int64(n)
	s.sendWindow -= int64(n)
	return body[:n], body[n:]
}

// push queues as much of body as flow control allows now. It returns the rest. The caller holds mu.
func (c *Conn) push(s *Stream, body []byte) []byte {
	for len(body) > 0 {
		var part []byte
		if part, body = c.take(s, body); len(part) == 0 {
			break
		}
		var flags http2.Flags
		if len(body) == 0 {
			flags = http2.FlagDataEndStream
		}
		c.out = append(appendFrame(c.out, http2.FrameData, flags, s.id, len(part)), part...)
	}
	return body
}

// resume queues as much of the waiting bodies as flow control allows now, in order. The caller holds mu.
func (c *Conn) resume() {
	c.blocked = slices.DeleteFunc(c.blocked, func(s *Stream) bool {
		if c.sendWindow > 0 {
			s.rest = c.push(s, s.rest)
		}
		return len(s.rest) == 0
	})
}

// initial applies the server's new initial window size to open and future streams (RFC 9113, 6.9.2). The caller holds
// mu.
func (c *Conn) initial(window uint32) error {
	delta := int64(window) - c.initialWindow
	c.initialWindow = int64(window)
	for _, s := range c.streams {
		if s.sendWindow += delta; s.sendWindow > largestWindow {
			return &ProtocolError{Code: http2.ErrCodeFlowControl, Reason: "window over 2^31-1"}
		}
	}
	return nil
}

// window applies a WINDOW_UPDATE frame.
func (c *Conn) window(f frame) error {
	c.mu.Lock()
	defer c.unlock()
	n := int64(f.number())
	if f.id == 0 {
		if c.sendWindow += n; c.sendWindow > largestWindow {
			return &ProtocolError{Code: http2.ErrCodeFlowControl, Reason: "window over 2^31-1"}
		}
	} else if s := c.streams[f.id]; s != nil {
		if s.sendWindow += n; s.sendWindow > largestWindow {
			return &ProtocolError{Code: http2.ErrCodeFlowControl, Reason: "window over 2^31-1", Stream: f.id}
		}
	}
	if len(c.blocked) > 0 {
		c.resume()
	}
	return nil
}

// received counts `size` bytes of DATA that were read, and returns them to the server's windows with few, large
// WINDOW_UPDATE frames. s is nil if the stream has already ended. If `last` is true, these are the stream's last bytes.
// The caller holds mu.
func (c *Conn) received(s *Stream, size int, last bool) error {
	if c.unreported += size; c.unreported >= connWindow/2 {
		c.out = appendNumber(c.out, http2.FrameWindowUpdate, 0, uint32(c.unreported))
		c.unreported = 0
	}
	if s == nil {
		return nil // the stream has ended
	}
	window := int(c.options.StreamWindow)
	if s.unreported += size; s.unreported > window {
		return &ProtocolError{Code: http2.ErrCodeFlowControl, Reason: "more DATA than the window allows", Stream: s.id}
	}
	if !s.held && !last && s.unreported >= window/2 {
		c.credit(s, s.unreported)
	}
	return nil
}

// credit returns n bytes of a stream's receive window to the server. The caller holds mu.
func (c *Conn) credit(s *Stream, n int) {
	s.unreported -= n
	c.out = appendNumber(c.out, http2.FrameWindowUpdate, s.id, uint32(n))
}

// HoldWindow makes the stream a slow consumer: afterwards, only Release returns the stream's receive window to the
// server. Call it in Handler.Header, because later the stream may already have returned half of the window.
func (s *Stream) HoldWindow() {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	s.held = true
}

// Release returns n bytes of a held receive window (see HoldWindow) to the server, or all bytes that are not returned
// yet if these are fewer. Its result is the number of bytes that it returned.
func (s *Stream) Release(n int) int {
	c := s.conn
	c.mu.Lock()
	defer c.unlock()
	n = min(n, s.unreported)
	if n <= 0 || c.streams[s.id] != s {
		return 0
	}
	c.credit(s, n)
	return n
}
