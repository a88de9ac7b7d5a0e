package object

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/stormglass/stormglass/internal/atomicmax"
	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// version is the resourceVersion that the next update of an object sends.
type version struct {
	number atomic.Uint64 // the newest resourceVersion seen
	busy   atomic.Bool   // whether an update of the object is in flight, or the version must be read again
}

// learn records a resourceVersion of object i, if the Set keeps versions and the given version is newer.
func (s *Set) learn(i int, number uint64) {
	if s.versions != nil {
		atomicmax.Raise(&s.versions[i].number, number)
	}
}

func (s *Set) learnFrom(i int, r reply) {
	if s.versions != nil {
		s.learn(i, versionIn(r.body))
	}
}

// reserve reserves an object for an update and returns the object's number. It takes this worker's first free object
// from object i on. It returns false if no object is free. Two updates in flight never use the same object, because
// they would cause conflicts.
func (s *Set) reserve(i int) (int, bool) {
	own := s.share.Part(len(s.versions))
	if own == 0 {
		return 0, false
	}
	// Start with this worker's first object that is not before i.
	at := s.share.Part(i) % own
	for range own {
		i = s.share.Number(at)
		if v := &s.versions[i]; v.number.Load() > 0 && v.busy.CompareAndSwap(false, true) {
			return i, true
		}
		if at++; at == own {
			at = 0
		}
	}
	return 0, false
}

// release makes an object available for the next update. After a failure other than a 429, the method keep first reads
// the object's version again, because the version may have changed.
func (s *Set) release(i int, o load.Outcome) {
	if o.Success() || o == http.StatusTooManyRequests {
		s.versions[i].busy.Store(false)
		return
	}
	s.stale <- i // does not block: the channel has room for every object
}

// deletable prepares the Set for an operation that deletes its objects.
func (s *Set) deletable() {
	if s.whole != nil {
		return
	}
	s.whole, s.gone = make(chan int, s.count), make(chan int, s.count)
	for i := range s.share.Part(s.count) {
		s.whole <- s.share.Number(i)
	}
}

// keep recreates deleted objects and reads unknown versions until ctx ends.
func (s *Set) keep(ctx context.Context) {
	if s.gone == nil && s.stale == nil {
		return
	}
	var workers sync.WaitGroup
	for range min(load.AtOnce, s.count) {
		workers.Go(func() {
			for {
				select {
				case i := <-s.gone:
					s.remake(ctx, i)
					s.whole <- i
				case i := <-s.stale:
					s.refresh(ctx, i)
					s.versions[i].busy.Store(false)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	workers.Wait()
}

// remake recreates a deleted object. If that fails, the next request for the object gets a 404, and the results show
// it.
func (s *Set) remake(ctx context.Context, i int) {
	body := s.appendObject(nil, s.made, i, 0, 0)
	r, err := s.asker.once(ctx, query{method: http.MethodPost, path: s.paths[s.home[i]], typ: jsonType, body: body})
	if err == nil && r.success() {
		s.learnFrom(i, r)
	}
}

// refresh reads the version of an object. If that fails, the next update gets a conflict, and the results show it.
func (s *Set) refresh(ctx context.Context, i int) {
	r, err := s.asker.once(ctx, query{method: http.MethodGet, path: string(s.AppendPath(nil, i))})
	if err == nil && r.success() {
		s.learnFrom(i, r)
	}
}
