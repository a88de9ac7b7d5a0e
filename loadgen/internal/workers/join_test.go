package workers

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn/h2test"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// noStarter starts no workers.
type noStarter struct{}

func (noStarter) Start(context.Context, Invitation, func(int, error)) (Started, error) {
	return Started{Stop: func() error { return nil }}, nil
}

func (noStarter) Describe(int, string) string { return "" }

// carrier starts workers that wait at their own addresses, as pods do, and passes their connections to the coordinator.
// First it passes the connection of a stranger.
type carrier struct {
	threads
	joined chan bool
}

func (c *carrier) Start(ctx context.Context, i Invitation, ended func(int, error)) (Started, error) {
	for index := range i.Count {
		at := make(chan string, 1)
		w := c.worker(i, index)
		w.Listen = "127.0.0.1:0"
		w.Step = func(_ string, args ...any) {
			if len(args) == 1 {
				at <- fmt.Sprint(args[0])
			}
		}
		c.all.Go(func() {
			if err := w.Work(ctx); err != nil {
				ended(index, err)
			}
		})
		c.all.Go(func() {
			address := <-at
			stranger := c.dial(address)
			_, _ = stranger.Write([]byte("GET / HTTP/1.1\r\n\r\n")) // the coordinator may have closed the connection
			_ = stranger.Close()
			joined, _ := i.Take(c.dial(address))
			c.joined <- joined
		})
	}
	return Started{Stop: func() error { c.all.Wait(); return nil }}, nil
}

func (c *carrier) dial(address string) net.Conn {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		c.t.Error(err)
	}
	return conn
}

// Workers join over connections that the Starter passes to the coordinator, and run their shares.
func TestCarriedConnections(t *testing.T) {
	c := &carrier{threads: threads{t: t, build: "v1"}, joined: make(chan bool, 2)}
	b := newBench(t, 2, reads, func(_ *threads, o *Options) { o.Starter, o.Carried = c, true })
	if err := b.join(); err != nil {
		t.Fatal(err)
	}
	if where := b.fleet.Where(); where != "through the API server" {
		t.Errorf("Where() = %q", where)
	}
	b.fleet.End()
	for range 2 {
		if !<-c.joined {
			t.Error("the coordinator treated a worker's connection as foreign")
		}
	}
}

const reads = `phases: [{name: p, for: 1m, load: [{kind: requests, name: reads, verb: get, rate: 10/s, objects: 4}]}]`

// The coordinator refuses workers that do not belong to the run. Both sides report it in one line, with the remedy.
func TestStrangersAreRefused(t *testing.T) {
	b := newBench(t, 2, reads, func(_ *threads, o *Options) { o.Starter = noStarter{} })
	other := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(other, []byte("0123"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Worker)
		want   string
		told   bool
	}{
		"another token":   {func(w *Worker) { w.TokenFile = other }, "token belongs to another run", true},
		"another build":   {func(w *Worker) { w.Build = "v2" }, "the worker is loadgen v2, but the coordinator is loadgen v1", true},
		"no such index":   {func(w *Worker) { w.Index = 2 }, "there is no worker 2: the run has 2 workers, with the indexes 0 to 1", true},
		"a negative one":  {func(w *Worker) { w.Index = -1 }, "indexes begin at 0", false},
		"no such file":    {func(w *Worker) { w.CAFile += "x" }, "use the file that the coordinator wrote", false},
		"no certificate":  {func(w *Worker) { w.CAFile = w.TokenFile }, "no PEM certificate", false},
		"no port":         {func(w *Worker) { w.Coordinator = "coordinator" }, "not HOST:PORT", false},
		"another program": {func(w *Worker) { w.Coordinator = strings.TrimPrefix(b.server.Config().Host, "https://") }, "does not match --ca", false},
	} {
		w := b.threads.worker(b.invitation(), 0)
		c.change(&w)
		err := w.Work(t.Context())
		if exitcode.Of(err) != exitcode.Usage || !strings.Contains(fmt.Sprint(err), c.want) || strings.Contains(fmt.Sprint(err), "\n") {
			t.Errorf("%s: %v", name, err)
		}
		if c.told {
			h2test.Await(t, "the coordinator to tell of "+name, func() bool { return b.said(c.want) })
		}
	}
}

