package h2conn

import (
	"encoding/binary"
	"errors"
	"time"

	"golang.org/x/net/http2"
)

// deferral is a connection whose reads, after deferReads, return errNothing instead of waiting for data.
type deferral interface{ deferReads() }

// errNothing means that no data has arrived. For crypto/tls it is a temporary error, so that later reads can succeed.
var errNothing error = nothing{}

type nothing struct{}

func (nothing) Error() string   { return "nothing to read now" }
func (nothing) Timeout() bool   { return true }
func (nothing) Temporary() bool { return true }

// read is the read loop. On a deferred connection, the loop ends after the server's first SETTINGS.
func (c *Conn) read() {
	c.reading.Lock()
	defer c.reading.Unlock()
	for c.readFrame() {
		if c.deferred != nil && c.isSettled() {
			c.deferred.deferReads()
			c.receive()
			return
		}
	}
	c.tellEnd()
}

// Receive reads the data that has arrived on a deferred connection, and calls the handlers of the streams. On other
// connections it does nothing.
func (c *Conn) Receive() { c.ReceiveAfter(0) }

// ReceiveAfter is like Receive, but does nothing if the previous call of Receive was less than d ago.
func (c *Conn) ReceiveAfter(d time.Duration) {
	if c.deferred == nil {
		return
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	if time.Since(c.lastReceive) >= d {
		c.receive()
	}
}

// receive reads and handles all complete frames. The caller holds the mutex `reading`.
func (c *Conn) receive() {
	c.lastReceive = time.Now()
	for !c.over && c.readFrame() {
	}
	if c.Err() != nil {
		c.tellEnd()
	}
}

// readFrame reads and handles one frame. It returns false if the connection has ended or no complete frame has arrived.
func (c *Conn) readFrame() bool {
	f, err := c.frames.next()
	if err == nil {
		err = c.handle(f)
	}
	switch err {
	case nil:
		return true
	case errNothing:
		return false
	}
	return c.failed(err)
}

// failed handles a read error. It ends the stream to which the error belongs, or the connection if the error belongs to
// no stream. It reports whether the connection is still usable.
func (c *Conn) failed(err error) bool {
	var protocol *ProtocolError
	switch {
	case errors.As(err, &protocol) && protocol.Stream != 0:
		c.end(protocol.Stream, protocol, protocol.Code)
		return true
	case protocol == nil:
		err = &LostError{err}
	}
	c.fail(err)
	return false
}

// tellEnd calls End on the handlers of all streams, because the connection has ended. Only the first call has an
// effect.
func (c *Conn) tellEnd() {
	if c.over {
		return
	}
	c.over = true
	defer close(c.done)
	c.endAll()
	if c.written != nil {
		<-c.written
	}
	if c.pool != nil {
		c.pool.ended(c)
	}
}

func (c *Conn) isSettled() bool {
	select {
	case <-c.settled:
		return true
	default:
		return false
	}
}

func (c *Conn) handle(f frame) error {
	if f.kind != http2.FrameSettings && !c.isSettled() {
		return violation("the first frame is not SETTINGS")
	}
	switch f.kind {
	case http2.FrameData:
		return c.data(f)
	case http2.FrameHeaders, http2.FrameContinuation:
		return c.headers(f)
	case http2.FrameRSTStream:
		if err := c.opened(f.id); err != nil {
			return err
		}
		c.end(f.id, &ResetError{http2.ErrCode(binary.BigEndian.Uint32(f.payload))}, 0)
	case http2.FrameSettings:
		return c.settings(f)
	case http2.FramePing:
		if !f.flags.Has(http2.FlagPingAck) {
			c.mu.Lock()
			c.out = appendPing(c.out, http2.FlagPingAck, f.payload)
			c.reply()
			c.unlock()
		}
	case http2.FrameWindowUpdate:
		if err := c.opened(f.id); err != nil {
			return err
		}
		return c.window(f)
	case http2.FrameGoAway:
		c.goingAway(f)
	case http2.FramePushPromise, http2.FramePriorityUpdate:
		return violation(f.kind.String() + " frame, which a server must not send") // RFC 9113, 8.4; RFC 9218, 7.1
	}
	return nil // other kinds of frames are ignored (RFC 9113, 4.1)
}

// opened returns an error if the client never opened the stream with this id (RFC 9113, 5.1).
func (c *Conn) opened(id uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id != 0 && (id%2 == 0 || id >= c.nextID) {
		return violation("frame on a stream that was never opened")
	}
	return nil
}

func (c *Conn) data(f frame) error {
	c.mu.Lock()
	s := c.streams[f.id]
	ended := f.last && f.flags.Has(http2.FlagDataEndStream)
	err := c.received(s, f.size, ended)
	if s == nil && (f.id%2 == 0 || f.id >= c.nextID) {
		err = violation("frame on a stream that was never opened")
	}
	if err == nil {
		c.current = s
	}
	c.unlock()
	if err != nil || s == nil {
		return err
	}
	n := int64(len(f.payload))
	switch {
	case !s.headed:
		err = malformed(f.id, "DATA before HEADERS")
	case s.length >= 0 && n > s.length:
		err = malformed(f.id, "more bytes than content-length")
	case n > 0:
		if s.length >= 0 {
			s.length -= n
		}
		s.handler.Data(f.payload)
	}
	c.finish(s, ended && err == nil)
	return err
}

// begin returns the stream with the given id, or nil if it has ended. Call begin before calling the stream's handler.
func (c *Conn) begin(id uint32) *Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = c.streams[id]
	return c.current
}

