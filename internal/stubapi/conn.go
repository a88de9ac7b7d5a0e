package stubapi

import (
	"bufio"
	"crypto/tls"
	"io"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	frameSize     = 16384
	defaultWindow = 65535
	// Windows for request bodies, as large as they may be: the stub never
	// holds a client back.
	bodyWindow = 1 << 24
	connWindow = 1 << 30
)

// conn is one connection: read reads it, write writes what has gathered.
type conn struct {
	server  *Server
	number  int // in the order in which they were made, from 0
	nc      *tls.Conn
	framer  *http2.Framer
	decoder *hpack.Decoder

	// The reader's own.
	opening *stream // whose header block is being read
	ending  bool    // and its END_STREAM
	unread  int     // bytes of bodies not yet given back to the window
	highest uint32

	wake chan struct{}

	mu       sync.Mutex
	out      []byte
	flooding uint32 // the stream whose headers never end
	closed   bool
	leaving  bool // GOAWAY was sent
	streams  map[uint32]*stream
	window   int64
	initial  int64
}

func newConn(s *Server, nc *tls.Conn) *conn {
	c := &conn{
		server: s, nc: nc, wake: make(chan struct{}, 1),
		streams: map[uint32]*stream{}, window: defaultWindow, initial: defaultWindow,
	}
	c.framer = http2.NewFramer(io.Discard, bufio.NewReaderSize(nc, 64<<10))
	c.framer.SetReuseFrames()
	c.framer.SetMaxReadFrameSize(frameSize)
	c.decoder = hpack.NewDecoder(4096, c.field)
	return c
}

// read handles frames until the connection ends.
func (c *conn) read() {
	defer c.end()
	if err := c.nc.Handshake(); err != nil {
		return
	}
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.nc, preface); err != nil || string(preface) != http2.ClientPreface {
		return
	}
	c.greet()
	for {
		f, err := c.framer.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.HeadersFrame:
			c.highest = f.StreamID
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
				c.queue(func(b []byte) []byte {
					return append(appendFrame(b, http2.FramePing, http2.FlagPingAck, 0, 8), f.Data[:]...)
				})
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

// greet sends the server's settings.
func (c *conn) greet() {
	c.queue(func(b []byte) []byte {
		b = appendFrame(b, http2.FrameSettings, 0, 0, 12)
		b = appendSetting(b, http2.SettingMaxConcurrentStreams, c.server.options.MaxStreams)
		b = appendSetting(b, http2.SettingInitialWindowSize, bodyWindow)
		return appendWindow(b, connWindow)
	})
}

func appendSetting(b []byte, id http2.SettingID, v uint32) []byte {
	return append(b, byte(id>>8), byte(id), byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

// appendWindow appends a WINDOW_UPDATE frame of the connection.
func appendWindow(b []byte, n uint32) []byte {
	return append(appendFrame(b, http2.FrameWindowUpdate, 0, 0, 4), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

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
	case ignored: // after a GOAWAY, or trailers
	case refused:
		c.queue(func(b []byte) []byte { return appendReset(b, st.id, http2.ErrCodeRefusedStream) })
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
		c.queue(func(b []byte) []byte { return appendWindow(b, n) })
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
	c.queue(func(b []byte) []byte { return appendFrame(b, http2.FrameSettings, http2.FlagSettingsAck, 0, 0) })
}

// write writes what has gathered, until the connection ends.
func (c *conn) write() {
	var spare []byte
	for range c.wake {
		c.mu.Lock()
		out, flooding, closed := c.out, c.flooding, c.closed
		c.out = spare[:0]
		c.mu.Unlock()
		if flooding != 0 {
			c.floodOn(out, flooding)
			return
		}
		if len(out) > 0 && !closed {
			if _, err := c.nc.Write(out); err != nil {
				c.abort()
			}
		}
		if spare = out; cap(spare) > 1<<20 {
			spare = nil
		}
		if closed {
			return
		}
	}
}

// end releases what the connection had.
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

// abort closes the connection without a GOAWAY frame.
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
