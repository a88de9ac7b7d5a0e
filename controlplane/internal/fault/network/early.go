package network

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// errGivenUp ends a connection whose client is gone before it got through.
var errGivenUp = errors.New("the client gave up")

// earlyBytes bounds what is read of a client that waits for the link. A TLS
// ClientHello has some 1500 bytes; that a client sent more and left is noticed only
// when the link lets it through.
const earlyBytes = 64 << 10

// early listens to a client while its connection waits for the link: without
// that, the end of one that has given up would be noticed only when the link is
// restored, and each attempt of a partition would hold a descriptor until then.
type early struct {
	client *net.TCPConn
	from   io.Reader // what the client sends

	finished chan struct{}
	ended    chan struct{} // closed when the client has ended its direction, or is gone
	gone     chan struct{} // closed when it is gone for certain
	said     []byte        // read after finished
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

// stop ends the listening and gives all that the client sends, from the first byte.
func (e *early) stop() io.Reader {
	_ = e.client.SetReadDeadline(time.Now()) // one that is closed is read no more either
	<-e.finished
	_ = e.client.SetReadDeadline(time.Time{})
	return io.MultiReader(bytes.NewReader(e.said), e.from)
}
