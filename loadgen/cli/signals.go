package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/terminal"
)

const (
	// sameSignal is the time after a signal for which interrupts ignores a second one, because the terminal and the
	// parent process may both send the same signal.
	sameSignal = 500 * time.Millisecond
	// reportGrace is the time after the second signal for which interrupts ignores a third signal, so that the command
	// can write the report.
	reportGrace = 5 * time.Second
	// endsWithin is the time that a command that only reads and writes files has to end after the first signal.
	endsWithin = 1500 * time.Millisecond
)

// The actions that a signal may cause.
const (
	endInOrder = iota
	hurryUp
	endAtOnce
	nothing
)

// signalCount decides the action for each signal:
//
//   - the first: end in order; objects are removed and the report is written
//   - the second: do not wait; objects that are not removed yet stay and are listed, and the
//     report is written; a command without objects and report ends immediately
//   - a third: end immediately
type signalCount struct {
	acted int // number of signals that caused an action
	last  time.Time
}

// next returns the action for a signal that arrives at the time `at`. `patient` reports whether the command must write
// a report or remove objects.
func (c *signalCount) next(at time.Time, patient bool) int {
	since := at.Sub(c.last)
	switch {
	case c.acted == 0:
	case since < sameSignal, c.acted == 2 && since < reportGrace:
		return nothing
	case !patient || c.acted == 2:
		return endAtOnce
	}
	c.acted, c.last = c.acted+1, at
	return map[int]int{1: endInOrder, 2: hurryUp}[c.acted]
}

// interrupts tells a command about the user's second signal. The first signal only ends the command's context.
type interrupts struct {
	hurried chan struct{}
	patient atomic.Bool
	before  atomic.Pointer[func()]
	brief   atomic.Bool // the command needs no orderly end, unless `patient` is set
}

// endBrief ends the program immediately if its command needs no orderly end but is still running, for example because
// it waits for a file.
func (i *interrupts) endBrief() {
	if !i.brief.Load() || i.patient.Load() {
		return
	}
	if do := i.before.Load(); do != nil {
		(*do)()
	}
	fmt.Fprintln(terminal.Unstuck(os.Stderr), "loadgen: interrupted")
	os.Exit(exitcode.NoData)
}

// atEnd sets the function to call before a third signal ends the program.
func (i *interrupts) atEnd(do func()) { i.before.Store(&do) }

// second returns a channel that interrupts closes on the second signal. After this call, the second signal does not end
// the program.
func (i *interrupts) second() <-chan struct{} {
	i.patient.Store(true)
	return i.hurried
}

// prints makes the next signal end the program immediately. A command calls prints when it only has to print its
// result, because writing to a pipe may block.
func (i *interrupts) prints() { i.patient.Store(false) }

// isBrief reports whether a command can end soon after the first signal. Such a command starts no processes and creates
// nothing in a cluster, or it first calls interrupts.second.
func isBrief(cmd *cobra.Command) bool {
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	return !slices.Contains([]string{"alerts", "cleanup", "observe", "record", "serve", "worker", "workers"}, cmd.Name())
}

// listen returns a context that ends with the first signal. It ignores further hangups (SIGHUP), because a closed
// terminal sends one and its shell sends another.
func listen(parent context.Context) (ctx context.Context, i *interrupts, stop func()) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // it is ignored under nohup
		signals = append(signals, syscall.SIGHUP)
	}
	come := make(chan os.Signal, 1)
	signal.Notify(come, signals...)
	ctx, cancel := context.WithCancel(parent)
	i = &interrupts{hurried: make(chan struct{})}
	go func() {
		var count signalCount
		for {
			select {
			case sig := <-come:
				switch count.next(time.Now(), i.patient.Load()) {
				case endInOrder:
					signal.Ignore(syscall.SIGHUP)
					cancel()
					time.AfterFunc(endsWithin, i.endBrief)
				case hurryUp:
					close(i.hurried)
				case endAtOnce:
					if do := i.before.Load(); do != nil {
						(*do)()
					}
					signal.Reset(sig)
					_ = syscall.Kill(os.Getpid(), sig.(syscall.Signal))
				}
			case <-parent.Done():
				return
			}
		}
	}()
	return ctx, i, func() {
		signal.Stop(come)
		cancel()
	}
}
