package run

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/record"
	"github.com/stormglass/stormglass/loadgen/result"
)

// abortError is the cause by which a run ends early: what held.
type abortError string

func (e abortError) Error() string { return string(e) }

// aborts looks at the conditions that end a run early, over what is recorded so far.
type aborts struct {
	journal
	every time.Duration // between looks: that of scrapes
	stops []*gate.Stop

	mu    sync.Mutex
	phase string // empty: none
	start time.Time
	// unseen are reasons why conditions had no data, by condition; those that once had some are not in it.
	unseen map[string]string
	had    map[string]bool
}

func (a *aborts) beginPhase(name string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.phase, a.start = name, at
}

func (a *aborts) endPhase() { a.beginPhase("", time.Time{}) }

// watch looks at the conditions after each interval until ctx ends, and calls end with what held. Samples that are copied
// from a Prometheus come too late for it.
func (a *aborts) watch(ctx context.Context, r *recording, end context.CancelCauseFunc) error {
	scrapes, live := r.recorder.(*record.Recorder)
	if len(a.stops) == 0 || !live {
		for _, s := range a.stops {
			a.note(s, "the metrics are copied from a Prometheus when a phase is over")
		}
		<-ctx.Done()
		return nil
	}
	samples := archive.Evaluating(scrapes.Live())
	tick := time.NewTicker(a.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if why := a.look(ctx, samples, time.Now()); why != "" {
			a.step("ending early: %s", why)
			a.event(time.Now(), result.EventNote, "ended early", why)
			end(abortError(why))
			<-ctx.Done()
			return nil
		}
	}
}

// look returns what holds, or "".
func (a *aborts) look(ctx context.Context, samples *archive.Archive, at time.Time) string {
	a.mu.Lock()
	phase, start := a.phase, a.start
	a.mu.Unlock()
	if phase == "" {
		return ""
	}
	for _, s := range a.stops {
		why, err := s.Holds(ctx, samples, phase, start, at)
		switch {
		case err != nil:
			return "" // ctx has ended, or the rules cannot be evaluated at all
		case why != "":
			return why
		}
		a.note(s, s.Blind)
	}
	return ""
}

// note remembers whether a condition ever had data.
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

// blind says in a line each which conditions never had data: they could not have ended the run.
func (a *aborts) blind() (lines []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.stops {
		if why, ok := a.unseen[s.String()]; ok {
			lines = append(lines, fmt.Sprintf("abortOn: %s never had data: %s", s, why))
		}
	}
	return lines
}
