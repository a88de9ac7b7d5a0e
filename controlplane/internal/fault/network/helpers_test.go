package network_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/internal/fault/network"
)

// server echoes what it receives. When the client closes a connection, the server closes it too.
type server struct {
	listener net.Listener
	mu       sync.Mutex
	conns    []net.Conn
	got      bytes.Buffer // bytes from all connections
}

func startServer(t *testing.T) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{listener: l}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			running.Go(func() {
				defer c.Close()
				_, _ = io.Copy(c, io.TeeReader(c, s))
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.hangUp()
		running.Wait()
	})
	return s
}

func (s *server) addr() string { return s.listener.Addr().String() }

func (s *server) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(p)
}

func (s *server) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.got.String(), text)
}

func (s *server) accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func (s *server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.Close()
	}
}

// listen opens a link to the server.
func listen(t *testing.T, s *server) *network.Listener {
	t.Helper()
	l, err := network.Listen("kube-apiserver-0", "etcd-0", "127.0.0.1:0", s.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if open, _ := l.Link().Connections(); open != 0 {
			t.Errorf("%d connections are open after Close", open)
		}
	})
	return l
}

func awaitOpen(t *testing.T, l *network.Link, want int) {
	t.Helper()
	await(t, func() bool { open, _ := l.Connections(); return open == want })
}

func dial(t *testing.T, l *network.Listener) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

func say(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, c net.Conn, text string) {
	t.Helper()
	buf := make([]byte, len(text))
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != text {
		t.Fatalf("read %q, %v; want %q", buf, err, text)
	}
}

func exchange(t *testing.T, c net.Conn, text string) time.Duration {
	t.Helper()
	start := time.Now()
	say(t, c, text)
	hear(t, c, text)
	return time.Since(start)
}

// await waits until condition returns true. The time limit of the test binary ends it.
func await(t *testing.T, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		<-tick.C
	}
}

// TestMain fails if a closed object leaves a goroutine behind.
func TestMain(m *testing.M) {
	code := m.Run()
	for end := time.Now().Add(time.Minute); code == 0 && strings.Contains(goroutines(), "fault/network."); runtime.Gosched() {
		if time.Now().After(end) {
			fmt.Println("left behind:\n" + goroutines())
			code = 1
		}
	}
	os.Exit(code)
}

func goroutines() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// isReset reports whether a connection was reset instead of closed.
func isReset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }

func noise(t *testing.T, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	return b
}
