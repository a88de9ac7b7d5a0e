package watch

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/latency"
)

// roster records which watches were established from which version.
type roster struct {
	count int

	mu         sync.RWMutex
	from       []uint64 // by watch
	joined     []uint64 // a bit for each watch that was
	newest     uint64   // the newest version that one was established from
	generation int64
}

func newRoster(count int) *roster {
	return &roster{count: count, from: make([]uint64, count), joined: make([]uint64, (count+63)/64)}
}

func (r *roster) size() int { return r.count }

// join records that a watch was established for the first time.
func (r *roster) join(watch int, rv uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from[watch] = rv
	r.joined[watch/64] |= 1 << (watch % 64)
	r.newest = max(r.newest, rv)
	r.generation++
}

// joins changes when a watch joins.
func (r *roster) joins() int64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.generation
}

// each calls f with the watches that owe a write of version rv, 64 at a time.
func (r *roster) each(rv uint64, f func(word int, owing uint64)) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for word, owing := range r.joined {
		if r.newest >= rv { // some are from a later version
			for all := owing; all != 0; all &= all - 1 {
				if bit := bits.TrailingZeros64(all); r.from[64*word+bit] >= rv {
					owing &^= 1 << bit
				}
			}
		}
		f(word, owing)
	}
}

// deliveries counts the watches' deliveries of the writes of one phase.
type deliveries struct {
	delivery, external *latency.Histogram
	// Of writes that have been given up; the rest is in the ring.
	expected, delivered         atomic.Int64
	duplicated, reordered, late atomic.Int64
	beforeAck                   atomic.Int64

	once    sync.Once
	slowest []atomic.Int64 // by watch: its slowest delivery, and 1 ns; 0: none
	mu      sync.Mutex
	lost    []int64 // by watch, of writes given up
}

func newDeliveries() *deliveries {
	return &deliveries{delivery: latency.New(longestDelivery), external: latency.New(longestDelivery)}
}

// ready makes room for the watches: phases without writes need none.
func (d *deliveries) ready(watches int) {
	d.once.Do(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.slowest, d.lost = make([]atomic.Int64, watches), make([]int64, watches)
	})
}

// slow records a watch's delivery. Only one goroutine at a time may call it for each
// watch.
func (d *deliveries) slow(watch int, after time.Duration) {
	if own := &d.slowest[watch]; own.Load() <= int64(after) {
		own.Store(int64(after) + 1)
	}
}

// lose counts a delivery given up for each of the watches.
func (d *deliveries) lose(word int, watches uint64) {
	if watches == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	addEach(d.lost, word, watches)
}

// addEach counts one for each of 64 watches whose bit is set.
func addEach(counts []int64, word int, watches uint64) {
	for ; watches != 0; watches &= watches - 1 {
		counts[64*word+bits.TrailingZeros64(watches)]++
	}
}

// perWatch returns each watch's slowest delivery, and what each lost; both are empty
// without writes.
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
