package supervisor

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/process"
)

// Components may end by themselves: a scheduler or controller manager that cannot renew its lease, an API server that
// is started while etcd has no quorum, a process that the kernel kills because it uses too much memory, or a crash. In
// production the kubelet (or systemd) restarts them regardless of the reason, and so does the supervisor. It counts
// these restarts. The event of such an exit has Expected false.

// backoffBase, backoffMax and backoffReset define the back-off, as in the kubelet. The first restart is immediate. The
// second waits 10 s, and each further restart waits twice as long as the one before, up to five minutes. After a
// process has run for ten minutes, the back-off starts over.
const (
	backoffBase  = 10 * time.Second
	backoffMax   = 5 * time.Minute
	backoffReset = 2 * backoffMax
)

// backoff returns the wait before the restart of a component that has crashed the given number of times in succession.
func backoff(crashes int) time.Duration {
	wait := time.Duration(0)
	for n := 1; n < crashes && wait < backoffMax; n++ {
		wait = max(2*wait, backoffBase)
	}
	return min(wait, backoffMax)
}

func (s *Supervisor) watch(c *component, i *instance) {
	<-i.child.Done()
	if i.agent != nil {
		i.agent.Close()
	}
	s.mu.Lock()
	expected := i.expected
	s.mu.Unlock()
	how, why, quoted := i.child.Exit().String(), "", ""
	if !expected {
		how = i.ending()
	}
	handover := !expected && s.handedOver(c.process.Kind, i)
	switch {
	case handover:
		how, why = how+" after it handed over its lease", " after it handed over its lease"
	case !expected && leftByFullDatabase(c.process.Kind, i.child.Exit(), i.child.Output()):
		how, why = how+", because etcd's database is full", ": its lease could not be renewed, because etcd's database is full"
	case !expected:
		quoted = s.quoteLog(i)
	}
	s.plane.Events.Append(control.Event{
		Time: i.child.Exit().At, Kind: control.EventExit, Component: c.process.Name, Detail: how + quoted, Expected: expected, Handover: handover,
	})
	if !expected {
		s.restart(c, i, why, quoted)
	}
}

// restart waits for the back-off and restarts a component that has ended unexpectedly. `why` and `quoted` are parts of
// the message about the exit: the reason, and the quoted log.
func (s *Supervisor) restart(c *component, i *instance, why, quoted string) {
	exit := i.child.Exit()
	s.mu.Lock()
	if !s.settled {
		s.mu.Unlock()
		s.plane.Fail(s.diedError(i))
		return
	}
	i.expected = true
	if exit.At.Sub(i.child.Started) > backoffReset {
		c.crashes = 0
	}
	c.crashes++
	wait := backoff(c.crashes)
	s.mu.Unlock()
	s.plane.Progress("%-26s %s%s; restarts in %v, as the kubelet would restart it%s", c.process.Name, i.ending(), why, wait, quoted)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-s.plane.Closing.Done():
		return
	case <-timer.C:
	}
	revived, err := s.revive(c, i)
	switch {
	case s.plane.Closing.Err() != nil: // ignore err: the stop of the plane may have caused it
	case err != nil:
		s.plane.Fail(err)
	case revived:
		s.plane.Faults.Renew(s.plane.Closing, c.process.Name)
	}
}

// revive starts a component whose process has ended by itself. It does nothing if a fault has taken over the restart,
// or if the component has another process already.
func (s *Supervisor) revive(c *component, i *instance) (bool, error) {
	c.change.Lock()
	defer c.change.Unlock()
	s.mu.Lock()
	due := c.instance == i && !i.claimed
	s.mu.Unlock()
	if !due {
		return false, nil
	}
	return true, s.startAgain(c, i.overlay)
}

// ending describes how the process of the instance ended. Call it only after the process has ended.
func (i *instance) ending() string { return ending(i.child.Exit(), process.OOMKills()-i.oomKills) }

// ending describes an exit. oomKills is the number of processes that the kernel has killed for lack of memory since the
// process was started. Only the kernel's log says whether this process is one of them.
func ending(exit process.Exit, oomKills uint64) string {
	if exit.Signal != "SIGKILL" || oomKills == 0 {
		return exit.String()
	}
	return fmt.Sprintf("%s (perhaps for lack of memory: the kernel has killed %d processes since this process started)", exit, oomKills)
}

// ErrPortTaken means that another process uses the port of a component. The component's error wraps it.
var ErrPortTaken = errors.New("port taken")

// ComponentError is an error whose cause is in a component's log.
type ComponentError struct{ error }

func (e *ComponentError) Unwrap() error { return e.error }

