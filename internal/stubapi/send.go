package stubapi

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// queue calls `write`, which adds frames to the pending data. It panics if `write` fails, because this can happen only
// for an invalid frame.
func (c *conn) queue(write func() error) {
	c.mu.Lock()
	c.must(write())
	c.mu.Unlock()
	c.wakeWriter()
}

func (c *conn) must(err error) {
	if err != nil {
		panic(err)
	}
}

// encoded returns a header block with the fields. It marks all fields except ":status 200" as sensitive. The client
// then does not add them to its HPACK table. The caller holds the lock.
func (c *conn) encoded(fields ...hpack.HeaderField) []byte {
	c.block.Reset()
	for _, f := range fields {
		f.Sensitive = f != statusOK
		c.must(c.fields.WriteField(f))
	}
	return c.block.Bytes()
}

// head sends the headers of a response. It sends content-length if length is not negative, and Retry-After if
// retryAfter is not zero. Despite its type, retryAfter is a number of seconds.
func (c *conn) head(st *stream, status int, contentType string, length int, retryAfter time.Duration) {
	defer c.wakeWriter()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams[st.id] != st {
		return
	}
	fields := []hpack.HeaderField{{Name: ":status", Value: strconv.Itoa(status)}, {Name: "content-type", Value: contentType}}
	if length >= 0 {
		fields = append(fields, hpack.HeaderField{Name: "content-length", Value: strconv.Itoa(length)})
	}
	if retryAfter > 0 {
		fields = append(fields, hpack.HeaderField{Name: "retry-after", Value: strconv.FormatInt(int64(retryAfter), 10)})
	}
	c.must(c.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: st.id, BlockFragment: c.encoded(fields...), EndHeaders: true}))
}

// body sends a part of a response body, or keeps it until the client's flow-control windows allow sending it. If `last`
// is true, the stream ends after this part. body returns false if the stream has already ended.
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
		if rest, ended = c.flow(st, p); len(rest) > 0 {
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

// flow queues as much of p as the flow-control windows allow, and returns the rest. `ended` reports whether the last
// byte of the stream was queued. The caller holds the lock.
func (c *conn) flow(st *stream, p []byte) (rest []byte, ended bool) {
	for {
		n := int(min(int64(len(p)), frameSize, max(0, min(c.window, st.window))))
		if n == 0 && len(p) > 0 {
			return p, false
		}
		if ended = st.last && n == len(p); n > 0 || ended {
			c.must(c.frames.WriteData(st.id, ended, p[:n]))
		}
		c.window -= int64(n)
		st.window -= int64(n)
		st.through += int64(n)
		if p = p[n:]; len(p) == 0 {
			return nil, ended
		}
	}
}

// grown enlarges the flow-control window of a stream, or of the connection if id is 0. It then sends the data for which
// the window was too small.
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
		rest, ended := c.flow(st, st.pending)
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

// over removes an ended stream from the connection.
func (c *conn) over(st *stream) {
	c.mu.Lock()
	delete(c.streams, st.id)
	onEnd := st.onEnd
	c.mu.Unlock()
	if onEnd != nil {
		// onEnd locks the store. The caller may have locked it, so do not wait for onEnd. Only watches have an onEnd.
		go onEnd()
	}
}

// drop removes a stream that the client has reset.
func (c *conn) drop(id uint32) {
	c.mu.Lock()
	st := c.streams[id]
	c.mu.Unlock()
	if st != nil {
		c.over(st)
	}
}

// reset sends RST_STREAM for a stream and removes the stream.
func (c *conn) reset(st *stream) {
	c.queue(func() error {
		if c.streams[st.id] != st {
			return nil
		}
		return c.frames.WriteRSTStream(st.id, http2.ErrCodeInternal)
	})
	c.over(st)
}

// goAway sends a GOAWAY frame. The frame tells the client that this stream and later streams were not processed.
func (c *conn) goAway(st *stream) {
	c.queue(func() error {
		c.leaving = true
		return c.frames.WriteGoAway(st.id-1, http2.ErrCodeNo, nil) // all earlier requests were processed: their IDs are odd and less than st.id
	})
	c.over(st)
}

// badFrame sends a DATA frame on stream 0, which RFC 9113 forbids.
func (c *conn) badFrame() {
	c.queue(func() error { return c.frames.WriteData(0, false, []byte("DATA")) })
}

// flood starts a response whose headers never end.
func (c *conn) flood(st *stream) {
	c.queue(func() error {
		c.flooding = st.id
		return c.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: st.id, BlockFragment: c.encoded(statusOK)})
	})
}

var statusOK = hpack.HeaderField{Name: ":status", Value: "200"}

// floodOn writes the bytes in `out`, and then CONTINUATION frames until the client closes the connection.
func (c *conn) floodOn(out []byte, id uint32) {
	filler := strings.Repeat("f", 1000)
	for {
		if _, err := c.nc.Write(out); err != nil {
			c.abort()
			return
		}
		c.mu.Lock()
		c.out.Reset()
		c.must(c.frames.WriteContinuation(id, false, c.encoded(hpack.HeaderField{Name: "x-filler", Value: filler})))
		out = bytes.Clone(c.out.Bytes())
		c.mu.Unlock()
	}
}

// giantHeader sends a valid response with a header field that is larger than clients must accept.
func (c *conn) giantHeader(st *stream) {
	c.queue(func() error {
		block := c.encoded(statusOK, hpack.HeaderField{Name: "x-giant", Value: strings.Repeat("g", giant)})
		c.must(c.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: st.id, BlockFragment: block[:frameSize]}))
		for block = block[frameSize:]; len(block) > 0; {
			n := min(len(block), frameSize)
			c.must(c.frames.WriteContinuation(st.id, n == len(block), block[:n]))
			block = block[n:]
		}
		return c.frames.WriteData(st.id, true, []byte("{}"))
	})
	c.over(st)
}
