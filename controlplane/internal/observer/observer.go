// Package observer starts `loadgen observe` for a plane.
//
// The observer is a separate process for two reasons. Scraping and evaluating rules cause garbage collection, which
// would delay the requests through the supervisor's load balancer. And cmd/controlplane need not link Prometheus,
// because the observer is part of loadgen, which can observe any plane that is up.
package observer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/commandline"
)

const (
	// startWithin and stopWithin are the time limits for the observer's start and stop.
	startWithin = 30 * time.Second
	stopWithin  = 5 * time.Second
)

// Options configures an Observer.
type Options struct {
	// Binary is the path of the loadgen program.
	Binary string
	// Dir is the directory of a plane that is up.
	Dir string
	// Addr is the address to serve at, as HOST:PORT. Public must be true if other machines can reach the address.
	Addr   string
	Public bool
	// Log is the file for the observer's messages. Start truncates it, and the plane rotates it.
	Log string
}

// Observer is a running `loadgen observe` process. It ends when this process ends.
type Observer struct {
	url  string
	cmd  *exec.Cmd
	done chan struct{}
}

// Find returns the path of loadgen. It looks in the directory of `executable`, then on PATH.
func Find(executable string) (string, error) {
	path, err := commandline.Find(executable, "loadgen")
	if err != nil {
		return "", errors.New("observing the plane needs loadgen, which is neither next to controlplane nor on PATH (build both into bin/ with `make build`, or pass --loadgen FILE)")
	}
	return path, nil
}

// Start starts an observer and returns when it serves queries.
func Start(ctx context.Context, o Options) (*Observer, error) {
	log, err := os.OpenFile(o.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	defer log.Close() // the process has its own descriptor
	w := &Observer{done: make(chan struct{})}
	w.cmd = exec.Command(o.Binary, "observe", "--dir", o.Dir, "--listen", o.Addr, "--output", "json")
	if o.Public {
		w.cmd.Args = append(w.cmd.Args, "--observe-public")
	}
	w.cmd.Stderr = log
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // so that Ctrl-C in a terminal reaches only the supervisor
	said, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	alive, err := control.StartAttended(w.cmd)
	if err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	answered := make(chan error, 1)
	go func() {
		defer close(w.done)
		var where struct {
			URL string `json:"url"`
		}
		err := json.NewDecoder(said).Decode(&where)
		w.url = where.URL
		answered <- err
		_, _ = io.Copy(io.Discard, said) // until the observer ends
		_ = w.cmd.Wait()                 // the log says how the observer ended
		_ = alive.Close()
	}()
	within, cancel := context.WithTimeoutCause(ctx, startWithin, fmt.Errorf("loadgen did not answer within %s", startWithin))
	defer cancel()
	select {
	case err = <-answered:
		if errors.Is(err, io.EOF) { // the observer has ended, and its log says why
			<-w.done
			return nil, fmt.Errorf("observe: %s", lastLine(o.Log))
		}
	case <-within.Done():
		err = context.Cause(within)
	}
	if err != nil {
		w.Stop()
		return nil, fmt.Errorf("observe: %w", err)
	}
	return w, nil
}

// URL returns the address of the observer's query API.
func (w *Observer) URL() string { return w.url }

// Done returns a channel that is closed when the observer has ended.
func (w *Observer) Done() <-chan struct{} { return w.done }

// Terminate sends SIGTERM to the observer and does not wait for its end.
func (w *Observer) Terminate() { _ = w.cmd.Process.Signal(syscall.SIGTERM) } // fails if the observer has already ended

// Stop ends the observer and waits until it has ended.
func (w *Observer) Stop() {
	w.Terminate()
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
		_ = w.cmd.Process.Kill()
		<-w.done
	}
}

// lastLine returns the last line of a program's log, without the prefix "loadgen: ".
func lastLine(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "loadgen: ")
}
