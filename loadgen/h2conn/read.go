package h2conn

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/net/http2"
)

// read is the connection's only goroutine.
func (c *Conn) read() {
	defer close(c.done)
	for {
		frame, err := c.framer.ReadFrame()
		var one http2.StreamError
		switch {
		case errors.As(err, &one):
			if s := c.stream(one.StreamID); s != nil {
				s.Cancel()
				s.handler.End(one)
			}
			continue
		case err != nil:
			c.fail(fmt.Errorf("connection lost: %w", err))
			c.endAll()
			return
		}
		if err := c.handle(frame); err != nil {
			c.fail(err)
			c.endAll()
			return
		}
	}
}

func (c *Conn) handle(frame http2.Frame) error {
	switch f := frame.(type) {
	case *http2.DataFrame:
		c.data(f)
	case *http2.MetaHeadersFrame:
		c.headers(f)
	case *http2.RSTStreamFrame:
		if s := c.stream(f.StreamID); s != nil && s.remove() {
			s.handler.End(fmt.Errorf("stream reset by the server: %s", f.ErrCode))
		}
	case *http2.SettingsFrame:
		return c.settings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			data := f.Data
			c.send(func(w *http2.Framer) { _ = w.WritePing(true, data) })
		}
	case *http2.WindowUpdateFrame:
		c.window(f)
	case *http2.GoAwayFrame:
		c.goingAway(f)
	}
	return nil // what else there is may be ignored (RFC 9113, 4.1)
}

func (c *Conn) stream(id uint32) *Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[id]
}

func (c *Conn) headers(f *http2.MetaHeadersFrame) {
	s := c.stream(f.StreamID)
	if s == nil {
		return
	}
	if !s.headed { // later ones are trailers
		var h Header
		for _, field := range f.Fields {
			switch field.Name {
			case ":status":
				h.Status, _ = strconv.Atoi(field.Value) // 0 is no success either
			case "content-type":
				h.ContentType = field.Value
			case "retry-after":
				if n, err := strconv.Atoi(field.Value); err == nil && n > 0 {
					h.RetryAfter = time.Duration(n) * time.Second
				}
			}
		}
		if h.Status >= 100 && h.Status < 200 {
			return // informational; the response follows
		}
		s.headed = true
		s.handler.Header(h)
	}
	if f.StreamEnded() && s.remove() {
		s.handler.End(nil)
	}
}

func (c *Conn) data(f *http2.DataFrame) {
	size := int(f.Length) // padding counts
	c.unreported += size
	if c.unreported >= connWindow/2 {
		n := uint32(c.unreported)
		c.unreported = 0
		c.send(func(w *http2.Framer) { _ = w.WriteWindowUpdate(0, n) })
	}
	s := c.stream(f.StreamID)
	if s == nil {
		return // cancelled
	}
	s.handler.Data(f.Data())
	if f.StreamEnded() {
		if s.remove() {
			s.handler.End(nil)
		}
		return
	}
	// The data was used up in the call above: the window is given back in one
	// large step, not with every event.
	if s.unreported += size; s.unreported >= streamWindow/2 {
		n := uint32(s.unreported)
		s.unreported = 0
		c.send(func(w *http2.Framer) { _ = w.WriteWindowUpdate(s.id, n) })
	}
}

func (c *Conn) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	c.mu.Lock()
	err := f.ForeachSetting(func(s http2.Setting) error {
		switch s.ID {
		case http2.SettingMaxConcurrentStreams:
			c.maxStreams = int(min(s.Val, 1<<20))
		case http2.SettingInitialWindowSize:
			if s.Val > 1<<31-1 {
				return http2.ConnectionError(http2.ErrCodeFlowControl)
			}
			delta := int64(s.Val) - c.initialWindow
			c.initialWindow = int64(s.Val)
			for _, st := range c.streams {
				st.sendWindow += delta
			}
		}
		return nil
	})
	c.change.Broadcast()
	c.mu.Unlock()
	if err != nil {
		return err
	}
	c.send(func(w *http2.Framer) { _ = w.WriteSettingsAck() })
	select {
	case <-c.settled:
	default:
		close(c.settled)
	}
	return nil
}

func (c *Conn) window(f *http2.WindowUpdateFrame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.StreamID == 0 {
		c.sendWindow += int64(f.Increment)
	} else if s := c.streams[f.StreamID]; s != nil {
		s.sendWindow += int64(f.Increment)
	}
	c.change.Broadcast()
}

// goingAway ends the streams that the server did not take on; the others go on
// to their end.
func (c *Conn) goingAway(f *http2.GoAwayFrame) {
	var refused []*Stream
	c.mu.Lock()
	c.goAway = true
	for id, s := range c.streams {
		if id > f.LastStreamID {
			refused = append(refused, s)
		}
	}
	c.change.Broadcast()
	c.mu.Unlock()
	for _, s := range refused {
		if s.remove() {
			s.handler.End(ErrGoAway)
		}
	}
}

func (c *Conn) endAll() {
	c.mu.Lock()
	err, streams := c.err, c.streams
	c.streams = map[uint32]*Stream{}
	c.reserved = 0
	c.change.Broadcast()
	c.mu.Unlock()
	for _, s := range streams {
		s.handler.End(err)
	}
}
