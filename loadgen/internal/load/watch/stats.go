package watch

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/result"
)

// tally contains the counts of one or more read loops since the previous call of take.
type tally struct {
	events, bookmarks, bytes int64
	// delivered counts the first deliveries of acknowledged writes.
	delivered int64
}

func (t *tally) add(o tally) {
	t.events += o.events
	t.bookmarks += o.bookmarks
	t.bytes += o.bytes
	t.delivered += o.delivered
}

// rare contains counts that change so rarely that all connections can share them.
type rare struct {
	malformed, reconnects, relists atomic.Int64
	// duplicated and reordered count such events of writes that the load did not measure. For measured writes, the counts
	// are in deliveries.
	duplicated, reordered atomic.Int64
}

type watchStats struct {
	*deliveries // deliveries of the phase's writes
	rare
	tally       tally // counts of the phase; guarded by Watches.mu
	openLatency *latency.Histogram
	openAtEnd   int // number of watches open at the end of the phase; guarded by Watches.mu
	dueAtEnd    int // number of watches that should be open then; guarded by Watches.mu

	mu       sync.Mutex
	failures map[load.Outcome]int64
	refusals map[string]int64 // number of refusals, by status and message; nil before the first refusal
}

func newWatchStats() *watchStats {
	return &watchStats{deliveries: newDeliveries(), openLatency: latency.New(longestOpen), failures: map[load.Outcome]int64{}}
}

// maxRefusals is the maximum number of distinct refusal messages that are counted separately. All further messages
// share one count.
const maxRefusals = 10

// fail counts a failed attempt by its outcome and by the server's message. An empty message is not counted.
func (s *watchStats) fail(o load.Outcome, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures[o]++
	if message == "" {
		return
	}
	if s.refusals == nil {
		s.refusals = map[string]int64{}
	}
	if _, known := s.refusals[message]; !known && len(s.refusals) >= maxRefusals {
		message = "other messages"
	}
	s.refusals[message]++
}

// failed returns the number of all failed attempts, and the numbers by kind of failure and by the server's message.
func (s *watchStats) failed() (all int64, byKind, refusals map[string]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for o, n := range s.failures {
		if byKind == nil {
			byKind = map[string]int64{}
		}
		all += n
		byKind[o.String()] = n
	}
	return all, byKind, maps.Clone(s.refusals)
}

type totals struct {
	tally
	lost, duplicated, reordered    int64
	relists, reconnects, malformed int64
}

// sums returns the counts of a phase, and the distribution of the slowest delivery of each watch. Call gather first, so
// that the counts are current.
func (w *Watches) sums(s *watchStats) (result.Watches, *latency.Histogram) {
	slowest, lost := s.perWatch()
	expected, delivered := s.expected.Load(), s.delivered.Load()
	for _, l := range *w.ledgers.Load() {
		e, d := l.count(s.deliveries, func(word int, watches uint64) {
			if lost == nil {
				lost = make([]int64, w.load.Count)
			}
			addEach(lost, word, watches)
		})
		expected, delivered = expected+e, delivered+d
	}
	r := result.Watches{
		Load: w.load.Name, Resource: w.load.Resource,
		Wanted: w.load.Count, Open: s.openAtEnd, Due: s.dueAtEnd, Slow: w.slow,
		Expected: expected, Delivered: delivered, Lost: expected - delivered,
		Duplicated: s.deliveries.duplicated.Load() + s.rare.duplicated.Load(),
		Reordered:  s.deliveries.reordered.Load() + s.rare.reordered.Load(),
		BeforeAck:  s.beforeAck.Load(), Late: s.late.Load(),
		Events: s.tally.events, Bookmarks: s.tally.bookmarks, Bytes: s.tally.bytes,
		Reconnects: s.reconnects.Load(), Relists: s.relists.Load(), Malformed: s.malformed.Load(),
	}
	r.Failed, r.Failures, r.Refusals = s.failed()
	for _, n := range lost {
		if n > 0 {
			r.Lossy++
			r.WorstLost = max(r.WorstLost, n)
		}
	}
	return r, slowest
}
