package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Control lets a user pause and resume the load of a run in progress, end its phases early, and read the metrics recorded
// so far. Set it in the Options of the run; the zero value is ready to use. Commands fail while no phase is running. A
// Control is safe for concurrent use.
type Control struct {
	mu    sync.Mutex
	steer *steering // executes the commands; nil if no run is in progress

	// reading protects recorded. Readers of the archive hold it for reading. The run sets recorded to nil before it
	// closes the archive.
	reading  sync.RWMutex
	recorded *archive.Archive // archive of the run; nil if this process records nothing
	ctx      context.Context  // context that ends shortly before the run closes the archive
	cancel   context.CancelFunc
}

// ErrPaused is the error of Pause if load is already paused.
var ErrPaused = errors.New("load is already paused")

// errNoRun is the error of a command that the user gives before the run starts or after it has ended.
var errNoRun = errors.New("no run in progress")

func (c *Control) command(do func(*steering) error) error {
	c.mu.Lock()
	s := c.steer
	c.mu.Unlock()
	if s == nil {
		return errNoRun
	}
	return do(s)
}

// Pause stops the arrivals of all loads in all workers. Requests in flight finish; phases and faults continue. The
// results of the current phase will not be judged.
func (c *Control) Pause() error { return c.command((*steering).pauseLoad) }

// Resume starts the arrivals again. Each load continues its schedule where it stopped.
func (c *Control) Resume() error { return c.command((*steering).resumeLoad) }

// EndPhase ends the current phase early and lets the next one begin. The results of the ended phase will not be
// judged. If name is not empty, it must be the name of the current phase.
func (c *Control) EndPhase(name string) error {
	return c.command(func(s *steering) error { return s.endPhaseEarly(name) })
}

// Recorded calls `use` with the archive of the metrics that the run has scraped so far. The archive is nil if the run
// scrapes nothing or if no run is in progress. The context of the call ends shortly before the run closes the archive.
// If `use` fails because of that, Recorded calls it again with nil.
func (c *Control) Recorded(ctx context.Context, use func(context.Context, *archive.Archive) error) error {
	closed, err := c.read(ctx, use)
	if err != nil && closed {
		return use(ctx, nil)
	}
	return err
}

// read calls `use` once. `closed` is true if the run was about to close the archive when `use` returned.
func (c *Control) read(ctx context.Context, use func(context.Context, *archive.Archive) error) (closed bool, err error) {
	c.reading.RLock()
	defer c.reading.RUnlock()
	if c.recorded == nil {
		return false, use(ctx, nil)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	err = use(ctx, c.recorded)
	return c.ctx.Err() != nil, err
}

// attach connects the Control to a run. On a nil Control it does nothing.
func (c *Control) attach(s *steering, recorded *archive.Archive) {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.steer = s
	c.mu.Unlock()
	c.reading.Lock()
	defer c.reading.Unlock()
	c.recorded = recorded
	c.ctx, c.cancel = context.WithCancel(context.Background())
}

// detach disconnects the Control from the run, and waits until no reader uses the archive. c may be nil.
func (c *Control) detach() {
	if c == nil {
		return
	}
	c.mu.Lock()
	attached := c.steer != nil
	c.steer = nil
	c.mu.Unlock()
	if !attached {
		return
	}
	c.cancel()
	c.reading.Lock()
	defer c.reading.Unlock()
	c.recorded = nil
}

// steering executes the user's commands (pause, resume, end phase) in a run, and measures their effect on the phase.
type steering struct {
	journal
	pause   *load.Pause
	fleet   *workers.Fleet // the workers; nil without workers
	changed func()         // function that requests an update of the display and returns immediately

	mu      sync.Mutex
	phase   string // name of the current phase; empty if no phase is running
	ending  context.Context
	end     context.CancelFunc
	since   time.Time     // start of the current pause, or start of the phase if that is later; zero: not paused
	paused  time.Duration // total time of the earlier pauses in the current phase
	stopped bool          // the user has ended the phase
	over    bool          // the phase is ending, so the user can no longer end it
}

func newSteering(j journal, pause *load.Pause, fleet *workers.Fleet, changed func()) *steering {
	return &steering{journal: j, pause: pause, fleet: fleet, changed: changed, ending: context.Background(), end: func() {}}
}

// beginPhase starts measuring how long load is paused in a phase.
func (s *steering) beginPhase(name string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.paused, s.stopped, s.over = name, 0, false, false
	s.ending, s.end = context.WithCancel(context.Background())
	if !s.since.IsZero() {
		s.since = at
	}
}

// endPhase stops measuring the pauses of the current phase. It returns how long load was paused in it, and whether the
// user ended the phase early.
func (s *steering) endPhase(at time.Time) (paused time.Duration, early bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	paused, early = s.paused, s.stopped
	if !s.since.IsZero() {
		paused += at.Sub(s.since)
	}
	s.end()
	s.phase, s.paused = "", 0
	return paused, early
}

// phaseOver records that the current phase is ending, so the user can no longer end it.
func (s *steering) phaseOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// asked returns a context that is canceled when the user ends the current phase.
func (s *steering) asked() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending
}

// pausedSince returns the start of the current pause, or the start of the current phase if that is later. It returns zero
// if load is not paused.
func (s *steering) pausedSince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since
}

func (s *steering) pauseLoad() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == "" {
		return errors.New("no phase is running, so there is no load to pause")
	}
	at := time.Now()
	if !s.pause.Begin(at) {
		return ErrPaused
	}
	s.fleet.Pause(at)
	s.since = at
	s.tell(at, "load paused", "load is paused: gates that cover phase "+s.phase+" will not be judged")
	return nil
}

func (s *steering) resumeLoad() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Now()
	if !s.pause.End(at) {
		return errors.New("load is not paused")
	}
	s.fleet.Resume(at)
	if s.phase != "" {
		s.paused += at.Sub(s.since)
	}
	s.since = time.Time{}
	s.tell(at, "load resumed", "load continues")
	return nil
}

func (s *steering) endPhaseEarly(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.phase == "":
		return errors.New("no phase is running")
	case name != "" && name != s.phase:
		return fmt.Errorf("phase %s is not running: the current phase is %s", name, s.phase)
	case s.stopped, s.over:
		return fmt.Errorf("phase %s is already ending", s.phase)
	}
	s.stopped = true
	s.tell(time.Now(), "phase ended early", "phase "+s.phase+" ends early: gates that cover it will not be judged")
	s.end()
	return nil
}

// tell shows `line` to the user, and records the command in the timeline under `name`. The caller holds mu.
func (s *steering) tell(at time.Time, name, line string) {
	detail := "by the user"
	if s.phase != "" {
		detail = "phase " + s.phase + ", " + detail
	}
	s.step("%s", line)
	s.event(at, result.EventNote, name, detail)
	s.changed()
}
