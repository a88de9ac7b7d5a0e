package watch

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/latency"
)

// roster records for each watch whether it has been established, and the version at which it started.
type roster struct {
	count int

	mu         sync.RWMutex
	from       []uint64 // version at which each watch started
	joined     []uint64 // one bit for each watch, set when it was first established
	newest     uint64   // the highest version in from
	generation int64
}

func newRoster(count int) *roster {
	return &roster{count: count, from: make([]uint64, count), joined: make([]uint64, (count+63)/64)}
}

func (r *roster) size() int { return r.count }

// join records that a watch was established for the first time, starting at version rv.
func (r *roster) join(watch int, rv uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from[watch] = rv
	r.joined[watch/64] |= 1 << (watch % 64)
	r.newest = max(r.newest, rv)
	r.generation++
}

// joins returns a number that changes whenever a watch joins.
func (r *roster) joins() int64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.generation
}

// each calls f with the watches that must deliver a write of version rv, as words of 64 bits with one bit per watch.
func (r *roster) each(rv uint64, f func(word int, owing uint64)) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for word, owing := range r.joined {
		if r.newest >= rv { // at least one watch started at rv or a later version
			for all := owing; all != 0; all &= all - 1 {
				if bit := bits.TrailingZeros64(all); r.from[64*word+bit] >= rv {
					owing &^= 1 << bit
				}
			}
		}
		f(word, owing)
	}
}

// deliveries contains the counts and latencies of all deliveries of one phase's writes.
type deliveries struct {
	delivery, external *latency.Histogram
	// expected and delivered are for writes that are no longer in the ledger's ring. The ledger counts the deliveries
	// of writes in the ring.
	expected, delivered         atomic.Int64
	duplicated, reordered, late atomic.Int64
	beforeAck                   atomic.Int64

	once    sync.Once
	slowest []atomic.Int64 // latency of each watch's slowest delivery plus 1 ns, or 0 without a delivery
	mu      sync.Mutex
	lost    []int64 // number of each watch's lost deliveries of writes that are no longer in the ring
}

func newDeliveries() *deliveries {
	return &deliveries{delivery: latency.New(longestDelivery), external: latency.New(longestDelivery)}
}

// ready allocates slowest and lost at its first call. The ledger calls it for each write of the phase.
func (d *deliveries) ready(watches int) {
	d.once.Do(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.slowest, d.lost = make([]atomic.Int64, watches), make([]int64, watches)
	})
}

// slow records the latency of a delivery, if it is the slowest of the watch. Calls for the same watch must not be
// concurrent.
func (d *deliveries) slow(watch int, after time.Duration) {
	if own := &d.slowest[watch]; own.Load() <= int64(after) {
		own.Store(int64(after) + 1)
	}
}

// lose counts one lost delivery for each watch whose bit in `watches` is set.
func (d *deliveries) lose(word int, watches uint64) {
	if watches == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	addEach(d.lost, word, watches)
}

// addEach increments the counts of the watches whose bits are set. `word` is the index of a group of 64 watches.
func addEach(counts []int64, word int, watches uint64) {
	for ; watches != 0; watches &= watches - 1 {
		counts[64*word+bits.TrailingZeros64(watches)]++
	}
}

// perWatch returns the distribution of the slowest delivery of each watch, and the number of lost deliveries by
// watch. In a phase without writes, both are empty.
func (d *deliveries) perWatch() (slowest *latency.Histogram, lost []int64) {
	slowest = latency.New(longestDelivery)
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.slowest {
		if after := d.slowest[i].Load(); after > 0 {
			slowest.Record(time.Duration(after - 1))
		}
	}
	return slowest, append(lost, d.lost...)
}
