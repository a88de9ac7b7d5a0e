package network

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const dialPatience = 10 * time.Second

// errCutOff is the error of a connection whose link is closed.
var errCutOff = errors.New("the link is closed")

type conn struct {
	number           int64        // number of this connection among all connections of its link, starting at 1
	client, upstream *net.TCPConn // upstream is nil until it is dialled
	out, back        *direction   // nil until upstream is dialled
}

func (c *conn) directions() []*direction {
	if c.out == nil {
		return nil
	}
	return []*direction{c.out, c.back}
}

// abort closes the connections to the client and to the upstream immediately. The caller holds Link.mu.
func (c *conn) abort() {
	reset(c.client)
	if c.upstream != nil {
		reset(c.upstream)
	}
	for _, d := range c.directions() {
		d.turn(Condition{}) // so that the queued data drains
	}
}

// reset closes a connection so that its peer gets an error (RST) instead of an end of file.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// carry forwards a client's connection over the link until both ends have closed it. It reads the client's bytes from
// the reader `from`. When carry has dialled the other end, it calls `connected` with nil or the error. If `connected`
// returns an error, carry resets the client's connection.
func (l *Link) carry(client *net.TCPConn, from io.Reader, connected func(error) error) {
	c := &conn{client: client}
	if !l.add(c) {
		reset(client)
		return
	}
	defer l.remove(c)
	from, err := l.connect(c, from)
	if err != nil {
		if connected(err) != nil {
			reset(client)
		}
		client.Close()
		return
	}
	if connected(nil) != nil {
		reset(client)
		reset(c.upstream)
		return
	}
	l.begin(c)
	var both sync.WaitGroup
	both.Go(func() { l.forward(c, c.out, from, c.upstream) })
	both.Go(func() { l.forward(c, c.back, c.upstream, client) })
	both.Wait()
	client.Close()
	c.upstream.Close()
}

func (l *Link) add(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life.Err() != nil {
		return false
	}
	l.opened++
	c.number = l.opened
	l.conns[c] = struct{}{}
	l.running.Add(1)
	return true
}

func (l *Link) remove(c *conn) {
	l.mu.Lock()
	delete(l.conns, c)
	l.mu.Unlock()
	l.running.Done()
}

func (l *Link) begin(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.out = newDirection(l.condition, streamOf(l.String(), c.number, false))
	c.back = newDirection(l.condition, streamOf(l.String(), c.number, true))
	if l.life.Err() != nil {
		c.abort()
	}
}

// connect waits for the time of a round trip over the link and then dials the other end. It returns a reader of all
// bytes from the client, including the bytes that arrived during the wait.
func (l *Link) connect(c *conn, from io.Reader) (io.Reader, error) {
	if now, _ := l.state(); now.Cut || now.Delay > 0 {
		e := listenEarly(c.client, from)
		err := l.awaitRoundTrip(e)
		if from = e.stop(); err != nil {
			return from, err
		}
	}
	ctx, cancel := context.WithTimeout(l.life, dialPatience)
	defer cancel()
	var dialer net.Dialer
	up, err := dialer.DialContext(ctx, "tcp", l.upstream)
	if err != nil {
		return from, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c.upstream = up.(*net.TCPConn)
	return from, nil
}

// awaitRoundTrip waits for the time of a round trip over the link. A change of the link's condition restarts the wait.
// It returns errGivenUp if the client gives up. On a cut link, an end of file from the client means that the client has
// given up, because behind a real cut the client would have no connection to half-close. On a slow link, an end of file
// may also mean that the client has sent everything and waits for a response.
func (l *Link) awaitRoundTrip(e *early) error {
	for {
		condition, changed := l.state()
		gone := e.ended
		var passed <-chan time.Time
		if !condition.Cut {
			gone = e.gone
			if condition.Delay == 0 {
				return nil
			}
			passed = time.After(2 * condition.Delay)
		}
		select {
		case <-passed:
			return nil
		case <-changed:
		case <-gone:
			return errGivenUp
		case <-l.life.Done():
			return errCutOff
		}
	}
}

func (l *Link) forward(c *conn, d *direction, from io.Reader, to *net.TCPConn) {
	var reading sync.WaitGroup
	reading.Go(func() { d.read(from) })
	if _, err := io.Copy(to, d.out); err != nil {
		// The receiver has disconnected. Reset the sender's connection, so that the sender notices immediately.
		l.mu.Lock()
		c.abort()
		l.mu.Unlock()
		_, _ = io.Copy(io.Discard, d.out)
	} else {
		_ = to.CloseWrite()
	}
	reading.Wait()
	<-d.ended
}

func (l *Link) close() {
	l.mu.Lock()
	l.end()
	for c := range l.conns {
		c.abort()
	}
	l.mu.Unlock()
	l.running.Wait()
}

// errGivenUp is the error of a connection whose client disconnected before the link let the connection through.
var errGivenUp = errors.New("the client gave up")

// earlyBytes is the maximum number of bytes that early reads from a client while its connection waits for the link.
const earlyBytes = 64 << 10

// early reads from a client while the client's connection waits for the link, to detect when the client gives up.
// Otherwise each connection attempt during a partition would hold a descriptor until the link is restored.
type early struct {
	client *net.TCPConn
	from   io.Reader // reader of the client's bytes

	finished chan struct{}
	ended    chan struct{} // closed when the client has closed or half-closed its connection
	gone     chan struct{} // closed when a read fails, because the client has closed its connection completely
	said     []byte        // bytes read from the client; complete when finished is closed
}

func listenEarly(client *net.TCPConn, from io.Reader) *early {
	e := &early{client: client, from: from, finished: make(chan struct{}), ended: make(chan struct{}), gone: make(chan struct{})}
	go e.read()
	return e
}

func (e *early) read() {
	defer close(e.finished)
	buf := make([]byte, 4<<10)
	for len(e.said) < earlyBytes {
		n, err := e.from.Read(buf)
		e.said = append(e.said, buf[:n]...)
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			return
		case errors.Is(err, io.EOF):
			close(e.ended)
			return
		default:
			close(e.ended)
			close(e.gone)
			return
		}
	}
}

// stop stops reading ahead and returns a reader of everything that the client sends, from the first byte.
func (e *early) stop() io.Reader {
	_ = e.client.SetReadDeadline(time.Now()) // fails only on a closed connection, which also ends the read
	<-e.finished
	_ = e.client.SetReadDeadline(time.Time{})
	return io.MultiReader(bytes.NewReader(e.said), e.from)
}
