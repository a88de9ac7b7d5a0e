package network_test

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/internal/fault/network"
)

func TestHealthyLinkForwardsBothDirections(t *testing.T) {
	l := listen(t, startServer(t))
	const connections, size = 4, 1 << 20
	var all sync.WaitGroup
	for range connections {
		c, sent := dial(t, l), noise(t, size)
		all.Go(func() {
			if _, err := c.Write(sent); err != nil {
				t.Error(err)
			}
			if err := c.CloseWrite(); err != nil { // end one direction only
				t.Error(err)
			}
		})
		all.Go(func() {
			got, err := io.ReadAll(c)
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("received %d of %d bytes: %v", len(got), len(sent), err)
			}
		})
	}
	all.Wait()
	awaitOpen(t, l.Link(), 0)
	if _, opened := l.Link().Connections(); opened != connections {
		t.Errorf("%d connections were opened, want %d", opened, connections)
	}
}

func TestDelayAppliesInEachDirection(t *testing.T) {
	l := listen(t, startServer(t))
	c := dial(t, l)
	exchange(t, c, "before")

	const delay = 20 * time.Millisecond
	l.Link().Delay(delay, 0, 0)
	for range 3 {
		if took := exchange(t, c, "slow"); took < 2*delay {
			t.Errorf("a round trip on an open connection took %s with a delay of %s", took, delay)
		}
	}
	start := time.Now()
	if exchange(t, dial(t, l), "new"); time.Since(start) < 4*delay {
		t.Errorf("dial and exchange took %s with a delay of %s", time.Since(start), delay)
	}
}

// Changes of the delay neither reorder nor lose bytes.
func TestChangingConditionsLosesNoBytes(t *testing.T) {
	l := listen(t, startServer(t))
	c, sent := dial(t, l), noise(t, 4<<20)
	var writing sync.WaitGroup
	writing.Go(func() {
		for rest := sent; len(rest) > 0; rest = rest[4<<10:] {
			if _, err := c.Write(rest[:4<<10]); err != nil {
				t.Error(err)
				return
			}
		}
	})
	conditions := []network.Condition{{Delay: 2 * time.Millisecond, Jitter: 2 * time.Millisecond}, {Cut: true}, {}, {Delay: time.Millisecond}, {Cut: true}}
	got := make([]byte, len(sent))
	for i, step := 0, len(sent)/64; i < len(got); i += step {
		l.Link().Set(conditions[i/step%len(conditions)])
		l.Link().Restore() // a cut would block the next read
		if _, err := io.ReadFull(c, got[i:i+step]); err != nil {
			t.Fatal(err)
		}
	}
	writing.Wait()
	if !bytes.Equal(got, sent) {
		t.Error("the bytes received differ from the bytes sent")
	}
}

func TestCutFreezesOpenConnections(t *testing.T) {
	s := startServer(t)
	cut, sound := listen(t, s), listen(t, s)
	c, other := dial(t, cut), dial(t, sound)
	exchange(t, c, "before")

	cut.Link().Cut()
	say(t, c, "lost?")
	for range 100 { // meanwhile the server responds to others
		exchange(t, other, "sound")
	}
	if s.has("lost?") {
		t.Error("data passed a cut link")
	}
	if got := cut.Link().Condition(); !got.Cut {
		t.Errorf("condition = %+v, want Cut", got)
	}

	cut.Link().Restore()
	hear(t, c, "lost?")
	exchange(t, c, "after")
}

func TestRestoreEndsCutAndDelay(t *testing.T) {
	s := startServer(t)
	l := listen(t, s)
	c := dial(t, l)
	exchange(t, c, "before")
	l.Link().Delay(time.Hour, 0, 0)
	say(t, c, "slow")
	l.Link().Cut()
	if got := l.Link().Condition(); got != (network.Condition{Delay: time.Hour, Cut: true}) {
		t.Errorf("a cut changed the delay: %+v", got)
	}
	l.Link().Restore()
	hear(t, c, "slow")
}

func TestCutHoldsNewConnections(t *testing.T) {
	s := startServer(t)
	l := listen(t, s)
	l.Link().Cut()
	c := dial(t, l)
	say(t, c, "hello")
	awaitOpen(t, l.Link(), 1)
	if n := s.accepted(); n != 0 {
		t.Errorf("%d connections reached the server over a cut link", n)
	}
	l.Link().Restore()
	hear(t, c, "hello")
}

