package service

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// Behaviour is how a service answers. The zero value answers at once.
type Behaviour struct {
	// Delay of each answer; up to Jitter is added to it, or taken from it, drawn from Seed.
	Delay  time.Duration `json:"delayNanoseconds,omitempty"`
	Jitter time.Duration `json:"jitterNanoseconds,omitempty"`
	Seed   int64         `json:"seed,omitempty"`
	// Fails answers with an error, after the delay.
	Fails bool `json:"fails,omitempty"`
}

// conduct applies a Behaviour that may change at any time.
type conduct struct {
	mu        sync.Mutex // guards what follows
	behaviour Behaviour
	random    *rand.Rand
	changed   chan struct{} // closed by the next change
}

func newConduct() *conduct {
	c := &conduct{}
	c.set(Behaviour{})
	return c
}

func (c *conduct) set(b Behaviour) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed != nil {
		close(c.changed)
	}
	c.behaviour, c.random, c.changed = b, rand.New(rand.NewPCG(uint64(b.Seed), 0)), make(chan struct{})
}

// wait waits out the delay, unless the behaviour changes or the client leaves before, and returns
// an error if the answer is to be one.
func (c *conduct) wait(ctx context.Context) error {
	c.mu.Lock()
	delay, changed := c.behaviour.Delay, c.changed
	if j := int64(c.behaviour.Jitter); j > 0 {
		delay += time.Duration(c.random.Int64N(2*j+1) - j)
	}
	c.mu.Unlock()
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.behaviour.Fails {
		return errFails
	}
	return nil
}

func (c *conduct) serve(w http.ResponseWriter, r *http.Request) {
	var b Behaviour
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&b); err != nil {
		http.Error(w, fmt.Sprintf("not a behaviour: %v", err), http.StatusBadRequest)
		return
	}
	c.set(b)
	w.WriteHeader(http.StatusNoContent)
}
