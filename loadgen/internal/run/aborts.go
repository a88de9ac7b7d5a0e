package run

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

// abortError is the error of a run that a condition ended early. Its text is the condition.
type abortError string

func (e abortError) Error() string { return string(e) }

const (
	// newsEvery is the interval at which aborts checks for a new scrape.
	newsEvery = 100 * time.Millisecond
	// askEvery is the interval between evaluations against a user's Prometheus server.
	askEvery = 2 * time.Second
)

// aborts evaluates the conditions that end a run early.
type aborts struct {
	journal
	stops []*gate.Stop
	// usual are the default conditions. The run does not report if they have no data: the user did not write them.
	usual []*gate.Stop
	keep  []string // metrics that the rules in Fuse.Rules use
	// halt stops all load immediately. overdue returns the number of open requests that were due at least the given
	// duration ago.
	halt    func()
	overdue func(time.Duration) int64

	once  sync.Once
	slots chan samples.Slot // receives samples of the generator's own requests; nil if no condition needs them

	mu    sync.Mutex
	phase string // name of the current phase; empty if no phase is running
	start time.Time
	// unseen has the reason for each condition that never had data. `had` contains the conditions that have had data.
	unseen map[string]string
	had    map[string]bool
}

func (a *aborts) beginPhase(name string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.phase, a.start = name, at
}

func (a *aborts) endPhase() { a.beginPhase("", time.Time{}) }

func (a *aborts) current() (phase string, start time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.phase, a.start
}

// setInterval sets the scrape interval for the conditions. The run knows it only after it has examined the target.
func (a *aborts) setInterval(every time.Duration) {
	for _, s := range slices.Concat(a.stops, a.usual) {
		s.Every = every
	}
}

// all returns the conditions on the generator's own requests if ofClient is true, and otherwise the conditions on
// recorded metrics.
func (a *aborts) all(ofClient bool) (some []*gate.Stop) {
	for _, list := range [...][]*gate.Stop{a.stops, a.usual} {
		for _, s := range list {
			if s.OfClient() == ofClient {
				some = append(some, s)
			}
		}
	}
	return some
}

// follow makes the recorder r send its samples of the generator's own requests to a.slots, if a condition needs them. Call
// it before newLoads.
func (a *aborts) follow(r *samples.Recorder) {
	if len(a.all(true)) == 0 {
		return
	}
	a.slots = make(chan samples.Slot, int(samples.Span/samples.Width))
	r.Follow(func(s samples.Slot) {
		select {
		case a.slots <- s:
		default: // the evaluation is 5 s behind, so skip this slot
		}
	})
}

// watch evaluates the conditions until ctx ends. When a condition holds, it ends the run with `end`. It evaluates
// conditions on the generator's own requests for each slot of samples. It evaluates other conditions after each scrape,
// or every two seconds if the metrics come from the user's Prometheus server.
func (a *aborts) watch(ctx context.Context, r *archiver, end context.CancelCauseFunc) error {
	var looking sync.WaitGroup
	defer looking.Wait()
	if a.slots != nil {
		looking.Go(func() { a.watchClient(ctx, end) })
	}
	switch scrapes, live := r.recorder.(*scrape.Recorder); {
	case len(a.all(false)) == 0:
	case live:
		looking.Go(func() { a.watchScrapes(ctx, scrapes, end) })
	case r.theirs != nil:
		looking.Go(func() {
			every(ctx, askEvery, func() bool { return a.look(ctx, r.theirs, end) })
		})
	}
	<-ctx.Done()
	return nil
}

func (a *aborts) watchScrapes(ctx context.Context, scrapes *scrape.Recorder, end context.CancelCauseFunc) {
	recorded := archive.Evaluating(scrapes.Live())
	seen, in := int64(-1), ""
	every(ctx, newsEvery, func() bool {
		done := scrapes.Scrapes().Done
		phase, _ := a.current()
		if phase == "" || done == seen && phase == in {
			return true
		}
		seen, in = done, phase
		return a.look(ctx, recorded, end)
	})
}

func (a *aborts) watchClient(ctx context.Context, end context.CancelCauseFunc) {
	stops := a.all(true)
	client := gate.Client{Window: new(samples.Window), Overdue: a.overdue}
	for {
		select {
		case <-ctx.Done():
			return
		case slot := <-a.slots:
			client.Add(slot)
			phase, start := a.current()
			if phase == "" {
				continue
			}
			for _, s := range stops {
				if why := s.HoldsOf(client, phase, start, slot.Until()); why != "" {
					a.trip(why, end)
					return
				}
				a.note(s, s.Blind)
			}
		}
	}
}

// look evaluates the conditions on recorded metrics once, if a phase is running. If a condition holds, look ends the
// run and returns false.
func (a *aborts) look(ctx context.Context, source gate.Source, end context.CancelCauseFunc) (goOn bool) {
	phase, start := a.current()
	if phase == "" {
		return true
	}
	for _, s := range a.all(false) {
		why, err := s.Holds(ctx, source, phase, start, time.Now())
		switch {
		case err != nil:
			return true // ctx has ended, or the rules cannot be evaluated
		case why != "":
			a.trip(why, end)
			return false
		}
		a.note(s, s.Blind)
	}
	return true
}

// trip stops the load and ends the run, because the condition `why` holds. Only the first call has an effect.
func (a *aborts) trip(why string, end context.CancelCauseFunc) {
	a.once.Do(func() {
		if a.halt != nil {
			a.halt()
		}
		end(abortError(why))
		a.step("ending the run early: %s", why)
		a.event(time.Now(), result.EventNote, "ended early", why)
	})
}

// note records whether the condition s had data in its last evaluation. blind says why it had no data, or is "" if the
// condition had data.
func (a *aborts) note(s *gate.Stop, blind string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unseen == nil {
		a.unseen, a.had = map[string]string{}, map[string]bool{}
	}
	if name := s.String(); blind == "" {
		a.had[name] = true
		delete(a.unseen, name)
	} else if !a.had[name] {
		a.unseen[name] = blind
	}
}

// states returns all conditions. Each has the reason why it has never had data, or "".
func (a *aborts) states() (all []StopState) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range slices.Concat(a.stops, a.usual) {
		all = append(all, StopState{Text: s.Text(), Blind: a.unseen[s.String()]})
	}
	return all
}

// blind returns a line for each abort condition from the scenario or flags that never had data and so could not end the
// run.
func (a *aborts) blind() (lines []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.stops {
		if why, ok := a.unseen[s.String()]; ok {
			lines = append(lines, fmt.Sprintf("abort condition %s never had data: %s", s, why))
		}
	}
	return lines
}
