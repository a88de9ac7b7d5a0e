package controlplane

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/stormglass/stormglass/internal/terminal"
)

// SupervisorLog is the name of the supervisor's log. The file is next to the logs of the components.
const SupervisorLog = "supervisor"

// progress writes a line to Options.Progress and to the supervisor's log.
func (p *Plane) progress(format string, args ...any) { p.messages.write(fmt.Sprintf(format, args...)) }

// report writes err as a progress line, unless err is nil. It is for errors that do not affect the plane.
func (p *Plane) report(err error) {
	if err != nil {
		p.progress("%v", err)
	}
}

const (
	// maxUnread is the maximum number of lines in the queue for the user's writer.
	maxUnread = 1024
	// readWithin is the maximum time that the plane, when it starts or ends, waits for the user's writer.
	readWithin = time.Second
)

// messages writes the supervisor's lines to its log immediately, and passes them on to the user's writer in a separate
// goroutine. The user's writer may block, as a terminal does after Ctrl-S, and must not delay the end of a fault.
type messages struct {
	to       io.Writer
	patience time.Duration // maximum time that flush waits
	queue    chan message
	open     context.Context // ends when messages is closed; later lines no longer reach the user's writer
	end      context.CancelFunc

	mu     sync.Mutex // guards log and unread, and keeps the log and the queue in the same order
	log    *os.File   // nil before the log is opened and after it is closed
	unread int        // number of lines that were omitted because the queue was full
}

// message is a line for the user's writer. If forwarded is not nil, the message is instead a request to close forwarded
// when all earlier lines are written.
type message struct {
	line      string
	forwarded chan struct{}
}

// newMessages returns messages that pass lines to the writer `to`, in order. The caller must close them.
func newMessages(to io.Writer) *messages {
	m := &messages{to: to, patience: readWithin, queue: make(chan message, maxUnread)}
	m.open, m.end = context.WithCancel(context.Background())
	go m.forward()
	return m
}

func (m *messages) forward() {
	for {
		select {
		case <-m.open.Done():
			return
		case next := <-m.queue:
			switch {
			case m.open.Err() != nil:
				return
			case next.forwarded != nil:
				close(next.forwarded)
			default:
				fmt.Fprintln(m.to, next.line) // ignore errors: the terminal may be closed
			}
		}
	}
}

func (m *messages) openLog(path string) error {
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = log
	return nil
}

func (m *messages) write(line string) {
	line = terminal.CleanLines(line) // the line may quote a component's log
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open.Err() != nil {
		return
	}
	if m.log != nil {
		fmt.Fprintln(m.log, time.Now().UTC().Format(time.RFC3339Nano), line)
	}
	if m.unread > 0 && m.enqueue(fmt.Sprintf("(%d lines omitted; they are in the supervisor's log)", m.unread)) {
		m.unread = 0
	}
	if m.unread > 0 || !m.enqueue(line) {
		m.unread++
	}
}

// enqueue adds a line to the queue. It returns false if the queue is full. The caller must hold mu.
func (m *messages) enqueue(line string) bool {
	select {
	case m.queue <- message{line: line}:
		return true
	default:
		return false
	}
}

// flush waits until all lines so far are written to the user's writer, but not longer than m.patience.
func (m *messages) flush() {
	patience := time.NewTimer(m.patience)
	defer patience.Stop()
	question := message{forwarded: make(chan struct{})}
	select {
	case m.queue <- question:
	case <-m.open.Done():
		return
	case <-patience.C:
		return
	}
	select {
	case <-question.forwarded:
	case <-m.open.Done():
	case <-patience.C:
	}
}

func (m *messages) close() {
	m.flush()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end()
	if m.log != nil {
		m.log.Close()
		m.log = nil
	}
}
