package workers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
)

// Worker holds the options of a worker process.
type Worker struct {
	// Coordinator is the coordinator's address, HOST:PORT. If it is empty, the worker waits on Listen for the
	// coordinator to connect.
	Coordinator string
	// Listen is the worker's own address, HOST:PORT. The worker uses it only if Coordinator is empty.
	Listen string
	// CAFile and TokenFile are the paths of files that the coordinator wrote.
	CAFile, TokenFile string
	// Index is the worker's index, from 0.
	Index int
	// Build is the build of this program. It must equal the coordinator's build.
	Build string
	// Within is the time limit to connect to the coordinator. 0 means five minutes.
	Within time.Duration
	// Step receives progress messages, each of one line.
	Step func(format string, args ...any)

	now func() time.Time // for tests; nil means time.Now
}

const (
	// dialAgain is the pause between attempts to connect to the coordinator.
	dialAgain  = time.Second
	dialWithin = 10 * time.Second
)

// Work connects to the coordinator and generates this worker's share of the load until the run ends. It returns a usage
// error if an option is invalid or the coordinator refuses the worker. It returns an environment error if the
// coordinator is unreachable or lost.
func (w Worker) Work(ctx context.Context) error {
	if w.Within == 0 {
		w.Within = defaultWithin
	}
	if w.now == nil {
		w.now = time.Now
	}
	if w.Index < 0 {
		return exitcode.Usagef("--index %d: indexes begin at 0", w.Index)
	}
	flag, address := "coordinator", w.Coordinator
	if address == "" {
		flag, address = "listen", w.Listen
	}
	if err := CheckAddress(flag, address); err != nil {
		return exitcode.UsageError(err)
	}
	ca, err := userfile.Read(w.CAFile, userfile.Text)
	if err != nil {
		return exitcode.Usagef("--ca %s: %w (use the file that the coordinator wrote)", w.CAFile, err)
	}
	config, err := clientTLS(ca)
	if err != nil {
		return exitcode.Usagef("--ca %s: %w (use the file that the coordinator wrote)", w.CAFile, err)
	}
	token, err := userfile.Read(w.TokenFile, userfile.Text)
	if err != nil {
		return exitcode.Usagef("--token %s: %w (use the file that the coordinator wrote)", w.TokenFile, err)
	}
	dial := w.reach
	if w.Coordinator == "" {
		dial, w.Coordinator = w.await, w.Listen
	}
	l, err := dial(ctx, config)
	if err != nil {
		return err
	}
	defer l.conn.Close()
	// Close the connection when ctx ends, so that Work does not wait for the next message.
	defer context.AfterFunc(ctx, func() { _ = l.conn.Close() })()
	err = w.join(ctx, l, strings.TrimSpace(string(token)))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// reach connects to the coordinator. It retries for the duration w.Within.
func (w Worker) reach(ctx context.Context, config *tls.Config) (*link, error) {
	until := time.Now().Add(w.Within)
	told := false
	for {
		attempt, cancel := context.WithTimeout(ctx, dialWithin)
		conn, err := (&tls.Dialer{Config: config}).DialContext(attempt, "tcp", w.Coordinator)
		cancel()
		if err == nil {
			return newLink(conn), nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if stranger := new(x509.UnknownAuthorityError); errors.As(err, stranger) || errors.As(err, new(x509.HostnameError)) {
			return nil, exitcode.Usagef("the certificate of the server at %s does not match --ca %s (is the file from an earlier run?)", w.Coordinator, w.CAFile)
		}
		if !time.Now().Add(dialAgain).Before(until) {
			return nil, exitcode.Environmentf("the coordinator at %s was not reached within %v: %w (is the run still active? can this machine reach that address?)",
				w.Coordinator, w.Within, cause(err))
		}
		if !told {
			told = true
			w.Step("the coordinator at %s cannot be reached: %v; trying again until %s", w.Coordinator, cause(err), until.Format(time.TimeOnly))
		}
		if !apiclient.Pause(ctx, dialAgain) {
			return nil, ctx.Err()
		}
	}
}

// await listens until the coordinator connects. It closes and reports connections from other peers.
func (w Worker) await(ctx context.Context, config *tls.Config) (*link, error) {
	listener, err := net.Listen("tcp", w.Listen)
	if err != nil {
		return nil, exitcode.Environmentf("listen at %s: %w (name an address of this machine with a free port)", w.Listen, cause(err))
	}
	defer listener.Close()
	waiting, cancel := context.WithTimeout(ctx, w.Within)
	defer cancel()
	defer context.AfterFunc(waiting, func() { _ = listener.Close() })()
	w.Step("waiting at %s for the coordinator", listener.Addr())
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, exitcode.Environmentf("the coordinator did not connect to %s within %v (is the run still active? does it have the permission to forward this port?)", w.Listen, w.Within)
		}
		shake, cancel := context.WithTimeout(waiting, dialWithin)
		secure := tls.Client(conn, config)
		err = secure.HandshakeContext(shake)
		cancel()
		if err == nil {
			return newLink(secure), nil
		}
		_ = conn.Close() // the handshake has failed
		w.Step("the client at %s is not the coordinator that belongs to --ca %s: %v", conn.RemoteAddr(), w.CAFile, cause(err))
	}
}

// cause returns the underlying reason of a network error, without operation and addresses.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// join sends a hello to the coordinator, waits for the worker's share of the loads and nodes, and runs it.
func (w Worker) join(ctx context.Context, l *link, token string) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	name := fmt.Sprintf("%s/%d", host, os.Getpid())
	if err := l.send(message{Hello: &hello{Protocol: protocolVersion, Build: w.Build, Token: token, Index: w.Index, Name: name}}); err != nil {
		return w.lost(err)
	}
	alive, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // heartbeats, until stop or the end of the connection
		for apiclient.Pause(alive, aliveEvery) && l.send(message{}) == nil {
		}
	}()
	for {
		m, err := l.receive(largestMessage, lostAfter)
		switch {
		case err != nil:
			return w.lost(err)
		case m.Refused != "":
			return exitcode.Usagef("%[2]s rejected worker %[1]d: %[3]s", w.Index, w.Coordinator, m.Refused)
		case m.Welcome != nil:
			w.Step("joined %s as worker %d of %d", w.Coordinator, w.Index, m.Welcome.Share.Of)
			return w.serve(ctx, l, *m.Welcome)
		}
	}
}

// lost returns the error to report when the connection has failed with err.
func (w Worker) lost(err error) error {
	switch {
	case isTimeout(err):
		err = fmt.Errorf("no message from it for %v", lostAfter)
	case errors.Is(err, io.EOF):
		err = errors.New("it closed the connection")
	}
	return exitcode.Environmentf("the coordinator at %s is gone: %w; this worker has stopped its load", w.Coordinator, err)
}

// serve creates the worker's share of the loads and nodes, and executes the coordinator's calls until the run ends.
func (w Worker) serve(ctx context.Context, l *link, in welcome) error {
	s, err := newSession(l, in, w.now)
	if err != nil {
		_ = l.send(message{Reply: &reply{Error: err.Error()}}) // if this fails, the coordinator notices
		return err
	}
	err = s.run(ctx)
	if err != nil {
		return w.lost(err)
	}
	w.Step("the run has ended")
	return nil
}