// FirstExit returns the error of the first component in Plane.Order that has ended. Its exit may have caused the exits
// of later components. FirstExit returns nil if no component has ended. It ignores a component that was ready and has
// handed over its lease, because the supervisor restarts that component after Settle.
func (s *Supervisor) FirstExit() error {
	type exited struct {
		c     *component
		i     *instance
		ready bool
	}
	var ended []exited
	s.mu.Lock()
	for _, c := range s.components {
		if c.child.Ended() {
			ended = append(ended, exited{c, c.instance, c.ready})
		}
	}
	s.mu.Unlock()
	for _, x := range ended {
		switch {
		case !x.ready:
			return s.startError(x.c, x.i)
		case !s.handedOver(x.c.process.Kind, x.i):
			return s.diedError(x.i)
		}
	}
	return nil
}

// exitedEarly returns a function that returns nil while the process is running, and an error once the process has
// ended. It is for processes that are not ready yet.
func (s *Supervisor) exitedEarly(c *component, i *instance) func() error {
	return func() error {
		if i.child.Ended() {
			return s.startError(c, i)
		}
		return nil
	}
}

func (s *Supervisor) startError(c *component, i *instance) error {
	if strings.Contains(i.child.Output(), "address already in use") {
		return fmt.Errorf("%s could not listen on %s: %w", c.process.Name, c.process.Address, ErrPortTaken)
	}
	return &ComponentError{fmt.Errorf("%s %s before it was ready%s", c.process.Name, i.child.Exit(), s.quoteLog(i))}
}

func (s *Supervisor) diedError(i *instance) error {
	return &ComponentError{fmt.Errorf("%s died after %s: it %s%s", i.child.Name, i.child.Exit().At.Sub(i.child.Started).Round(time.Millisecond), i.ending(), s.quoteLog(i))}
}

const (
	maxQuoted  = 8       // maximum number of quoted lines of a log
	maxErrors  = 3       // maximum number of errors among the quoted lines
	maxLogLine = 1000    // maximum length of a line in bytes; a line of etcd's log may contain a whole stack
	quotedTail = 4 << 20 // bytes to read at the end of a log, where klog writes all stacks after a fatal error
)

var (
	// crashLine matches the first line that Go, klog or etcd writes when a process crashes.
	crashLine = regexp.MustCompile(`^(panic: |fatal error: |F\d{4} |\{"level":"(fatal|panic|dpanic)")`)
	// goCrash matches the crash lines that the Go runtime writes. They state the reason, whereas other crash lines may
	// only repeat that something failed.
	goCrash = regexp.MustCompile(`^(panic|fatal error): `)
	// klogHead matches the severity, time and thread ID at the beginning of a line of klog.
	klogHead = regexp.MustCompile(`^[IWEF]\d{4} [\d:.]+\s+\d+ `)
	// errorLine matches an error in the log of a process that shut down gracefully.
	errorLine = regexp.MustCompile(`^(E\d{4} |\{"level":"error"|[Ee]rror: )`)
	// harmless matches an error that every kube-controller-manager logs at its start.
	harmless = regexp.MustCompile(`The manifest file is empty, ignoring\.$`)
)

// quoteLog returns the path of a process's log, and the lines that explain why the process ended.
func (s *Supervisor) quoteLog(i *instance) string {
	lines := quote(i.child.Tail(quotedTail))
	if len(lines) == 0 {
		return "; its log is empty"
	}
	return fmt.Sprintf("; from its log, %s:\n  %s", s.plane.Layout.Log(i.child.Name), strings.Join(lines, "\n  "))
}

// quote returns the lines of a log that explain why the process ended, in their order: first the last errors, then a
// crash with the lines after it. Without a crash, the last lines of the log follow the errors.
func quote(log string) []string {
	var lines []string
	for line := range strings.Lines(log) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			lines = append(lines, line)
		}
	}
	rest := lastMatch(lines, crashLine)
	var errs []string
	switch {
	case rest < 0:
		var after int
		errs, after = lastErrors(lines)
		rest = max(after, len(lines)-maxQuoted+len(errs), 0)
	case !goCrash.MatchString(lines[rest]):
		errs, _ = lastErrors(lines[:rest])
	}
	lines = append(errs, lines[rest:min(len(lines), rest+maxQuoted-len(errs))]...)
	for i, line := range lines {
		if len(line) > maxLogLine {
			lines[i] = strings.ToValidUTF8(line[:maxLogLine], "") + "..."
		}
	}
	return lines
}

// lastErrors returns the last errors among the lines, without repeated messages. after is the index of the line after
// the last error.
func lastErrors(lines []string) (errs []string, after int) {
	said := map[string]bool{}
	for i, line := range slices.Backward(lines) {
		message := klogHead.ReplaceAllString(line, "")
		if !errorLine.MatchString(line) || harmless.MatchString(line) || said[message] || len(errs) == maxErrors {
			continue
		}
		said[message] = true
		errs, after = append(errs, line), max(after, i+1)
	}
	slices.Reverse(errs)
	return errs, after
}

func lastMatch(lines []string, what *regexp.Regexp) int {
	for i, line := range slices.Backward(lines) {
		if what.MatchString(line) {
			return i
		}
	}
	return -1
}
