package stubapi

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
)

// queue adds frames to what is written next.
func (c *conn) queue(frames func([]byte) []byte) {
	c.mu.Lock()
	c.out = frames(c.out)
	c.mu.Unlock()
	c.wakeWriter()
}

func appendReset(b []byte, id uint32, code http2.ErrCode) []byte {
	return append(appendFrame(b, http2.FrameRSTStream, 0, id, 4), byte(code>>24), byte(code>>16), byte(code>>8), byte(code))
}

// head sends the header of an answer, with a content-length unless that is
// negative, and a Retry-After of so many seconds unless that is zero.
func (c *conn) head(st *stream, status int, contentType string, length int, retryAfter time.Duration) {
	defer c.wakeWriter()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams[st.id] != st {
		return
	}
	at := len(c.out)
	b := appendFrame(c.out, http2.FrameHeaders, 0, st.id, 0)
	b = appendStatus(b, status)
	b = appendField(b, "content-type", contentType)
	if length >= 0 {
		b = appendField(b, "content-length", strconv.Itoa(length))
	}
	if retryAfter > 0 {
		b = appendField(b, "retry-after", strconv.FormatInt(int64(retryAfter), 10))
	}
	appendFrame(b[:at], http2.FrameHeaders, http2.FlagHeadersEndHeaders, st.id, len(b)-at-9) // over the one of before
	c.out = b
}

// body sends a piece of an answer's body, or keeps it until the client's
// windows allow it; last ends the stream. False: the stream has ended.
func (c *conn) body(st *stream, p []byte, last bool) bool {
	c.mu.Lock()
	if c.streams[st.id] != st || st.last {
		c.mu.Unlock()
		return false
	}
	st.last = last
	var ended bool
	if len(st.pending) > 0 {
		st.pending = append(st.pending, p...)
	} else {
		var rest []byte
		if rest, ended = c.frames(st, p); len(rest) > 0 {
			st.pending = append([]byte(nil), rest...)
		}
	}
	c.mu.Unlock()
	c.wakeWriter()
	if ended {
		c.over(st)
	}
	return true
}

// frames queues as much of p as the windows allow. ended: the stream's last
// byte is out. The lock is held.
func (c *conn) frames(st *stream, p []byte) (rest []byte, ended bool) {
	for {
		n := int(min(int64(len(p)), frameSize, max(0, min(c.window, st.window))))
		if n == 0 && len(p) > 0 {
			return p, false
		}
		flags := http2.Flags(0)
		if ended = st.last && n == len(p); ended {
			flags = http2.FlagDataEndStream
		}
		if n > 0 || ended {
			c.out = append(appendFrame(c.out, http2.FrameData, flags, st.id, n), p[:n]...)
		}
		c.window -= int64(n)
		st.window -= int64(n)
		st.through += int64(n)
		if p = p[n:]; len(p) == 0 {
			return nil, ended
		}
	}
}

// grown adds to a window, that of the connection if id is 0, and sends what
// was held back.
func (c *conn) grown(id uint32, n int64) {
	var over []*stream
	c.mu.Lock()
	if id == 0 {
		c.window += n
	} else if st := c.streams[id]; st != nil {
		st.window += n
	}
	for _, st := range c.streams {
		if len(st.pending) == 0 || id != 0 && id != st.id {
			continue
		}
		rest, ended := c.frames(st, st.pending)
		if st.pending = append(st.pending[:0], rest...); ended {
			over = append(over, st)
		}
	}
	c.mu.Unlock()
	c.wakeWriter()
	for _, st := range over {
		c.over(st)
	}
}

// over forgets a stream that has ended.
func (c *conn) over(st *stream) {
	c.mu.Lock()
	delete(c.streams, st.id)
	onEnd := st.onEnd
	c.mu.Unlock()
	if onEnd != nil {
		// A watch's: it takes the store's lock, which who sends may hold.
		go onEnd()
	}
}

// drop forgets a stream that the client gave up.
func (c *conn) drop(id uint32) {
	c.mu.Lock()
	st := c.streams[id]
	c.mu.Unlock()
	if st != nil {
		c.over(st)
	}
}

// reset resets a stream.
func (c *conn) reset(st *stream) {
	c.queue(func(b []byte) []byte {
		if c.streams[st.id] != st {
			return b
		}
		return appendReset(b, st.id, http2.ErrCodeInternal)
	})
	c.over(st)
}

// goAway says that this stream and later ones were not taken on.
func (c *conn) goAway(st *stream) {
	c.queue(func(b []byte) []byte {
		c.leaving = true
		last := st.id - 1 // an id of ours, which are not in use
		b = appendFrame(b, http2.FrameGoAway, 0, 0, 8)
		return append(b, byte(last>>24), byte(last>>16), byte(last>>8), byte(last), 0, 0, 0, 0)
	})
	c.over(st)
}

// badFrame sends DATA on stream 0.
func (c *conn) badFrame() {
	c.queue(func(b []byte) []byte { return append(appendFrame(b, http2.FrameData, 0, 0, 4), "DATA"...) })
}

// flood begins headers that never end.
func (c *conn) flood(st *stream) {
	c.queue(func(b []byte) []byte {
		c.flooding = st.id
		return append(appendFrame(b, http2.FrameHeaders, 0, st.id, 1), 0x88)
	})
}

// floodOn writes CONTINUATION frames until the client hangs up.
func (c *conn) floodOn(out []byte, id uint32) {
	field := appendField(nil, "x-filler", strings.Repeat("f", 1000))
	more := appendFrame(nil, http2.FrameContinuation, 0, id, len(field))
	more = append(more, field...)
	for {
		if _, err := c.nc.Write(out); err != nil {
			c.abort()
			return
		}
		out = more
	}
}

// giantHeader sends one field larger than a client has to take, in order.
func (c *conn) giantHeader(st *stream) {
	block := appendField([]byte{0x88}, "x-giant", strings.Repeat("g", giant))
	c.queue(func(b []byte) []byte {
		kind := http2.FrameHeaders
		for len(block) > 0 {
			n := min(len(block), frameSize)
			flags := http2.Flags(0)
			if n == len(block) {
				flags = http2.FlagHeadersEndHeaders
			}
			b = append(appendFrame(b, kind, flags, st.id, n), block[:n]...)
			block, kind = block[n:], http2.FrameContinuation
		}
		return append(appendFrame(b, http2.FrameData, http2.FlagDataEndStream, st.id, 2), "{}"...)
	})
	c.over(st)
}