// The coordinator never shows text of a peer without the token. Many such peers cause only a few lines.
func TestStrangersTextIsNotShown(t *testing.T) {
	b := newBench(t, 2, reads, func(_ *threads, o *Options) { o.Starter = noStarter{} })
	for i := range 3 * maxRefusals {
		conn, err := tls.Dial("tcp", b.fleet.address(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		l := newLink(conn)
		if err := l.send(message{Hello: &hello{Protocol: protocolVersion, Build: "v1", Token: fmt.Sprint(i), Name: "evil\x1b[2J\nloadgen: PASS"}}); err != nil {
			t.Fatal(err)
		}
		if got, err := l.receive(largestHello, helloWithin); err != nil || !strings.Contains(got.Refused, "token belongs to another run") {
			t.Errorf("%+v, %v", got, err)
		}
		conn.Close()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	refusals := 0
	for _, step := range b.steps {
		if strings.ContainsAny(step, "\x1b\n") || strings.Contains(step, "evil") {
			t.Errorf("%q", step)
		}
		if strings.Contains(step, "was rejected") {
			refusals++
		}
	}
	if refusals != 1 {
		t.Errorf("%d lines about refusals, want 1: %q", refusals, b.steps)
	}
}

// The coordinator gives up on a hello after its time limit, even while parts of it still arrive.
func TestSlowHelloIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		var sender sync.WaitGroup
		sender.Go(func() {
			for _, err := far.Write([]byte{0}); err == nil; _, err = far.Write([]byte{0}) {
				time.Sleep(helloWithin / 2) // virtual
			}
		})
		defer sender.Wait()
		defer near.Close()
		began := time.Now()
		_, err := (&Fleet{peers: map[*link]bool{}}).serve(newLink(near))
		if !isTimeout(err) || time.Since(began) != helloWithin {
			t.Errorf("serve returned after %v: %v", time.Since(began), err)
		}
	})
}

// The coordinator refuses a message that is too large when it has read the length. Only the sender's connection ends.
func TestTooLargeMessageEndsItsWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		announced := func() *link {
			near, far := net.Pipe()
			go func() { _, _ = far.Write(binary.BigEndian.AppendUint32(nil, 500<<20)) }()
			return newLink(near)
		}
		f := &Fleet{peers: map[*link]bool{}, members: make([]*member, 2), failing: make(chan struct{})}
		if _, err := f.serve(announced()); err == nil || !strings.Contains(err.Error(), "a message has 524288000 bytes, but the maximum is 16384") {
			t.Errorf("error for a peer that has not joined: %v", err)
		}
		for i := range f.members {
			f.members[i] = newMember(f, announced(), hello{Index: i, Name: "w"})
		}
		f.members[0].serve()
		if lost := f.members[0].lost; lost == nil || !strings.Contains(lost.Why, "a message has 524288000 bytes, but the maximum is 67108864") {
			t.Errorf("error for a worker that has joined: %v", lost)
		}
		if f.members[1].lost != nil {
			t.Errorf("the other worker was lost too: %v", f.members[1].lost)
		}
		f.members[1].leave()
	})
}

