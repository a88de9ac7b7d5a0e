package batch

import (
	"context"
	"sync"
	"testing"
)

// Objects come out once and in order, however the renderer and the dispatcher interleave.
func TestStockKeepsOrder(t *testing.T) {
	const n = 5000
	s := newStock(8)
	var renderer sync.WaitGroup
	renderer.Go(func() {
		for i := range int64(n) {
			if !s.awaitRoom(t.Context()) {
				return
			}
			_ = s.fill(func(r *rendered) error {
				r.n, r.body = i, append(r.body[:0], byte(i))
				return nil
			})
		}
	})
	next := int64(0)
	for next < n {
		s.take(func(r *rendered) {
			if r.n != next || len(r.body) != 1 || r.body[0] != byte(next) {
				t.Errorf("object %d = %+v", next, r)
			}
			next++
		})
	}
	renderer.Wait()
	if s.take(func(*rendered) {}) {
		t.Error("the stock has an object too many")
	}
}

// The renderer of a full stock sleeps until half of it is used or the load ends.
func TestRendererSleepsUntilHalfIsUsed(t *testing.T) {
	s := newStock(8)
	for !s.full() {
		_ = s.fill(func(*rendered) error { return nil })
	}
	for range 3 {
		s.take(func(*rendered) {})
	}
	if len(s.low) != 0 {
		t.Error("the renderer wakes although over half of the stock is left")
	}
	s.take(func(*rendered) {})
	if len(s.low) != 1 {
		t.Error("the renderer does not wake although half of the stock is used")
	}
	full := newStock(1)
	_ = full.fill(func(*rendered) error { return nil })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if full.awaitRoom(ctx) {
		t.Error("awaitRoom reports room in a full stock")
	}
}
