package traffic

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sink is a connection that remembers its writes.
type sink struct {
	net.Conn
	err error

	mu     sync.Mutex
	writes [][]byte
}

func (s *sink) sent() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

func (s *sink) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, bytes.Clone(p))
	return len(p), nil
}

func (s *sink) Close() error { return nil }

func TestSmallWritesGoTogetherAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := &sink{}
		c := &coalescing{Conn: under}
		write := func(p string) {
			if n, err := c.Write([]byte(p)); n != len(p) || err != nil {
				t.Fatalf("Write: %d, %v", n, err)
			}
		}
		large := string(bytes.Repeat([]byte("L"), smallWrite+1))
		write("a")
		write("b")
		if sent := under.sent(); len(sent) != 0 {
			t.Fatalf("%q sent at once", sent)
		}
		pause(t.Context(), coalesceDelay+time.Millisecond)
		write("c")
		write(large) // never delayed, never before c
		write(large)
		write("d")
		pause(t.Context(), coalesceDelay+time.Millisecond)
		write("e")
		c.urgent.Add(1) // a request is on its way
		write("f")
		write("g")
		c.urgent.Add(-1)
		write("h")
		must(t, c.Close())
		want := []string{"ab", "c" + large, large, "d", "ef", "g", "h"}
		got := under.sent()
		if len(got) != len(want) {
			t.Fatalf("%d writes %q, want %d", len(got), got, len(want))
		}
		for i, w := range want {
			if string(got[i]) != w {
				t.Errorf("write %d is %q, want %q", i, got[i], w)
			}
		}
	})
}

func TestAFailedDelayedWriteIsToldByTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken pipe")
		c := &coalescing{Conn: &sink{err: broken}}
		if _, err := c.Write([]byte("a")); err != nil {
			t.Fatalf("the delayed write fails at once: %v", err)
		}
		pause(t.Context(), coalesceDelay+time.Millisecond)
		if _, err := c.Write([]byte("b")); !errors.Is(err, broken) {
			t.Errorf("the next write gives %v, want %v", err, broken)
		}
		must(t, c.Close())
	})
}
