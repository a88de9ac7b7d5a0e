package replay

import (
	"math"
	"sync"
	"time"
)

// count contains the numbers of due and of sent requests in one group: the requests of one kind from one copy of a
// recorded client (actor).
type count struct{ due, sent int64 }

// rateError returns the largest difference between sent and due requests of any group, as a fraction of the group's due
// requests. `of` is the index of that group, or -1 if no requests were due.
func rateError(groups []count) (worst float64, of int) {
	of = -1
	for i, c := range groups {
		if c.due == 0 {
			continue
		}
		if e := math.Abs(float64(c.sent-c.due)) / float64(c.due); of < 0 || e > worst {
			worst, of = e, i
		}
	}
	return worst, of
}

// bins counts the arrivals of each second since the load's start. It is safe for concurrent use.
type bins struct {
	mu     sync.Mutex
	counts []int64
}

func (b *bins) add(at time.Duration) {
	i := int(at / time.Second)
	if i < 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.counts) <= i {
		b.counts = append(b.counts, 0)
	}
	b.counts[i]++
}

// whole returns the counts for the given number of seconds from the load's start.
func (b *bins) whole(seconds int) []int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	counts := make([]int64, seconds)
	copy(counts, b.counts)
	return counts
}

// minSeconds is the minimum length, in seconds, of a replay for which disperse compares dispersions.
const minSeconds = 5
