package network

import (
	"hash/fnv"
	"io"
	"math/rand/v2"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"

	"github.com/stormglass/stormglass/controlplane/control"
)

// queued is the maximum number of reads in the queue of a direction, as in toxiproxy.
const queued = 1024

// direction carries the bytes of one connection in one direction. A reader puts chunks of bytes with their arrival
// times in a queue. A toxic (toxiproxy's name for a pipe with a condition) removes each chunk when it is due, and a
// writer sends it. Only one toxic runs at a time. Switching to another toxic loses no data.
type direction struct {
	in     chan *stream.StreamChunk
	stub   *toxics.ToxicStub
	out    *stream.ChanReader
	random uint64 // number of the random stream for the jitter, see streamOf
	turns  chan turn
	ended  chan struct{} // closed when the last toxic of this direction has ended
}

type turn struct {
	to   *toxics.ToxicWrapper
	done chan struct{}
}

func newDirection(c Condition, random uint64) *direction {
	in, out := make(chan *stream.StreamChunk, queued), make(chan *stream.StreamChunk)
	d := &direction{
		in: in, stub: toxics.NewToxicStub(in, out), out: stream.NewChanReader(out),
		random: random, turns: make(chan turn, 1), ended: make(chan struct{}),
	}
	go d.control(d.toxic(c))
	return d
}

func (d *direction) toxic(c Condition) *toxics.ToxicWrapper {
	w := &toxics.ToxicWrapper{Toxicity: 1, Toxic: &toxics.NoopToxic{}}
	switch {
	case c.Cut:
		w.Toxic = frozen{}
	case c.Delay > 0:
		w.Toxic = newLatency(c, d.random)
	}
	return w
}

type frozen struct{}

func (frozen) Pipe(stub *toxics.ToxicStub) { <-stub.Interrupt }

// turn requests a switch to condition c, without waiting. The returned function waits until the direction has switched
// or ended. It returns false if its channel `patience` fires first. The caller holds Link.mu.
func (d *direction) turn(c Condition) (wait func(patience <-chan time.Time) bool) {
	t := turn{d.toxic(c), make(chan struct{})}
	select { // discard an earlier request that has not begun
	case <-d.turns:
	default:
	}
	d.turns <- t
	return func(patience <-chan time.Time) bool {
		select {
		case <-t.done:
		case <-d.ended:
		case <-patience:
			return false
		}
		return true
	}
}

// control runs one toxic after another until all data of the queue is sent.
func (d *direction) control(w *toxics.ToxicWrapper) {
	defer close(d.ended)
	run := func(w *toxics.ToxicWrapper) (returned chan struct{}) {
		returned = make(chan struct{})
		go func() {
			defer close(returned)
			d.stub.Run(w)
		}()
		return returned
	}
	for returned := run(w); ; {
		select {
		case <-returned: // the toxic ended by itself, because all data is sent
			return
		case t := <-d.turns:
			// InterruptToxic blocks while the toxic passes on data to a receiver that does not read.
			if d.stub.InterruptToxic() {
				returned = run(t.to)
			}
			close(t.done)
		}
	}
}

func (d *direction) read(source io.Reader) {
	w := stream.NewChanWriter(d.in)
	_, _ = io.Copy(w, source) // an end and an error mean the same: no more data
	w.Close()
}

// latency is a toxic that passes data on from the queue when the data is due. It replaces toxiproxy's latency toxic,
// whose delays are whole milliseconds, and whose jitter is not reproducible because it uses the global random source.
type latency struct {
	delay, jitter time.Duration
	random        *rand.Rand // source of the jitter, separate for each direction of each connection
}

func newLatency(c Condition, stream uint64) *latency {
	return &latency{c.Delay, c.Jitter, rand.New(rand.NewPCG(uint64(c.Seed), stream))}
}

func (l *latency) next() time.Duration { return control.Jittered(l.delay, l.jitter, l.random) }

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

// streamOf returns the number of the random stream for one direction of a link's nth connection. Runs with the same
// seed use the same streams. Directions and connections have different streams.
func streamOf(link string, n int64, back bool) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(link)) // never fails
	stream := h.Sum64() + uint64(n)<<1
	if back {
		stream++
	}
	return stream
}
