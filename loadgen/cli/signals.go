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
	// sameSignal is the time within which another signal counts as the same one, which arrived twice: from the terminal and
	// from the program that started us.
	sameSignal = 500 * time.Millisecond
	// reportGrace is the time after the second signal within which a third signal does not end the program, because the report
	// is being written.
	reportGrace = 5 * time.Second
	// endsWithin is the time within which a command that only reads and writes files must end after the first signal.
	endsWithin = 1500 * time.Millisecond
)

// Actions on a signal.
const (
	endInOrder = iota
	hurryUp
	endAtOnce
	nothing
)

// signalCount decides the action for each signal:
//
//   - the first, to end in order: objects are removed and the report is written
//   - the second, not to wait: the objects that are not removed yet stay and are listed, and the
//     report is written; a command without objects and report ends immediately
//   - a third, to end immediately
type signalCount struct {
	acted int // signals acted on
	last  time.Time
}

// next returns the action for a signal at the given time. patient is true if the command has a report to write or objects to
// remove.
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

// interrupts passes the second and later signals on to a command. The first signal only ends its context.
type interrupts struct {
	hurried chan struct{}
	patient atomic.Bool
	before  atomic.Pointer[func()]
	brief   atomic.Bool // the command has nothing to remove, unless patient is set
}

// endBrief ends a brief command that has not ended by itself, such as one that waits for a file.
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

// atEnd sets the function that is called before a third signal ends the program.
func (i *interrupts) atEnd(do func()) { i.before.Store(&do) }

// second returns a channel that is closed on the second signal. After a call of second, that signal does not end the command.
func (i *interrupts) second() <-chan struct{} {
	i.patient.Store(true)
	return i.hurried
}

// prints says that only the printing of the answer is left, which may wait for the reader of a pipe. The next signal ends it.
func (i *interrupts) prints() { i.patient.Store(false) }

// isBrief reports whether a command may be ended soon after the first signal: it starts no processes and creates nothing in a
// cluster, or becomes patient when it does.
func isBrief(cmd *cobra.Command) bool {
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	return !slices.Contains([]string{"alerts", "cleanup", "observe", "record", "serve", "worker", "workers"}, cmd.Name())
}

// listen returns a context that ends with the first signal. Only the first hangup counts, because a closed terminal sends one
// and its shell another.
func listen(parent context.Context) (ctx context.Context, i *interrupts, stop func()) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup
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
