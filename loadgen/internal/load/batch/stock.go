package batch

import (
	"context"
	"sync/atomic"
)

// rendered is one object's request.
type rendered struct {
	n          int64
	path, body []byte
}

// stock holds rendered objects between the renderer and the dispatcher, in their order. The renderer sleeps from a full
// stock to one that is half used: to wake it for each object costs more than to render one. The memory of its items is
// used again.
type stock struct {
	items      []rendered // a ring
	put, taken atomic.Int64
	low        chan struct{} // a token when half is used
}

func newStock(size int) *stock {
	return &stock{items: make([]rendered, size), low: make(chan struct{}, 1)}
}

func (s *stock) full() bool { return s.put.Load()-s.taken.Load() == int64(len(s.items)) }

// fill adds the object that render writes. It is called by the renderer, unless the stock is full.
func (s *stock) fill(render func(*rendered) error) error {
	at := s.put.Load()
	if err := render(&s.items[at%int64(len(s.items))]); err != nil {
		return err
	}
	s.put.Store(at + 1)
	return nil
}

// awaitRoom waits until half of a full stock is used. False: ctx has ended.
func (s *stock) awaitRoom(ctx context.Context) bool {
	for s.full() {
		select {
		case <-s.low:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

// take hands the oldest object to use, for as long as that is at work. False: there is none. It is called by the dispatcher.
func (s *stock) take(use func(*rendered)) bool {
	at := s.taken.Load()
	left := s.put.Load() - at - 1
	if left < 0 {
		return false
	}
	use(&s.items[at%int64(len(s.items))])
	s.taken.Store(at + 1)
	if left <= int64(len(s.items))/2 && len(s.low) == 0 {
		select {
		case s.low <- struct{}{}:
		default:
		}
	}
	return true
}
