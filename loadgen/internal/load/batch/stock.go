package batch

import (
	"context"
	"sync/atomic"
)

// rendered is the request for object n, rendered in advance.
type rendered struct {
	n          int64
	path, body []byte
}

// stock is a queue of rendered objects from one renderer to one dispatcher. When the stock is full, the renderer sleeps
// until half of the stock is used, because waking the renderer for each object costs more than rendering the object.
// The stock reuses the memory of its items.
type stock struct {
	items      []rendered // a ring buffer
	put, taken atomic.Int64
	low        chan struct{} // receives a token when half of the stock is used
}

func newStock(size int) *stock {
	return &stock{items: make([]rendered, size), low: make(chan struct{}, 1)}
}

func (s *stock) full() bool { return s.put.Load()-s.taken.Load() == int64(len(s.items)) }

// fill calls `render` to write one object into a free item, and adds it to the stock. Only the renderer may call fill,
// and only if the stock is not full.
func (s *stock) fill(render func(*rendered) error) error {
	at := s.put.Load()
	if err := render(&s.items[at%int64(len(s.items))]); err != nil {
		return err
	}
	s.put.Store(at + 1)
	return nil
}

// awaitRoom returns immediately if the stock is not full. Otherwise it waits until half of the stock is used. It
// returns false if ctx has ended.
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

// take calls `use` with the oldest object and removes it. The object is valid only during that call. take returns false
// if the stock is empty. Only the dispatcher may call take.
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
