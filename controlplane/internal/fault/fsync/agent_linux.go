package fsync

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stormglass/stormglass/controlplane/internal/process"
)

// question and reply are the JSON messages between supervisor and agent. Each message is one packet of the socket.
type question struct {
	Seq int64 `json:"seq"`
	// Set contains a delay to apply, and Clear removes the delay. A question without either requests only the counters.
	Set   *Delay `json:"set,omitempty"`
	Clear bool   `json:"clear,omitempty"`
}

type reply struct {
	Seq   int64  `json:"seq"`
	Error string `json:"error,omitempty"`
	Stats Stats  `json:"stats"`
}

// maxMessage is the maximum size of a message in bytes. The longest message has about 200 bytes.
const maxMessage = 4 << 10

// StartAgent starts the agent in the child process if the parent has set AgentEnv. Call it once, at the beginning of
// main. It returns immediately; the agent runs until the process ends. When the supervisor's end of the socket closes,
// the agent clears the delay.
func StartAgent() error {
	number, ok, err := process.TakeNumber(AgentEnv, "not a descriptor")
	if err != nil || !ok {
		return err
	}
	fd := int(number)
	unix.CloseOnExec(fd)
	conn, err := socket(os.NewFile(uintptr(fd), "fsync agent"))
	if err != nil {
		return fmt.Errorf("%s=%d: %w", AgentEnv, fd, err)
	}
	go serveAgent(conn, &gate{listener: -1, waiting: map[uint64]*time.Timer{}})
	return nil
}

func serveAgent(conn net.Conn, g *gate) {
	defer conn.Close()
	defer g.clear()
	buf := make([]byte, maxMessage)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		var q question
		if err := json.Unmarshal(buf[:n], &q); err != nil {
			return
		}
		a := reply{Seq: q.Seq}
		switch {
		case q.Set != nil:
			if err := g.set(*q.Set); err != nil {
				a.Error = err.Error()
			}
		case q.Clear:
			g.clear()
		}
		a.Stats = g.snapshot()
		message, err := json.Marshal(a)
		if err != nil {
			return
		}
		if _, err := conn.Write(message); err != nil {
			return
		}
	}
}

// Agent is the supervisor's connection to the fsync agent in one child process.
type Agent struct {
	mu   sync.Mutex
	conn net.Conn
	seq  int64
}

// NewAgent returns the supervisor's end of the connection, and the child's end of the socket. Pass child to the child
// process (exec.Cmd.ExtraFiles), and set AgentEnv to its descriptor number there. Close child in the supervisor once
// the process has started; otherwise the supervisor does not notice when the child ends. A restarted child needs a new
// Agent.
func NewAgent() (agent *Agent, child *os.File, err error) {
	// The socket keeps packet boundaries, so that a late reply is not mixed up with the next reply.
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair of an fsync agent: %w", err)
	}
	child = os.NewFile(uintptr(fds[1]), "fsync agent of a child")
	conn, err := socket(os.NewFile(uintptr(fds[0]), "fsync agent"))
	if err != nil {
		child.Close()
		return nil, nil, err
	}
	return &Agent{conn: conn}, child, nil
}

func socket(f *os.File) (net.Conn, error) {
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("socket of an fsync agent: %w", err)
	}
	return conn, nil
}

// Set delays the child's fsync calls, and replaces an earlier delay. The delay applies to every call that begins after
// Set has returned. ctx limits the wait for the child's response and should have a deadline: a stopped child does not
// respond, and applies the request when it continues.
func (a *Agent) Set(ctx context.Context, d Delay) error {
	_, err := a.request(ctx, question{Set: &d})
	return err
}

// Clear ends the delay. When Clear returns, the agent no longer delays any call.
func (a *Agent) Clear(ctx context.Context) error {
	_, err := a.request(ctx, question{Clear: true})
	return err
}

// Stats returns the agent's counters.
func (a *Agent) Stats(ctx context.Context) (Stats, error) {
	return a.request(ctx, question{})
}

// Close closes the connection to the agent. The agent then clears its delay. The child keeps running.
func (a *Agent) Close() error { return a.conn.Close() }

func (a *Agent) request(ctx context.Context, q question) (Stats, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seq++
	q.Seq = a.seq
	got, err := a.exchange(ctx, q)
	switch {
	case ctx.Err() != nil && errors.Is(err, os.ErrDeadlineExceeded):
		return Stats{}, fmt.Errorf("the fsync agent does not answer: %w", context.Cause(ctx))
	case err != nil:
		return Stats{}, fmt.Errorf("call the fsync agent: %w", err)
	case got.Error != "":
		return Stats{}, fmt.Errorf("the fsync agent: %s", got.Error)
	}
	return got.Stats, nil
}

func (a *Agent) exchange(ctx context.Context, q question) (reply, error) {
	if err := ctx.Err(); err != nil {
		return reply{}, err
	}
	if err := a.conn.SetDeadline(time.Time{}); err != nil {
		return reply{}, err
	}
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(expired)
		_ = a.conn.SetDeadline(time.Unix(1, 0))
	})
	defer func() {
		if !stop() {
			<-expired // otherwise the function could set the deadline of the next exchange
		}
	}()
	message, err := json.Marshal(q)
	if err != nil {
		return reply{}, err
	}
	if _, err := a.conn.Write(message); err != nil {
		return reply{}, err
	}
	buf := make([]byte, maxMessage)
	for {
		n, err := a.conn.Read(buf)
		if err != nil {
			return reply{}, err
		}
		var got reply
		if err := json.Unmarshal(buf[:n], &got); err != nil {
			return reply{}, err
		}
		if got.Seq == q.Seq { // otherwise it is the late reply to an earlier question
			return got, nil
		}
	}
}
