package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/load/history/check"
	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	// retryAfter is the wait between attempts of a list or of a final read. drainLook is the interval at which drain
	// checks the watchers.
	retryAfter = 200 * time.Millisecond
	drainLook  = 20 * time.Millisecond
	// maxReported is the maximum number of violations of each kind in a result.
	maxReported = 20
)

// Finish reads the final state, waits for the watchers, stops them, and judges the history. Call it after Run, when all
// faults have ended. It waits for the time Config.Quiet and makes the final reads. Then it takes at most Config.Drain
// plus Config.JudgeWithin, or longer if there are violations. If ctx ends earlier, Finish judges the incomplete history
// within 5 s, and Unjudged lists the missing parts. It fails if the load has not run or the evidence cannot be written.
func (l *Load) Finish(ctx context.Context, step func(format string, args ...any)) error {
	step("checking the history of load %s", l.config.Name)
	if err := l.finish(ctx); err != nil {
		return fmt.Errorf("history of %s: %w", l.config.Name, err)
	}
	return nil
}

func (l *Load) finish(ctx context.Context) error {
	l.mu.Lock()
	ran, watchers := l.ran, l.watchers
	l.mu.Unlock()
	defer l.Close()
	if !ran {
		return fmt.Errorf("load %s: %w", l.config.Name, errNotRun)
	}
	apiclient.Pause(ctx, l.config.Quiet)
	err := l.finalReads(ctx)
	h := &check.History{Registers: l.first, Watchers: make([]check.Watcher, len(watchers))}
	if l.drain(ctx) {
		for i, w := range watchers {
			h.Watchers[i].Live = w.established(l.config.Drain / 2)
		}
	}
	l.Close()
	for i, w := range watchers {
		h.Watchers[i].Start, h.Watchers[i].Entries = w.start, w.entries
	}
	h.Operations = l.record.operations // all clients have ended
	began := time.Now()
	report := check.Check(h, judgeWithin(ctx, l.config))
	r := l.result(&report)
	r.CheckSeconds = time.Since(began).Seconds()
	if err != nil {
		r.Unjudged = append(r.Unjudged, fmt.Sprintf("list the registers at the end: %v", err))
	}
	if l.record.full {
		r.Unjudged = append(r.Unjudged, fmt.Sprintf("the clients stopped after %d operations, because a history cannot record more", MaxOperations))
	}
	if slices.ContainsFunc(watchers, func(w *watcher) bool { return w.full }) {
		r.Unjudged = append(r.Unjudged, fmt.Sprintf("the history contains only the first %d watch events", MaxEvents))
	}
	if r.ViolationCount > 0 && l.config.Dir != "" {
		r.Files, err = writeEvidence(l.config, h, report.Pictures)
	} else {
		err = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finished = r
	return err
}

// hurried is the time limit for judging the history of an interrupted run, if JudgeWithin is longer.
const hurried = 5 * time.Second

func judgeWithin(ctx context.Context, c Config) time.Duration {
	if errors.Is(ctx.Err(), context.Canceled) {
		return min(c.JudgeWithin, hurried)
	}
	return c.JudgeWithin
}

// finalReads reads each register and then lists all registers. It retries each request until it succeeds or ctx ends.
// It returns an error only if the list fails.
func (l *Load) finalReads(ctx context.Context) error {
	c := newClient(l, l.reader())
	defer c.conn.close()
	for i := range l.registers.names {
		for !c.finalRead(ctx, i) && apiclient.Pause(ctx, retryAfter) {
		}
	}
	for {
		limited, cancel := context.WithTimeout(ctx, l.config.Timeout)
		_, err := l.list(limited, &c.conn, c.number, true)
		cancel()
		if err == nil || !apiclient.Pause(ctx, retryAfter) {
			return err
		}
	}
}

// finalRead reads a register once. The read does not count towards MaxOperations.
func (c *client) finalRead(ctx context.Context, i int) bool {
	o := c.exchange(ctx, check.Operation{Register: i, Kind: check.Read, Final: true})
	return o.Outcome == check.OK
}

// drain waits until all watchers have reached the newest version, for at most the time Config.Drain. It returns false
// if ctx ended first.
func (l *Load) drain(ctx context.Context) bool {
	until := time.Now().Add(l.config.Drain)
	for !l.settled() && time.Now().Before(until) {
		if !apiclient.Pause(ctx, drainLook) {
			return false
		}
	}
	return ctx.Err() == nil
}

func (l *Load) settled() bool {
	l.record.mu.Lock()
	newest := l.record.newest
	l.record.mu.Unlock()
	least := newest
	for _, w := range l.watchers {
		w.mu.Lock()
		newest, least = max(newest, w.last), min(least, w.newest)
		w.mu.Unlock()
	}
	return least >= newest
}

func (l *Load) result(report *check.Report) *result.History {
	r := l.counts()
	r.Linearizable, r.Unjudged = report.Linearizable, report.Unjudged
	r.Hidden, r.CachedOld, r.UnknownHappened = report.Hidden, report.CachedOld, report.UnknownHappened
	r.ViolationCount = int64(len(report.Violations))
	r.ViolationCounts = map[string]int64{}
	for _, v := range report.Violations {
		if r.ViolationCounts[v.Kind]++; r.ViolationCounts[v.Kind] <= maxReported {
			r.Violations = append(r.Violations, v)
		}
	}
	r.LostWrites = r.ViolationCounts[result.LostWrite]
	return r
}

func (l *Load) counts() *result.History {
	l.record.mu.Lock()
	n := l.record.counts
	l.record.mu.Unlock()
	r := &result.History{
		Load: l.config.Name, Start: l.record.base.UTC(), Registers: l.config.Registers, Clients: l.config.Clients, Watchers: l.config.Watchers,
		Writes: n[check.Write], Reads: n[check.Read], CachedReads: n[check.CachedRead], Skipped: l.record.skipped.Load(),
	}
	for _, w := range l.watchers {
		w.mu.Lock()
		r.Events += w.events
		r.Bookmarks += w.bookmarks
		r.Resumes += max(w.opened-1-w.relists, 0)
		r.Relists += w.relists
		w.mu.Unlock()
	}
	return r
}

// AddTo adds the result of the history to m.
func (l *Load) AddTo(m *result.Measurements) { m.Histories = append(m.Histories, l.Results()) }

// Results returns the result of the whole run. It contains a verdict only after Finish has returned.
func (l *Load) Results() result.History {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.finished != nil {
		return *l.finished
	}
	r := l.counts()
	r.Linearizable, r.Unjudged = "unknown", []string{"the history is incomplete"}
	return *r
}
