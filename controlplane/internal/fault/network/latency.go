package network

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/Shopify/toxiproxy/v2/toxics"
)

// latency hands on what it takes out of the queue when it is due. toxiproxy has
// such a toxic; its jitter comes from the process's global source, so no two runs
// are alike, and it knows milliseconds only.
type latency struct {
	delay, jitter time.Duration
	random        *rand.Rand // of one direction of one connection
}

func newLatency(c Condition, stream uint64) *latency {
	return &latency{c.Delay, c.Jitter, rand.New(rand.NewPCG(uint64(c.Seed), stream))}
}

// next draws a delay.
func (l *latency) next() time.Duration {
	if l.jitter == 0 {
		return l.delay
	}
	return l.delay + time.Duration(l.random.Int64N(2*int64(l.jitter)+1)) - l.jitter
}

// Pipe implements toxics.Toxic. On an interrupt the read that waits goes on at
// once, so that nothing is lost.
func (l *latency) Pipe(stub *toxics.ToxicStub) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-stub.Interrupt:
			return
		case chunk := <-stub.Input:
			if chunk == nil {
				stub.Close()
				return
			}
			timer.Reset(l.next() - time.Since(chunk.Timestamp))
			select {
			case <-timer.C:
				stub.Output <- chunk
			case <-stub.Interrupt:
				stub.Output <- chunk
				return
			}
		}
	}
}

// streamOf numbers what is random in a direction of a link's nth connection: it is
// the same in each run with the same seed, and another one in each direction of
// each connection.
func streamOf(link string, n int64, back bool) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(link)) // never fails
	stream := h.Sum64() + uint64(n)<<1
	if back {
		stream++
	}
	return stream
}
