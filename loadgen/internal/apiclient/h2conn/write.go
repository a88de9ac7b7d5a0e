package h2conn

import (
	"encoding/binary"
	"time"

	"golang.org/x/net/http2"
)

// writeTimeout limits each write. A write that has not ended fails after writeTimeout at the earliest, and after twice
// that time at the latest (see transmit).
const writeTimeout = 15 * time.Second

const pingTimeout = 15 * time.Second

// maxReplies is the maximum number of queued replies to the server's frames, as in Go's server. It limits the client's
// memory if the server does not read the replies.
const maxReplies = 10_000

// handedOver is the maximum total of queued and unacknowledged bytes at which Flush writes to the socket itself. Such a
// write cannot block, because every socket's send buffer is larger.
const handedOver = 8 << 10

// keptBuffer and keptBufferQueued are the maximum capacities of write buffers that the connection keeps for reuse.
const (
	keptBuffer       = 4 << 10
	keptBufferQueued = 256 << 10
)

// unlock sends the queued frames, and releases mu. With Options.Queued, the writer goroutine writes the frames.
// Otherwise the caller writes them, or a goroutine that is already writing.
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

// Flush sends the requests that TryQueue queued. With Options.Queued it never waits for the network: it leaves large
// amounts of data to the writer goroutine, and writes small amounts itself, because that is cheaper than waking that
// goroutine.
func (c *Conn) Flush() {
	c.mu.Lock()
	defer c.unlock()
	if c.options.Queued && len(c.out) > 0 && len(c.out) <= handedOver && !c.writing && c.err == nil && c.hasRoom(len(c.out)) {
		c.writing = true
		c.send()
		c.writing = false
	}
}

// hasRoom reports whether a write of n bytes certainly fits into the socket's send buffer. If the connection has sent
// few bytes since it last had no open stream, the write fits, because at that time the server had received all earlier
// bytes. Otherwise hasRoom asks the kernel.
func (c *Conn) hasRoom(n int) bool {
	if c.unanswered+n <= handedOver {
		return true
	}
	unsent := c.queues.unsent()
	return unsent >= 0 && unsent+int64(n) <= handedOver
}

// flush sends until nothing is queued. The caller holds mu; flush releases it during writes.
func (c *Conn) flush() {
	c.writing = true
	for len(c.out) > 0 && c.err == nil {
		c.send()
	}
	c.writing = false
}

// send sends all queued bytes. The caller has set c.writing and holds mu; send releases mu during the write.
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
	// Setting a deadline costs a timer operation. To save such operations, set the deadline to twice the timeout from
	// now, and set it again only when less than the timeout is left.
	if now := time.Now(); c.deadline.Sub(now) < writeTimeout {
		c.deadline = now.Add(2 * writeTimeout)
		if err := c.nc.SetWriteDeadline(c.deadline); err != nil {
			return err
		}
	}
	_, err := c.nc.Write(b)
	return err
}

// reply counts a queued reply to a frame of the server. If there are too many replies, it ends the connection. The
// caller holds mu.
func (c *Conn) reply() {
	if c.replies++; c.replies > maxReplies {
		c.failLocked(&ProtocolError{Code: http2.ErrCodeEnhanceYourCalm, Reason: "the server sends frames that need replies, but does not read the replies"})
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

func appendPing(b []byte, flags http2.Flags, data []byte) []byte {
	return append(appendFrame(b, http2.FramePing, flags, 0, 8), data...)
}

// alive sends a PING to a silent server, or ends the connection if the server did not acknowledge the last PING. The
// ping timer calls it.
func (c *Conn) alive() {
	c.Receive() // on a deferred connection, the reply may be unread
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