// A client of a cut link gives up and dials again while the link is cut. None of these connections may remain, or the
// supervisor runs out of descriptors.
func TestAbandonedDialLeavesNoConnection(t *testing.T) {
	s := startServer(t)
	l := listen(t, s)
	l.Link().Cut()
	const attempts = 20
	for i := range attempts {
		c := dial(t, l)
		say(t, c, "hello")
		await(t, func() bool { _, opened := l.Link().Connections(); return opened == int64(i+1) })
		if i%2 == 0 {
			_ = c.SetLinger(0) // a reset instead of an orderly close
		}
		c.Close()
	}
	awaitOpen(t, l.Link(), 0)
	last := dial(t, l)
	say(t, last, "the last one")
	l.Link().Restore()
	hear(t, last, "the last one")
	if n := s.accepted(); n != 1 {
		t.Errorf("%d connections reached the server; the client had abandoned %d of them", n, n-1)
	}
}

// On a slow link, a client may send all its data before the link has connected it.
func TestClientClosesBeforeDialEnds(t *testing.T) {
	l := listen(t, startServer(t))
	l.Link().Delay(20*time.Millisecond, 0, 0)
	for _, size := range []int{5, 1 << 20} { // the second size is more than the link reads early
		c, sent := dial(t, l), noise(t, size)
		var writing sync.WaitGroup
		writing.Go(func() {
			if _, err := c.Write(sent); err != nil {
				t.Error(err)
			}
			if err := c.CloseWrite(); err != nil {
				t.Error(err)
			}
		})
		if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("received %d of %d bytes: %v", len(got), size, err)
		}
		writing.Wait()
	}
}

func TestCutHidesPeerClose(t *testing.T) {
	s := startServer(t)
	l := listen(t, s)
	c := dial(t, l)
	exchange(t, c, "before")
	l.Link().Cut()
	s.hangUp()
	ended := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		ended <- err
	}()
	exchange(t, dial(t, listen(t, s)), "the server lives")
	select {
	case err := <-ended:
		t.Errorf("the client saw the server's close over a cut link: %v", err)
	default:
	}
	l.Link().Restore()
	if err := <-ended; err != io.EOF {
		t.Errorf("read after Restore = %v, want io.EOF", err)
	}
}

// A receiver that does not read must block neither a change nor Close.
func TestReceiverWithoutReads(t *testing.T) {
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	l, err := network.Listen("a", "b", "127.0.0.1:0", deaf.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var writing sync.WaitGroup
	var reads atomic.Int64
	writing.Go(func() { // blocks when all queues are full, and returns when the link is closed
		_, _ = io.Copy(c, endless{&reads})
	})
	sent, still := int64(0), 0
	await(t, func() bool { // no more data passes
		before := sent
		if sent = reads.Load(); sent != before {
			still = 0
		}
		still++
		return sent > 0 && still > 30
	})
	l.Link().Cut()
	l.Link().Delay(time.Millisecond, 0, 0)
	l.Link().Restore()
	l.Link().Cut()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	writing.Wait()
}

type endless struct{ reads *atomic.Int64 }

func (e endless) Read(p []byte) (int, error) {
	e.reads.Add(1)
	return len(p), nil
}

func TestRefusedDialResetsClient(t *testing.T) {
	s := startServer(t)
	l := listen(t, s)
	s.listener.Close()
	c, err := net.Dial("tcp", l.Addr())
	if err == nil { // the reset may come before or after Dial returns
		defer c.Close()
		_, err = c.Read(make([]byte, 1))
	}
	if !isReset(err) {
		t.Errorf("read = %v, want a reset", err)
	}
}

func TestListensOnLoopbackOnly(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "127.0.0.1"} {
		if l, err := network.Listen("a", "b", address, "127.0.0.1:1"); err == nil {
			l.Close()
			t.Errorf("the link listens on %s", address)
		} else if !strings.Contains(err.Error(), "a -> b") {
			t.Errorf("error for %s = %v, want the name of the link", address, err)
		}
	}
}