// The coordinator removes control characters from all text of a worker: name, steps, errors, limits, and the reason why
// it was lost.
func TestTextOfWorkersIsCleaned(t *testing.T) {
	const evil = "evil\x1b[2J\nloadgen: PASS"
	var said []string
	f := &Fleet{members: make([]*member, 1), failing: make(chan struct{}), step: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
	near, far := net.Pipe()
	defer far.Close()
	m := newMember(f, newLink(near), hello{Name: evil})
	f.members[0] = m
	m.take(message{Step: evil}, time.Now())
	answer := m.ask(call{Verb: verbResults})
	m.take(message{Reply: &reply{ID: 1, Error: evil, Results: &results{
		Saturated: map[string][]string{"": {evil}}, Generator: result.Generator{Saturated: []string{evil}},
	}}}, time.Now())
	_, err := m.await(t.Context(), answer)
	m.lose("has failed: " + evil)
	said = append(said, fmt.Sprint(err), fmt.Sprint(f.Failed()), m.summary(m.results).Lost)
	said = append(append(said, f.Saturation("")...), m.results.Generator.Saturated...)
	for _, text := range said {
		if strings.ContainsAny(text, "\x1b\n") || !strings.Contains(text, "evil") {
			t.Errorf("%q", text)
		}
	}
	if len(said) != 6 {
		t.Errorf("%d strings shown, want 6: %q", len(said), said)
	}
}

// A worker gets only the credentials of the nodes in its share. A measurement that arrives too early ends the worker,
// but not the coordinator.
func TestWorkersGetTheirShare(t *testing.T) {
	f := &Fleet{members: make([]*member, 3), nodes: &node.Config{NamePrefix: "sg-", Spec: scenario.Nodes{Count: 10}}, failing: make(chan struct{})}
	near, far := net.Pipe()
	defer far.Close()
	m := newMember(f, newLink(near), hello{Index: 1, Name: "w"})
	f.members[1] = m
	for name, want := range map[string]bool{
		"sg-1": true, "sg-4": true, "sg-7": true, "sg-0": false, "sg-10": false, "sg-13": false, "sg-01": false, "sg-+1": false, "sg--2": false, "prod-node-1": false, "1": false, "": false,
	} {
		if got := m.owns(name); got != want {
			t.Errorf("owns(%q) = %v, want %v", name, got, want)
		}
	}
	if g, err := m.credentials("prod-node-1"); err == nil || !strings.Contains(err.Error(), "does not belong to this worker") || g.Cert != nil {
		t.Errorf("error for credentials of another node: %v", err)
	}
	m.take(message{Slot: &samples.Slot{}}, time.Now())
	if m.lost == nil || !strings.Contains(m.lost.Why, "before the run began") {
		t.Errorf("%v", m.lost)
	}
}

// badListener is a listener whose Accept returns the errors of a list, one after another.
type badListener struct {
	net.Listener
	errs []error
}

func (l *badListener) Accept() (net.Conn, error) {
	err := l.errs[0]
	l.errs = l.errs[1:]
	return nil, err
}

// The coordinator accepts connections until its listener is closed, even after it had no file descriptors left.
func TestAcceptsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &badListener{errs: []error{syscall.EMFILE, syscall.ECONNABORTED, net.ErrClosed}}
		(&Fleet{listener: l}).accept()
		if len(l.errs) > 0 {
			t.Errorf("the worker gave up %d errors too early", len(l.errs))
		}
	})
}

// While too many peers have not sent the token, the coordinator refuses further peers.
func TestTooManyPeersAreRefused(t *testing.T) {
	f := &Fleet{peers: map[*link]bool{}}
	for range maxPeers {
		f.peers[&link{}] = true
	}
	near, far := net.Pipe()
	defer far.Close()
	if _, err := f.serve(newLink(near)); !errors.Is(err, errTooManyPeers) {
		t.Error(err)
	}
}

// Peers that send invalid messages do not affect the run.
func TestNonsenseDoesNotDisturb(t *testing.T) {
	b := newBench(t, 1, reads, func(_ *threads, o *Options) { o.Starter = noStarter{} })
	for _, text := range []string{"", "GET / HTTP/1.1\r\n\r\n", "\xff\xff\xff\xff", "\x00\x00\x00\x02{}", "\x00\x00\x00\x05hello"} {
		conn, err := tls.Dial("tcp", b.fleet.address(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Error(err)
		}
		conn.Close()
	}
	plain, err := net.Dial("tcp", b.fleet.address())
	if err != nil {
		t.Fatal(err)
	}
	plain.Close()
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- b.threads.worker(b.invitation(), 0).Work(ctx) }()
	if err := b.join(); err != nil {
		t.Errorf("the worker could not join: %v", err)
	}
	cancel()
	<-done
}

// If workers are missing when the time is over, the error names them and the last refusal.
func TestMissingWorkersAreNamed(t *testing.T) {
	b := newBench(t, 3, reads, func(_ *threads, o *Options) { o.Starter, o.Within = noStarter{}, 200*time.Millisecond })
	w := b.threads.worker(b.invitation(), 1)
	w.Build = "v2"
	_ = w.Work(t.Context())
	err := b.join()
	if exitcode.Of(err) != exitcode.Environment || !strings.Contains(err.Error(), "workers 0, 1, 2 of 3 did not join") || !strings.Contains(err.Error(), "loadgen v2") {
		t.Errorf("error without any worker: %v", err)
	}
}

// A worker reports an unreachable coordinator once, tries again, and finally returns an error of one line.
func TestCoordinatorThatIsNotReached(t *testing.T) {
	b := newBench(t, 1, reads, func(_ *threads, o *Options) { o.Starter = noStarter{} })
	w := b.threads.worker(b.invitation(), 0)
	var told []string
	w.Coordinator, w.Within, w.Step = "127.0.0.1:1", 10*time.Millisecond, func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
	err := w.Work(t.Context())
	if exitcode.Of(err) != exitcode.Environment || !strings.Contains(err.Error(), "was not reached within 10ms") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error without a coordinator: %v; reported %q", err, told)
	}
}