// finish ends the stream if the response is complete or the stream was cancelled. Call finish after each call of the
// stream's handler.
func (c *Conn) finish(s *Stream, ended bool) {
	c.mu.Lock()
	c.current = nil
	err, stopped := s.stopped, s.stopped != nil
	s.stopped = nil
	if ended && !stopped {
		unsent := len(s.rest) > 0
		stopped = c.remove(s)
		if len(c.streams) == 0 {
			c.unanswered = 0
		}
		if stopped && unsent {
			// The server has responded, so the connection does not send the rest of the request's body.
			c.out = appendNumber(c.out, http2.FrameRSTStream, s.id, uint32(http2.ErrCodeNo))
		}
		if s.length > 0 {
			err = ErrTruncated
		}
	}
	c.unlock()
	if stopped {
		s.handler.End(err)
	}
}

// end ends a stream with err. If code is not 0, it also sends an RST_STREAM frame with this code.
func (c *Conn) end(id uint32, err error, code http2.ErrCode) {
	c.mu.Lock()
	s := c.streams[id]
	if s == nil || !c.remove(s) {
		c.mu.Unlock()
		return
	}
	if code != 0 {
		c.out = appendNumber(c.out, http2.FrameRSTStream, id, uint32(code))
		c.reply()
	}
	c.unlock()
	s.handler.End(err)
}

func (c *Conn) settings(f frame) error {
	if f.flags.Has(http2.FlagSettingsAck) {
		return nil
	}
	c.mu.Lock()
	defer c.unlock()
	for p := f.payload; len(p) > 0; p = p[6:] {
		value := binary.BigEndian.Uint32(p[2:])
		switch http2.SettingID(binary.BigEndian.Uint16(p)) {
		case http2.SettingMaxConcurrentStreams:
			c.maxStreams = int(min(value, 1<<20))
		case http2.SettingInitialWindowSize:
			if err := c.initial(value); err != nil {
				return err
			}
		case http2.SettingEnablePush:
			if value != 0 {
				return violation("a server must not enable push")
			}
		case http2.SettingMaxFrameSize:
			if value < maxFrame || value > 1<<24-1 {
				return violation("SETTINGS_MAX_FRAME_SIZE out of range")
			}
		}
	}
	c.out = appendFrame(c.out, http2.FrameSettings, http2.FlagSettingsAck, 0, 0)
	c.reply()
	c.resume()
	c.freed()
	if !c.isSettled() {
		close(c.settled)
	}
	return nil
}

// goingAway handles a GOAWAY. It ends the streams that the server did not accept. The connection ends when the
// remaining streams have ended.
func (c *Conn) goingAway(f frame) {
	debug := f.payload[8:]
	err := &GoAwayError{http2.ErrCode(binary.BigEndian.Uint32(f.payload[4:])), string(debug[:min(len(debug), 200)])}
	var refused []*Stream
	c.mu.Lock()
	c.goAway = err
	for id, s := range c.streams {
		if id > f.number() {
			refused = append(refused, s)
		}
	}
	for _, s := range refused {
		c.remove(s)
	}
	c.freed()
	c.unlock()
	for _, s := range refused {
		s.handler.End(err)
	}
}

func (c *Conn) endAll() {
	c.mu.Lock()
	err, streams := c.err, c.streams
	c.streams, c.blocked = map[uint32]*Stream{}, nil
	c.freed()
	c.mu.Unlock()
	for _, s := range streams {
		s.handler.End(err)
	}
}
