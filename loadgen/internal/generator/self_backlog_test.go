//go:build linux

package generator

import (
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
)

// Unread data of connections saturates the generator if it stays unread, but not if it is a burst that the generator
// reads.
func TestUnreadBacklog(t *testing.T) {
	full := connect(t, 64)
	m, err := NewSelfMeter(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	m.Backlog(func() int64 { return unread(t, full) })
	for unread(t, full) <= MaxStandingBacklog {
		runtime.Gosched()
	}
	for range standingLooks - 1 {
		m.look()
	}
	if g := m.Results(); g.BacklogMax <= MaxStandingBacklog || len(g.Saturated) != 0 {
		t.Errorf("a backlog of %d bytes that may be a burst saturates the generator: %q", g.BacklogMax, g.Saturated)
	}
	m.look()
	for _, c := range full {
		_, _ = io.Copy(io.Discard, c) // until the other side has closed the connection
	}
	m.look()
	if s := strings.Join(m.Results().Saturated, "\n"); !strings.Contains(s, "of received responses and events were unread (limit 1.0 MB)") {
		t.Errorf("after %d samples with unread data: %q", standingLooks, s)
	}
}

// connect opens connections with 32 KB of unread data each.
func connect(t *testing.T, n int) (readers []*net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range n {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		readers = append(readers, c.(*net.TCPConn))
		w, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, 32<<10)); err != nil {
			t.Fatal(err)
		}
		w.Close()
	}
	return readers
}

// unread returns the number of bytes that the kernel holds for the readers.
func unread(t *testing.T, readers []*net.TCPConn) (sum int64) {
	t.Helper()
	for _, c := range readers {
		raw, err := c.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		_ = raw.Control(func(fd uintptr) {
			n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
			if err != nil {
				t.Fatal(err)
			}
			sum += int64(n)
		})
	}
	return sum
}
