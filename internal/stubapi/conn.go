package stubapi

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	frameSize     = 16384
	defaultWindow = 65535
	// bodyWindow and connWindow are the flow-control windows for request bodies, in bytes. They are so large that the
	// stub never slows a client down.
	bodyWindow = 1 << 24
	connWindow = 1 << 30
)

// conn is one connection. One goroutine runs the method `read`, which reads frames. Another runs `write`, which writes
// the pending data.
type conn struct {
	server  *Server
	number  int // number of the connection, from 0
	nc      *tls.Conn
	reader  *http2.Framer
	decoder *hpack.Decoder

	// opening, ending and unread are used only by the method `read`.
	opening *stream // stream whose header block is incomplete
	ending  bool    // whether the header block of `opening` has END_STREAM
	unread  int     // bytes of request bodies for which `read` has not yet enlarged the flow-control window

	wake chan struct{}

	mu       sync.Mutex
	out      *bytes.Buffer  // pending data to write
	frames   *http2.Framer  // encoder of frames; writes into out
	fields   *hpack.Encoder // encoder of header fields; writes into block
	block    bytes.Buffer
	flooding uint32 // ID of the stream whose headers never end, or 0
	closed   bool
	leaving  bool // whether the stub has sent GOAWAY
	streams  map[uint32]*stream
	window   int64
	initial  int64
}

func newConn(s *Server, nc *tls.Conn) *conn {
	c := &conn{
		server: s, nc: nc, wake: make(chan struct{}, 1),
		streams: map[uint32]*stream{}, window: defaultWindow, initial: defaultWindow,
	}
	c.reader = http2.NewFramer(nil, bufio.NewReaderSize(nc, 64<<10))
	c.reader.SetReuseFrames()
	c.reader.SetMaxReadFrameSize(frameSize)
	c.out = new(bytes.Buffer)
	c.frames = http2.NewFramer(outOf{c}, nil)
	c.frames.AllowIllegalWrites = true // for the fault BadFrame
	c.fields = hpack.NewEncoder(&c.block)
	c.decoder = hpack.NewDecoder(4096, c.field)
	return c
}

// read handles the client's frames until the connection ends. The TLS handshake is already complete.
func (c *conn) read() {
	defer c.end()
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.nc, preface); err != nil || string(preface) != http2.ClientPreface {
		return
	}
	c.greet()
	for {
		f, err := c.reader.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.HeadersFrame:
			c.opening = &stream{conn: c, id: f.StreamID}
			c.ending = f.StreamEnded()
			err = c.headers(f.HeaderBlockFragment(), f.HeadersEnded())
		case *http2.ContinuationFrame:
			err = c.headers(f.HeaderBlockFragment(), f.HeadersEnded())
		case *http2.DataFrame:
			c.data(f)
		case *http2.SettingsFrame:
			c.settings(f)
		case *http2.PingFrame:
			if !f.IsAck() {
				c.queue(func() error { return c.frames.WritePing(true, f.Data) })
			}
		case *http2.WindowUpdateFrame:
			c.grown(f.StreamID, int64(f.Increment))
		case *http2.RSTStreamFrame:
			c.drop(f.StreamID)
		}
		if err != nil {
			return
		}
	}
}

// greet sends the server's SETTINGS frame and opens the flow-control window of the connection.
func (c *conn) greet() {
	c.queue(func() error {
		return errors.Join(
			c.frames.WriteSettings(
				http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: c.server.options.MaxStreams},
				http2.Setting{ID: http2.SettingInitialWindowSize, Val: bodyWindow}),
			c.frames.WriteWindowUpdate(0, connWindow))
	})
}

// outOf is a writer that appends to the pending data of a connection.
type outOf struct{ *conn }

func (o outOf) Write(p []byte) (int, error) { return o.out.Write(p) }

func (c *conn) headers(block []byte, whole bool) error {
	if _, err := c.decoder.Write(block); err != nil {
		return err
	}
	if !whole {
		return nil
	}
	if err := c.decoder.Close(); err != nil {
		return err
	}
	st := c.opening
	c.mu.Lock()
	ignored := c.leaving || c.streams[st.id] != nil
	refused := uint32(len(c.streams)) >= c.server.options.MaxStreams
	if !ignored && !refused {
		st.window = c.initial
		c.streams[st.id] = st
	}
	c.mu.Unlock()
	switch {
	case ignored: // a request after GOAWAY, or trailers
	case refused:
		c.queue(func() error { return c.frames.WriteRSTStream(st.id, http2.ErrCodeRefusedStream) })
	case c.ending:
		c.server.received(st)
	}
	return nil
}

func (c *conn) field(f hpack.HeaderField) {
	switch f.Name {
	case ":method":
		c.opening.method = f.Value
	case ":path":
		c.opening.path = f.Value
	case "accept":
		c.opening.accept = f.Value
	case "content-type":
		c.opening.contentType = f.Value
	}
}

func (c *conn) data(f *http2.DataFrame) {
	if c.unread += int(f.Length); c.unread > connWindow/2 {
		n := uint32(c.unread)
		c.unread = 0
		c.queue(func() error { return c.frames.WriteWindowUpdate(0, n) })
	}
	c.mu.Lock()
	st := c.streams[f.StreamID]
	c.mu.Unlock()
	if st == nil {
		return
	}
	st.body = append(st.body, f.Data()...)
	if f.StreamEnded() {
		c.server.received(st)
	}
}

func (c *conn) settings(f *http2.SettingsFrame) {
	if f.IsAck() {
		return
	}
	if v, ok := f.Value(http2.SettingInitialWindowSize); ok {
		c.mu.Lock()
		delta := int64(v) - c.initial
		c.initial = int64(v)
		for _, st := range c.streams {
			st.window += delta
		}
		c.mu.Unlock()
		c.grown(0, 0)
	}
	c.queue(c.frames.WriteSettingsAck)
}

// write writes the pending data to the network, until the connection ends.
func (c *conn) write() {
	spare := new(bytes.Buffer)
	for range c.wake {
		c.mu.Lock()
		out, flooding, closed := c.out, c.flooding, c.closed
		spare.Reset()
		c.out = spare
		c.mu.Unlock()
		if flooding != 0 {
			c.floodOn(bytes.Clone(out.Bytes()), flooding)
			return
		}
		if out.Len() > 0 && !closed {
			if _, err := c.nc.Write(out.Bytes()); err != nil {
				c.abort()
			}
		}
		if spare = out; spare.Cap() > 1<<20 {
			spare = new(bytes.Buffer)
		}
		if closed {
			return
		}
	}
}

// end closes the connection and ends all streams on it.
func (c *conn) end() {
	c.abort()
	c.mu.Lock()
	all := c.streams
	c.streams = map[uint32]*stream{}
	c.mu.Unlock()
	for _, st := range all {
		if st.onEnd != nil {
			st.onEnd()
		}
	}
}

// abort closes the connection without sending a GOAWAY frame.
func (c *conn) abort() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	_ = c.nc.NetConn().Close()
	c.wakeWriter()
}

func (c *conn) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}
