package h2conn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// eachSocket runs a test with connections configured as in Dial, with and without a poller.
func eachSocket(t *testing.T, test func(t *testing.T, p *Poller)) {
	t.Run("runtime", func(t *testing.T) { test(t, nil) })
	t.Run("poller", func(t *testing.T) {
		p, err := NewPoller(time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close) // runs after the cleanups of the connections
		test(t, p)
	})
}

// sockets returns both ends of a connection. The end `ours` is configured as in Dial.
func sockets(t *testing.T, p *Poller) (ours net.Conn, theirs *net.TCPConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if ours, err = p.take(nc); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close(); peer.Close() })
	return ours, peer.(*net.TCPConn)
}

// TestSocketMovesAll sends, in both directions, more data than the kernel can buffer, so that a write takes many system
// calls.
func TestSocketMovesAll(t *testing.T) { eachSocket(t, testSocketMovesAll) }

func testSocketMovesAll(t *testing.T, p *Poller) {
	ours, theirs := sockets(t, p)
	sent := bytes.Repeat([]byte("0123456789abcde\n"), 1<<20)
	echoed := make(chan error, 1)
	go func() {
		got := make([]byte, len(sent))
		_, err := io.ReadFull(theirs, got)
		if err == nil && !bytes.Equal(got, sent) {
			err = errors.New("something else came")
		}
		if err == nil {
			_, err = theirs.Write(got)
		}
		theirs.Close()
		echoed <- err
	}()
	if n, err := ours.Write(sent); n != len(sent) || err != nil {
		t.Fatalf("Write: %d of %d bytes, %v", n, len(sent), err)
	}
	if got, err := io.ReadAll(ours); err != nil || !bytes.Equal(got, sent) { // until the end of the stream
		t.Errorf("got %d bytes back, %v", len(got), err)
	}
	if err := <-echoed; err != nil {
		t.Error(err)
	}
}

// Callers check for errors, so these are the same as on any connection.
func TestSocketErrors(t *testing.T) { eachSocket(t, testSocketErrors) }

func testSocketErrors(t *testing.T, p *Poller) {
	b := make([]byte, 1)
	t.Run("reset", func(t *testing.T) {
		ours, theirs := sockets(t, p)
		if err := errors.Join(theirs.SetLinger(0), theirs.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := ours.Read(b); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read: %v", err)
		}
		if _, err := ours.Write(b); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write: %v", err)
		}
	})
	t.Run("deadline", func(t *testing.T) {
		ours, _ := sockets(t, p)
		if p == nil { // a poller's connections have no read deadlines
			if err := ours.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if _, err := ours.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("read: %v", err)
			}
		}
		if err := ours.SetWriteDeadline(time.Now().Add(time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if n, err := ours.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Write of 64 MiB before the deadline: %d bytes, %v", n, err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		ours, _ := sockets(t, p)
		read := make(chan error)
		go func() {
			_, err := ours.Read(make([]byte, 1))
			read <- err
		}()
		ours.Close()
		if err := <-read; !errors.Is(err, net.ErrClosed) {
			t.Errorf("read: %v", err)
		}
		if _, err := ours.Write(b); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write: %v", err)
		}
	})
}
