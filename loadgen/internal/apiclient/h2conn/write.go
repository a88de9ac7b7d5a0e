package h2conn

import (
	"encoding/binary"
	"time"

	"golang.org/x/net/http2"
)

// writeTimeout is how long the server may leave our bytes unread.
const writeTimeout = 15 * time.Second

// pingTimeout is how long the answer to a PING may take.
const pingTimeout = 15 * time.Second

// maxReplies bounds the frames queued at the server's request, as in Go's server: a server that sends requests and does
// not read must not fill our memory.
const maxReplies = 10_000

// handedOver bounds the bytes that Flush sends itself, including those in flight. It is less than any socket's buffer.
const handedOver = 8 << 10

// Write buffers up to these sizes are kept.
const (
	keptBuffer       = 4 << 10
	keptBufferQueued = 256 << 10
)

// unlock releases mu and makes the writer, the caller, or the goroutine that is already writing send what is queued.
func (c *Conn) unlock() {
	defer c.mu.Unlock()
	switch {
	case len(c.out) == 0 || c.err != nil || c.writing:
	case c.options.Queued:
		c.wake.Signal()
	default:
		c.flush()
	}
}

func (c *Conn) write() {
	defer close(c.written)
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil {
		if !c.writing {
			c.flush()
		}
		if c.err == nil {
			c.wake.Wait()
		}
	}
}

// Flush sends what TryQueue has queued. With Options.Queued it never waits: it hands small amounts of data to the kernel itself,
// which is cheaper than waking the writer.
func (c *Conn) Flush() {
	c.mu.Lock()
	defer c.unlock()
	if c.options.Queued && len(c.out) > 0 && len(c.out) <= handedOver && !c.writing && c.err == nil && c.hasRoom(len(c.out)) {
		c.writing = true
		c.send()
		c.writing = false
	}
}

// hasRoom reports whether the kernel surely accepts n bytes in addition to the unacknowledged ones. Few bytes are unacknowledged
// if the server has answered all requests except the latest; otherwise hasRoom asks the kernel.
func (c *Conn) hasRoom(n int) bool {
	if c.unanswered+n <= handedOver {
		return true
	}
	unsent := c.queues.unsent()
	return unsent >= 0 && unsent+int64(n) <= handedOver
}

// flush sends until nothing is queued. The caller holds mu, which is released meanwhile.
func (c *Conn) flush() {
	c.writing = true
	for len(c.out) > 0 && c.err == nil {
		c.send()
	}
	c.writing = false
}

// send sends what is queued. The caller holds mu, which is released meanwhile, and has set writing.
func (c *Conn) send() {
	b := c.out
	c.out, c.spare, c.replies = c.spare, nil, 0
	c.unanswered += len(b)
	c.mu.Unlock()
	err := c.transmit(b)
	c.mu.Lock()
	if kept := keptBuffer; cap(b) <= kept || c.options.Queued && cap(b) <= keptBufferQueued {
		if c.out == nil {
			c.out = b[:0]
		} else {
			c.spare = b[:0]
		}
	}
	if err != nil {
		c.failLocked(&LostError{err})
	}
}

func (c *Conn) transmit(b []byte) error {
	// Moving a deadline costs a timer operation, so it is moved only once in a while.
	if now := time.Now(); c.deadline.Sub(now) < writeTimeout {
		c.deadline = now.Add(2 * writeTimeout)
		if err := c.nc.SetWriteDeadline(c.deadline); err != nil {
			return err
		}
	}
	_, err := c.nc.Write(b)
	return err
}

// reply counts a frame that the server made us queue. The caller holds mu.
func (c *Conn) reply() {
	if c.replies++; c.replies > maxReplies {
		c.failLocked(&ProtocolError{Code: http2.ErrCodeEnhanceYourCalm, Reason: "it asks for answers and does not read them"})
	}
}

func appendSettings(b []byte, settings map[http2.SettingID]uint32) []byte {
	b = appendFrame(b, http2.FrameSettings, 0, 0, 6*len(settings))
	for id, value := range settings {
		b = binary.BigEndian.AppendUint16(b, uint16(id))
		b = binary.BigEndian.AppendUint32(b, value)
	}
	return b
}

// appendPing appends a PING of 8 bytes.
func appendPing(b []byte, flags http2.Flags, data []byte) []byte {
	return append(appendFrame(b, http2.FramePing, flags, 0, 8), data...)
}

// alive runs on the ping timer: it pings a silent server and gives up a server that did not answer.
func (c *Conn) alive() {
	c.Receive() // the answer may have come
	c.mu.Lock()
	defer c.unlock()
	if c.err != nil {
		return
	}
	last, now := time.Duration(c.lastRead.Load()), time.Since(c.born)
	switch {
	case c.pinged > 0 && last < c.pinged:
		c.failLocked(&LostError{errNoPong})
	case now-last < c.options.Ping:
		c.pinged = 0
		c.ping.Reset(c.options.Ping - (now - last))
	default:
		c.pinged = now
		c.out = appendPing(c.out, 0, make([]byte, 8))
		c.ping.Reset(pingTimeout)
	}
}
