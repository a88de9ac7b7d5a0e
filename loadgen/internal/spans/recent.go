package spans

// recent maps trace IDs to other trace IDs. It forgets the oldest ID when it is full.
type recent struct {
	known map[TraceID]TraceID
	ring  []TraceID
	next  int
}

func newRecent(size int) *recent {
	return &recent{map[TraceID]TraceID{}, make([]TraceID, 0, size), 0}
}

func (r *recent) has(id TraceID) bool {
	_, ok := r.known[id]
	return ok
}

func (r *recent) add(id, to TraceID) {
	if r.has(id) {
		return
	}
	r.known[id] = to
	if len(r.ring) < cap(r.ring) {
		r.ring = append(r.ring, id)
		return
	}
	delete(r.known, r.ring[r.next])
	r.ring[r.next] = id
	r.next = (r.next + 1) % len(r.ring)
}
