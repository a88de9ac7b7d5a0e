package stubapi

import (
	"slices"
	"sync"
	"time"
)

// Exchange is the record of one request and its response.
type Exchange struct {
	Request
	// Answered is the time just before the stub passed the response to the connection. It is zero if there was no
	// response, or if a fault replaced the response.
	Answered time.Time
	Status   int
	Fault    Fault
}

// Latency returns the time from the receipt of the request to its response.
func (e Exchange) Latency() time.Duration { return e.Answered.Sub(e.At) }

// Watch is the record of one watch.
type Watch struct {
	K      int64
	Conn   int    // number of the watch's connection, from 0
	From   uint64 // resourceVersion at which the watch started
	Opened time.Time
	Sent   []Sent
	// Taken is the number of bytes of the watch that the client's flow-control windows have allowed the stub to send.
	Taken int64

	stream *stream
}

// Sent is the record of one event that the stub has sent to a watch.
type Sent struct {
	Kind string
	RV   uint64
	At   time.Time
}

// record holds the recorded exchanges and watches of a server.
type record struct {
	mu        sync.Mutex
	off       bool
	requests  int64
	exchanges []Exchange
	watches   []Watch
	events    int64
}

func (r *record) received(q Request) Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	q.N = r.requests
	r.requests++
	if !r.off {
		r.exchanges = append(r.exchanges, Exchange{Request: q})
	}
	return q
}

func (r *record) answered(n int64, status int, f Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.off {
		return
	}
	e := &r.exchanges[n]
	e.Status, e.Fault = status, f
	if f == None {
		e.Answered = time.Now()
	}
}

func (r *record) opened(from uint64, st *stream) (k int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k = int64(len(r.watches))
	r.watches = append(r.watches, Watch{K: k, Conn: st.conn.number, From: from, Opened: time.Now(), stream: st})
	return k
}

func (r *record) sent(k int64, kind string, rv uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events++
	if !r.off {
		w := &r.watches[k]
		w.Sent = append(w.Sent, Sent{kind, rv, time.Now()})
	}
}

// Counts returns the number of requests that the stub has received, and the number of events that it has sent.
func (s *Server) Counts() (requests, events int64) {
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	return s.record.requests, s.record.events
}

// Exchanges returns all exchanges so far, in the order in which their requests were received.
func (s *Server) Exchanges() []Exchange {
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	return slices.Clone(s.record.exchanges)
}

// Watches returns all watches so far, in the order of their numbers.
func (s *Server) Watches() []Watch {
	s.record.mu.Lock()
	all := slices.Clone(s.record.watches)
	for i := range all {
		all[i].Sent = slices.Clone(all[i].Sent)
	}
	s.record.mu.Unlock()
	for i := range all {
		all[i].Taken = all[i].stream.flowed()
	}
	return all
}
