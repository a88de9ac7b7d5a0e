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

// eachSocket runs a test with connections like those of Dial, without and with a poller.
func eachSocket(t *testing.T, test func(t *testing.T, p *Poller)) {
	t.Run("runtime", func(t *testing.T) { test(t, nil) })
	t.Run("poller", func(t *testing.T) {
		p, err := NewPoller(time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close) // after the connections' cleanups
		test(t, p)
	})
}

// sockets returns a connection's two ends; ours is set up like in Dial.
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

// More data than the kernel can buffer, so that a write takes many system calls, in both directions.
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
		t.Fatalf("wrote %d of %d: %v", n, len(sent), err)
	}
	if got, err := io.ReadAll(ours); err != nil || !bytes.Equal(got, sent) { // to the end
		t.Errorf("received %d bytes, %v", len(got), err)
	}
	if err := <-echoed; err != nil {
		t.Error(err)
	}
}

// Errors are the same as on any connection, because callers look for them.
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
		if p == nil { // a poller's have none
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
			t.Errorf("wrote %d: %v", n, err)
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
